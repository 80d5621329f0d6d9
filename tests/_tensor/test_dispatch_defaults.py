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
