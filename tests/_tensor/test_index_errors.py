"""Errors of index functions and of tensors without dimensions are PyTorch's, type and text."""

from __future__ import annotations

import itertools
import warnings

import pytest

import flambeau

torch = pytest.importorskip("torch")
pytestmark = [pytest.mark.parity, pytest.mark.usefixtures("every_warning")]

_TENSORS = ("ones(())", "ones(3)", "ones(2, 3)", "ones(0)")
_INDICES = ("tensor([0])", "tensor(0)", "tensor([5])", "tensor([-1])", "tensor([0.])", "tensor([[0]])",
            "tensor([0, 1])", "tensor([], dtype=torch.int64)", "tensor([0], dtype=torch.int32)")
_SOURCES = ("ones(())", "ones(1)", "ones(1, 3)", "ones(2, 3)", "ones(1, dtype=torch.float64)", "ones(1, 2, 2)")


def _did(code, library):
    names = {"torch": library}
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            found = eval(code, names)
        except Exception as error:
            return f"{type(error).__name__}: {error}".partition("\nException raised")[0]
    told = [str(w.message).partition(" (Triggered")[0].strip() for w in caught]
    return (tuple(found.shape), found.tolist(), told) if hasattr(found, "tolist") else found


def _compare(codes):
    did = {code: (_did(code, flambeau), _did(code, torch)) for code in codes}
    assert not {code: both for code, both in did.items() if repr(both[0]) != repr(both[1])}


@pytest.mark.parametrize("call", ["index_select({d}, torch.{i})", "gather({d}, torch.{i})",
                                  "take_along_dim(torch.{i}, {d})", "scatter({d}, torch.{i}, 2.0)"])
def test_functions_of_an_index(call):
    _compare(f"torch.{x}." + call.format(d=d, i=i) for x, d, i in itertools.product(_TENSORS, (0, 1, -1), _INDICES))


@pytest.mark.parametrize("name", ["index_add", "index_add_", "index_copy", "index_copy_", "scatter_add", "scatter"])
def test_functions_of_an_index_and_a_source(name):
    def is_comparable(x, s):  # to an empty dimension PyTorch's index_copy fails in its own view
        return not (x == "ones(0)" and "copy" in name)

    _compare(f"torch.{x}.{name}({d}, torch.{i}, torch.{s})"
             for x, d, i, s in itertools.product(_TENSORS, (0, 1, -1), _INDICES, _SOURCES) if is_comparable(x, s))


def test_index_fill():
    _compare(f"torch.{x}.index_fill({d}, torch.{i}, 2.0)"
             for x, d, i in itertools.product(_TENSORS[:3], (0, 1, -1), _INDICES))


_VALUES = ("0.5", "True", "1j", "None", "'a'", "[1, 2]", "torch.tensor(2)", "torch.tensor(2j)", "torch.ones(1)")


@pytest.mark.parametrize("call", ["{x}.index_fill_({d}, {i}, {v})", "{x}.index_fill({d}, {i}, {v})",
                                  "torch.index_fill({x}, {d}, {i}, value={v})", "{x}.scatter_({d}, {i}, {v})",
                                  "{x}.scatter({d}, {i}, value={v})", "torch.scatter({x}, {d}, {i}, {v})",
                                  "{x}.scatter_({d}, {i}, {v}, reduce='add')", "{x}.masked_fill_({i}, {v})"])
def test_values_and_types_of_arguments(call):
    indices = ("torch.tensor([0])", "torch.tensor([0.])", "torch.tensor([True, False, True])", "[0]", "0", "None")
    _compare(call.format(x="torch.ones(3)", d=d, i=i, v=v)
             for d, i, v in itertools.product((0, 1, None, 0.5), indices, _VALUES))


@pytest.mark.parametrize("arguments", ["", "0", "0, i", "0, i, 1, 2", "0, i, foo=1", "0, i, other=1", "i, 0, 1",
                                       "0, i, 1, reduce=2", "0, i, 1, reduce='none'",
                                       "0, i, src='a'"])
@pytest.mark.parametrize("name", ["scatter_", "scatter", "index_fill", "index_fill_"])
def test_numbers_and_names_of_arguments(name, arguments):
    _compare([f"torch.ones(3).{name}({arguments})".replace("i,", "torch.tensor([0]),")])


def test_keys():
    keys = ("0", "-1", "5", "0, 0", "...", "None", "True", "1:", "..., 0", "..., 5", "[0]", "[[0]]", "torch.tensor(0)",
            "torch.tensor([0])", "..., torch.tensor(5)", "torch.tensor([True]), 0", "0, torch.tensor([True])", "1.5",
            "()")
    _compare(f"torch.{x}[{key}]" for x, key in itertools.product(_TENSORS, keys)
             if not (x == "ones(())" and key in ("-1", "5")))  # there PyTorch's text has what it finds in memory


@pytest.mark.parametrize("dtype", ["float32", "complex64", "int64", "bool"])
def test_shapes_of_tensors_without_dimensions(dtype):
    calls = ("mT", "mH", "T", "H", "t()", "adjoint()", "transpose(0, 1)", "transpose(0, -1)", "permute()",
             "permute(())", "movedim(0, 0)", "squeeze(0)", "unsqueeze(-2)", "flatten()", "diagonal()", "unbind()",
             "split(1)", "expand(2)", "expand(-1)", "expand(2, -1)", "hsplit(1)", "vsplit(1)", "dsplit(1)",
             "unflatten(0, (1, -1))", "mv(torch.ones(3))", "narrow(0, 0, 1)",
             "unfold(0, 1, 1)", "broadcast_to(())", "roll(1)", "flip(0)")
    _compare(f"torch.ones({shape}, dtype=torch.{dtype}).{call}" for shape in ("()", "3") for call in calls)


_KEYS = ("1", "-2", "n(0)", "n(1)", "1:", "::2", "-1:9:2", "2:1:3", "::-1", "::0", "...", "None", "(0,)", "(n(1),)")


@pytest.mark.parametrize("shape", ["()", "3", "2, 0", "1, 3", "4, 2, 3"])
def test_basic_keys(shape):
    keys = [*_KEYS, *(f"{a}, {b}" for a, b in itertools.product(_KEYS[:-2], repeat=2))]
    for code in ("(lambda x: x[{}])(torch.ones({}).cumsum(-1))",
                 "(lambda x: (x[{}].grad_fn.name(), x.is_contiguous()))(torch.ones({}, requires_grad=True))",
                 "(lambda x: (x.__setitem__({}, 7.0), x)[1])(torch.ones({}))"):
        calls = [code.format(key if "set" not in code else _written_out(key), shape) for key in keys]
        _compare(f"(lambda n: {call})(torch.tensor(0).numpy().dtype.type)" for call in calls)


def _written_out(key):
    """The key as an expression outside brackets."""
    parts = [f"slice({', '.join(part or 'None' for part in each.split(':'))})" if ":" in each else each
             for each in key.split(", ")]
    return f"({', '.join(parts)})" if len(parts) > 1 else parts[0]
