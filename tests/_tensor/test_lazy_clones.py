"""Lazy clones compared with PyTorch: which calls give a storage memory of its own, and what the clone holds then."""

from __future__ import annotations

import copy

import numpy as np
import pytest

import flambeau

torch = pytest.importorskip("torch")
pytestmark = [pytest.mark.parity, pytest.mark.filterwarnings("ignore")]


def _step(optimizer, **options):
    def step(m, t):
        p = m.nn.Parameter(m.ones(4))
        p.data, p.grad = t, m.ones(4)
        getattr(m.optim, optimizer)([p], lr=0.1, **options).step()

    return step


def _accumulate(m, t):
    p = m.ones(4, requires_grad=True)
    p.grad = t
    (p * 2).sum().backward()


READS = {
    "nothing": lambda m, t: None, "tolist": lambda m, t: t.tolist(), "repr": lambda m, t: repr(t),
    "clone": lambda m, t: t.clone(), "view": lambda m, t: t[:2], "sum": lambda m, t: t + 1,
    "storage": lambda m, t: t.untyped_storage()[0], "deepcopy": lambda m, t: copy.deepcopy(t),
    "again": lambda m, t: t._lazy_clone(), "const_data_ptr": lambda m, t: t.const_data_ptr(),
}
WRITES = {
    "add_": lambda m, t: t.add_(1), "copy_": lambda m, t: t.copy_(m.ones(4)), "fill_": lambda m, t: t.fill_(2),
    "zero_": lambda m, t: t.zero_(), "normal_": lambda m, t: t.normal_(), "apply_": lambda m, t: t.apply_(lambda x: 7),
    "setitem": lambda m, t: t.__setitem__(0, 5), "mask": lambda m, t: t.__setitem__(t > 1, 0),
    "index": lambda m, t: t.__setitem__(m.tensor([1, 2]), 0), "detach": lambda m, t: t.detach().mul_(2),
    "data": lambda m, t: t.data.add_(1), "part": lambda m, t: t[1:3].zero_(),
    "bits": lambda m, t: t.view(m.int32).zero_(), "unbind": lambda m, t: [x.zero_() for x in t.view(2, 2).unbind()],
    "out": lambda m, t: m.add(t, 1, out=t), "matmul": lambda m, t: m.mm(m.ones(2, 2), m.ones(2, 2), out=t.view(2, 2)),
    "arange": lambda m, t: m.arange(4., out=t), "rand": lambda m, t: m.rand(4, out=t),
    "scatter_": lambda m, t: t.scatter_(0, m.tensor([0]), m.ones(1), reduce="add"),
    "foreach": lambda m, t: m._foreach_add_([t], 1), "SGD": _step("SGD"), "Adam": _step("Adam", foreach=False),
    "grad": _accumulate,
    "batch_norm": lambda m, t: m.nn.functional.batch_norm(m.arange(8.).view(2, 4), t, m.ones(4), training=True),
    "data_ptr": lambda m, t: t.data_ptr(), "numpy": lambda m, t: t.numpy(), "asarray": lambda m, t: np.asarray(t),
    "dlpack": lambda m, t: m.utils.dlpack.to_dlpack(t),
    "share_memory_": lambda m, t: t.share_memory_(), "bytes": lambda m, t: t.untyped_storage().fill_(0),
    "byte": lambda m, t: t.untyped_storage().__setitem__(0, 1), "address": lambda m, t: t.untyped_storage().data_ptr(),
    "elements": lambda m, t: t.storage().__setitem__(0, 1.),
}


def _states(m, *tensors):
    c, first = m._C, tensors[0]
    return [(c._is_cow_tensor(t), c._data_address(t) == c._data_address(first),
             c._storage_address(t) == c._storage_address(first)) for t in tensors]


@pytest.mark.parametrize("name", [*READS, *WRITES])
def test_calls(name):
    outcomes = []
    for m in (torch, flambeau):
        t = m.arange(4.)
        before = m._C._storage_address(t)
        view, clone = t[1:], t._lazy_clone()
        {**READS, **WRITES}[name](m, t)
        outcomes.append((_states(m, t, clone), clone.tolist(), m._C._storage_address(t) == before,
                         name in ("normal_", "rand") or view.tolist()))
    assert outcomes[1] == outcomes[0]


def test_several_clones():
    states = []
    for m in (torch, flambeau):
        a = m.ones(3)
        b, d = a._lazy_clone(), a._lazy_clone()
        c = b._lazy_clone()
        found = []
        for x in (b, a, c, d):  # the last one keeps the memory
            x += 1
            found.append(_states(m, a, b, c, d))
        assert a.tolist() == b.tolist() == c.tolist() == d.tolist() == [2, 2, 2]
        states.append(found)
    assert states[1] == states[0]


def test_clones_that_are_gone_are_not_counted():
    active = flambeau.modes.special[0]
    a = flambeau.ones(2)
    b = a._lazy_clone()
    assert flambeau.modes.special[0] == active + 2
    del b
    address = flambeau._C._data_address(a)
    a += 1
    assert flambeau._C._data_address(a) == address
    assert flambeau.modes.special[0] == active


@pytest.mark.parametrize("dtype", ["bool", "bfloat16", "complex64", "int8"])
def test_layouts_and_gradients(dtype):
    found = []
    for m in (torch, flambeau):
        x = m.arange(8).to(getattr(m, dtype)).reshape(2, 4)[:, 1:].t()
        y = x._lazy_clone()
        y.zero_()
        found.append((y.stride(), y.storage_offset(), y.untyped_storage().nbytes(), x.tolist(), y.tolist()))
    assert found[0] == found[1]
    x = flambeau.ones(2, requires_grad=True)
    y = x._lazy_clone()
    assert flambeau._C._is_cow_tensor(y)
    y.sum().backward()
    assert x.grad.tolist() == [1, 1]
    assert flambeau.ones(2, device="meta")._lazy_clone().is_meta
