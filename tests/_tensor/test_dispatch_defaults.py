"""Handlers of `__torch_dispatch__` that pass operators on, copies of wrappers, and results that are no tensors."""

from __future__ import annotations

import copy

import pytest

from tests.autograd.differential import attempt, same


def _subclass(torch, handler):
    """A class with memory of its own whose handler is given."""
    class Sub(torch.Tensor):
        @staticmethod
        def __new__(cls, elements):
            return torch.Tensor._make_subclass(cls, elements)

        @classmethod
        def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
            return handler(super().__torch_dispatch__, func, types, args, kwargs)

    return Sub


def _wrapper(torch, closed):
    """A class without memory, with a slot; its results are of the class where `closed`."""
    class Wrapper(torch.Tensor):
        __slots__ = ("elements",)

        @staticmethod
        def __new__(cls, elements, requires_grad=False):
            made = torch.Tensor._make_wrapper_subclass(cls, elements.size(), dtype=elements.dtype,
                                                       requires_grad=requires_grad)
            made.elements = elements
            return made

        @classmethod
        def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
            result = func(*(x.elements if isinstance(x, cls) else x for x in args), **(kwargs or {}))
            return cls(result) if closed and isinstance(result, torch.Tensor) else result

    return Wrapper


def test_handlers_that_ask_their_superclass():
    def program(torch):
        seen = []

        def handler(inherited, func, types, args, kwargs):
            seen.append(str(func))
            return inherited(func, types, list(args), kwargs)

        Sub = _subclass(torch, handler)
        x = Sub(torch.ones(2))
        y = x + Sub(torch.ones(2))
        return type(y).__name__, y, x.neg(), torch.cat([x, x]), seen

    same(program)


@pytest.mark.parametrize("result", [1, "text", None])
def test_results_that_are_no_tensors(result):
    def program(torch):
        x = _subclass(torch, lambda *call: result)(torch.ones(2))
        return [attempt(step) for step in (x.neg, x.detach, x.sum, lambda: x + 1, lambda: torch.cat([x, x]))]

    same(program)


@pytest.mark.parametrize("closed", [False, True])
def test_copies_of_wrappers(closed):
    def program(torch):
        Wrapper = _wrapper(torch, closed)
        x = Wrapper(torch.arange(3.), requires_grad=True)
        x.other = [1]

        def copied(value):
            made = copy.deepcopy(value)
            return (type(made).__name__, made.elements, made.elements is value.elements, made.requires_grad,
                    made.__dict__.get("other"), made is value)

        return attempt(lambda: copied(x)), attempt(lambda: copied(torch.nn.Parameter(Wrapper(torch.arange(2.)))))

    same(program)


@pytest.mark.parametrize("modes", [0, 1, 2])
def test_masks_through_handlers(modes):
    def program(torch):
        from contextlib import ExitStack
        from importlib import import_module

        class Passes(import_module(f"{torch.__name__}.utils._python_dispatch").TorchDispatchMode):
            def __torch_dispatch__(self, func, types, args=(), kwargs=None):
                return func(*args, **(kwargs or {}))

        with ExitStack() as stack:
            for _ in range(modes):
                stack.enter_context(Passes())
            x, one = torch.tensor([1., -2., 3.], requires_grad=True), torch.ones(1)
            table = torch.arange(6.).reshape(2, 3)
            x[x > 0].sum().backward()
            found = [x.grad, one[one > 0], one[one > 5], table[table > 2], table[:, torch.tensor([True, False, True])],
                     table[torch.tensor([0, 1]), torch.tensor([True, True, False])]]
            one[one > 0], table[table > 2] = 3., torch.tensor([7., 8., 9.])
            return [each.detach() for each in (*found, one, table)]

    same(program)


def test_graphs_of_masks_without_dimensions():
    def program(torch):
        def function(x):
            y, mask, z = x.clone(), x > 0, torch.zeros(2, 3)
            y[mask] = x * 2
            z[:, mask] = 1.
            z[mask, ..., None] = 2.
            return y, y[mask], z

        traced = torch.jit.trace(function, (torch.tensor(1.),), check_trace=False)
        return [each.kind() for each in traced.graph.nodes()][:2], traced(torch.tensor(2.))[0]

    same(program)
