"""`torch.distributed.utils`, compared with PyTorch."""

from __future__ import annotations

from collections import OrderedDict, namedtuple
from dataclasses import dataclass
from importlib import import_module

import pytest

import flambeau

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.parity

Pair = namedtuple("Pair", "a b")


@dataclass
class Holder:
    x: object
    n: int = 2


def nested(lib):
    x = lib.arange(3.)
    return [x, {"a": (x + 1, 2), "b": OrderedDict(c=[x + 2])}, Pair(x, "text"), Holder(x), (), lib.arange(2)]


def modules(lib):
    inner = lib.nn.Sequential(lib.nn.ReLU())
    outer, other = lib.nn.Sequential(inner, lib.nn.Tanh()), lib.nn.Tanh()
    return [[inner, outer, other, outer[1]].index(each) for each in
            import_module(f"{lib.__name__}.distributed.utils")._get_root_modules([inner, outer, other, outer[1]])]


def renamed(utils, old, new):
    state = {"a.x": 1, "b.y": 2, "a.z": 3}
    utils._replace_by_prefix(state, old, new)
    return list(state.items())


CALLS = {
    "pack": lambda lib, utils: utils._pack_kwargs(1, a=2, b=3),
    "unpack": lambda lib, utils: [utils._unpack_kwargs((1, 2, 3), ("a", "b")), utils._unpack_kwargs((1,), ())],
    "unpack too many": lambda lib, utils: utils._unpack_kwargs((1,), ("a", "b")),
    "apply": lambda lib, utils: utils._apply_to_tensors(lambda x: x * 2, nested(lib)),
    "cast": lambda lib, utils: utils._cast_forward_inputs(lib.float64, *nested(lib), a=lib.ones(1)),
    "no cast": lambda lib, utils: utils._cast_forward_inputs(None, 1, a=2),
    "to": lambda lib, utils: utils._recursive_to(nested(lib)[:3], lib.device("cpu"), False),
    "to meta": lambda lib, utils: utils._recursive_to([{}, lib.ones(1)], lib.device("meta"), True)[0][1].device.type,
    "kwargs": lambda lib, utils: utils._to_kwargs((lib.ones(1), 2), {"a": lib.ones(2)}, lib.device("cpu"), False),
    "kwargs only": lambda lib, utils: utils._to_kwargs((), {"a": 1}, lib.device("cpu"), False),
    "args only": lambda lib, utils: utils._to_kwargs((1,), None, lib.device("cpu"), False),
    "assert": lambda lib, utils: (utils._p_assert(True, "a"), utils._p_assert(False, "b", False)),
    "assertion": lambda lib, utils: utils._p_assert(False, "b"),
    "prefix": lambda lib, utils: renamed(utils, "a.", "c."),
    "same prefix": lambda lib, utils: renamed(utils, "a.", "a."),
    "modules": lambda lib, utils: modules(lib)}


def plain(value):
    if isinstance(value, Holder):
        return "Holder", plain(value.x), value.n
    if isinstance(value, dict):
        return type(value).__name__, [(key, plain(each)) for key, each in value.items()]
    if isinstance(value, (list, tuple)):
        return type(value).__name__, [plain(each) for each in value]
    return (str(value.dtype).rpartition(".")[2], value.tolist()) if hasattr(value, "tolist") else value


@pytest.mark.parametrize("name", CALLS)
def test_results(name):
    def outcome(lib):
        try:
            return plain(CALLS[name](lib, import_module(f"{lib.__name__}.distributed.utils")))
        except Exception as error:
            return type(error).__name__, str(error)

    assert outcome(flambeau) == outcome(torch)


def test_memory_is_not_freed_while_a_tensor_needs_it():
    utils = import_module("flambeau.distributed.utils")
    x = flambeau.ones(2, 3)
    utils._alloc_storage(x, x.size())
    assert utils._data_ptr_allocated(x)
    with pytest.raises(NotImplementedError, match="needs more"):
        utils._free_storage(x)
    with pytest.raises(AssertionError, match="Tensor storage should have been resized to be 0"):
        utils._alloc_storage(x, flambeau.Size([1]))
    with pytest.raises(AssertionError, match="it is not the sole occupant"):
        utils._free_storage(flambeau.ones(4)[1:])
