"""The names of modules' `__init__` and `forward` in Python's errors are those of PyTorch."""

from __future__ import annotations

import importlib.util
import inspect

import pytest

import flambeau

pytestmark = [pytest.mark.parity,
              pytest.mark.skipif(importlib.util.find_spec("torch") is None, reason="PyTorch is the oracle")]
#: methods whose code is divided otherwise
OTHERWISE = {("RNNBase", "forward"), ("SyncBatchNorm", "forward"), ("RNN", "__init__"), ("LSTM", "__init__"),
             ("GRU", "__init__")}


@pytest.mark.parametrize("method", ["__init__", "forward"])
def test_names_of_methods(method):
    import torch as pytorch

    differ = {}
    for name, theirs in vars(pytorch.nn).items():
        if inspect.isclass(theirs) and issubclass(theirs, pytorch.nn.Module) and (name, method) not in OTHERWISE:
            ours = getattr(getattr(flambeau.nn, name), method).__qualname__.removeprefix("CallMixin.")
            expected = getattr(theirs, method).__qualname__
            if method == "__init__" and theirs.__init__ is pytorch.nn.Module.__init__:
                expected = "Module.__init__"  # PyTorch's compiler, once imported, replaces it by one of another name
            if ours != expected:
                differ[name] = ours, expected
    assert not differ


def test_a_subclass_of_a_program_inherits():
    class Own(flambeau.nn.MaxPool2d):
        pass

    assert Own.forward is flambeau.nn.MaxPool2d.forward
    with pytest.raises(TypeError, match=r"MaxPool2d\.forward\(\) missing 1 required positional argument: 'input'"):
        Own(2)()


@pytest.mark.parametrize("value", ["a", None, [1., 2.]], ids=["str", "None", "list"])
@pytest.mark.parametrize("module", ["LayerNorm(3)", "Unfold(3)", "Fold(3, 4)", "ReLU()", "Linear(3, 2)", "Softmax(0)",
                                    "Conv1d(3, 2, 1)", "MaxPool2d(2)"])
def test_inputs_that_are_no_tensors(module, value):
    import torch as pytorch

    said = []
    for library in (flambeau, pytorch):
        with pytest.raises((TypeError, AttributeError)) as raised:
            eval(f"nn.{module}", {"nn": library.nn})(value)
        said.append(f"{raised.type.__name__}: {raised.value}")
    assert said[0].splitlines()[0] == said[1].splitlines()[0]
