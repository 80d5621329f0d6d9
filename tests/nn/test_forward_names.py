"""The names of modules' `forward` in Python's errors are those of PyTorch."""

from __future__ import annotations

import importlib.util
import inspect

import pytest

import flambeau

pytestmark = [pytest.mark.parity,
              pytest.mark.skipif(importlib.util.find_spec("torch") is None, reason="PyTorch is the oracle")]
#: own code that PyTorch writes once more
OTHERWISE = {"RNNBase", "SyncBatchNorm"}


def test_names_of_forward():
    import torch as pytorch

    differ = {}
    for name, theirs in vars(pytorch.nn).items():
        if inspect.isclass(theirs) and issubclass(theirs, pytorch.nn.Module) and name not in OTHERWISE:
            ours = getattr(flambeau.nn, name).forward.__qualname__.removeprefix("CallMixin.")
            if ours != theirs.forward.__qualname__:
                differ[name] = ours, theirs.forward.__qualname__
    assert not differ


def test_a_subclass_of_a_program_inherits():
    class Own(flambeau.nn.MaxPool2d):
        pass

    assert Own.forward is flambeau.nn.MaxPool2d.forward
    with pytest.raises(TypeError, match=r"MaxPool2d\.forward\(\) missing 1 required positional argument: 'input'"):
        Own(2)()
