"""Calls with `out=`, `resize_` and the results of classes with `__torch_dispatch__`."""

from __future__ import annotations

from typing import Any

import pytest

import flambeau as torch
from flambeau.utils._python_dispatch import TorchDispatchMode


class Calls(TorchDispatchMode):
    """Notes the overloads that are called."""

    def __init__(self) -> None:
        super().__init__()
        self.names: list[str] = []

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        self.names.append(str(func))
        return func(*args, **(kwargs or {}))


x = torch.tensor([[3.0, 1.0], [2.0, 4.0]])


@pytest.mark.parametrize(("call", "name"), [
    (lambda out: torch.sum(x, 0, out=out), "aten.sum.IntList_out"),
    (lambda out: torch.mm(x, x, out=out), "aten.mm.out"),
    (lambda out: torch.add(x, 1, out=out), "aten.add.out"), (lambda out: torch.exp(x, out=out), "aten.exp.out"),
    (lambda out: torch.add(x, x, alpha=2, out=out), "aten.add.out"),
    (lambda out: torch.cat([x, x], out=out), "aten.cat.out"),
    (lambda out: torch.pow(x, 2, out=out), "aten.pow.Tensor_Scalar_out"),
    (lambda out: torch.max(x, 0, out=(out, torch.zeros(2).long())), "aten.max.dim_max"),
])
def test_a_mode_sees_out(call: Any, name: str) -> None:
    expected, result = torch.zeros(0), torch.zeros(0)
    call(expected)
    with Calls() as calls:
        call(result)
    assert name in calls.names
    assert torch.equal(result, expected)


def test_a_mode_sees_resize() -> None:
    with Calls() as calls:
        y = torch.zeros(2).resize_(3, 1)
    assert calls.names[-1] == "aten.resize_.default"
    assert y.shape == (3, 1)


class Wrapped(torch.Tensor):
    """A tensor whose operators give plain tensors."""

    @staticmethod
    def __new__(cls: type, data: torch.Tensor) -> Any:
        made = torch.Tensor._make_wrapper_subclass(cls, data.shape, dtype=data.dtype)
        made.data_of_it = data
        return made

    @classmethod
    def __torch_dispatch__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return func(*[a.data_of_it if isinstance(a, cls) else a for a in args], **(kwargs or {}))


def test_results_have_the_class_that_the_handler_gives_them() -> None:
    assert type(Wrapped(x) + 1) is torch.Tensor
    assert Wrapped.__torch_function__ is torch._C._disabled_torch_function_impl


def test_an_own_torch_function_remains() -> None:
    class Both(Wrapped):
        @classmethod
        def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            return 7

    assert Wrapped.__torch_function__ is not Both.__torch_function__
    assert Both(x) + 1 == 7


def test_out_of_a_handled_class() -> None:
    out = torch.zeros(2, 2)
    result = torch.mul(Wrapped(x), 2, out=out)
    assert type(result) is torch.Tensor
    assert torch.equal(out, 2 * x)


def test_handlers_are_given_masks() -> None:
    seen: list[Any] = []

    class Noting(Wrapped):
        @classmethod
        def __torch_dispatch__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            seen.append((str(func), args[1] if len(args) > 1 else None))
            return super().__torch_dispatch__(func, types, args, kwargs)

    mask = torch.tensor([True, False])
    result = Noting(x)[mask]
    assert seen[0][0] == "aten.index.Tensor"
    assert seen[0][1][0] is mask
    assert torch.equal(result, x[mask])
    seen.clear()
    assert torch.equal(Noting(x)[x > 1.5], x[x > 1.5])
    assert len(seen[0][1]) == 1
    assert torch.equal(Noting(x)[mask, torch.tensor([1])], x[mask, torch.tensor([1])])


def test_a_wrapper_has_no_memory() -> None:
    assert Wrapped(x).data_ptr() == 0 != x.data_ptr()


def test_a_reduced_sparse_product_is_an_operator() -> None:
    with Calls() as calls:
        torch.sparse.mm(torch.eye(2).to_sparse_csr(), x, reduce="sum")
    assert "aten._sparse_mm_reduce_impl.default" in calls.names


def test_the_default_device_is_named() -> None:
    assert torch._C._get_default_device() == "cpu"


@pytest.mark.parametrize(("dtype", "error"), [(None, TypeError), (torch.bool, TypeError), (torch.float32, ValueError)])
def test_tensors_of_several_elements_are_no_numbers(dtype: Any, error: Any) -> None:
    with pytest.raises(error, match="element"):
        torch.tensor([torch.tensor([0, 1])], dtype=dtype)


def test_private_names_of_overloads() -> None:
    overload = torch.ops.aten.add.Tensor
    assert overload._overloadpacket is torch.ops.aten.add
    assert (overload._name, overload._namespace) == ("aten::add.Tensor", "aten")
    assert torch.equal(overload.op(x, x), x + x)


def test_is_tracing() -> None:
    seen = []
    torch.jit.trace(lambda y: seen.append(torch._C._is_tracing()) or y, (x,))
    assert seen[0]
    assert not torch._C._is_tracing()
