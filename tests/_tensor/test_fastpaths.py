"""Fast paths against `apply`: for every operator with a fast path, both give the same observable result.

The sample calls are those of the operator records (`tests/ops/records_*.py`). Each runs twice: as it is, and with
`modes.special` set, which makes every fast path step aside for `apply`. Values, dtypes, strides, graphs, saved tensors,
versions, gradients and errors are compared. The list of fast paths comes from the code objects of the package.
"""

from __future__ import annotations

import gc
import sys
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from types import FunctionType
from typing import Any

import numpy as np
import pytest

import flambeau as torch
from flambeau._tensor.dispatch.public_functions import public_function
from flambeau._tensor.fastpath.unary_with_parameters import keyword_parameters
from flambeau.modes import special
from flambeau.ops.backward_plan import BackwardPlan
from flambeau.ops.declare import REGISTRY
from tests.ops.spec import RECORDS, Make, Sample, load, public

load()
F = torch.nn.functional


@contextmanager
def general_path() -> Iterator[None]:
    """A block without fast paths: `special` counts active modes; one that is no level excludes them all."""
    special[0] += 1
    try:
        yield
    finally:
        special[0] -= 1


# ----- the list of fast paths -----

def operator_of(variables: dict[str, Any]) -> str | None:
    """The operator of a fast path, from its closure."""
    if "op" in variables:
        return variables["op"].name
    plan = variables.get("plan") or (variables.get("plans") or (None, None))[1]
    if plan is not None and not isinstance(plan, BackwardPlan):  # of a launch
        return None
    if plan is None:  # operators without derivatives have none
        return getattr(variables.get("general"), "__name__", None)
    return plan.op.name


MAKERS = ("_unary", "_binary", "positional_parameters", "values_and_indices", "view_function", "copy_function")


def fast_paths() -> dict[str, set[str]]:
    """Every operator with a fast path -> the names of the functions in `fastpath` that make it."""
    paths: dict[str, set[str]] = {}
    for op in REGISTRY.values():
        public_function(op)
        if keyword_parameters(op) is not None:
            paths.setdefault(op.name, set()).add("keyword_parameters")
    for function in gc.get_objects():
        if type(function) is FunctionType and "/_tensor/fastpath/" in function.__code__.co_filename:
            maker = function.__code__.co_qualname.partition(".")[0]
            if function.__closure__ is None or maker not in MAKERS or function.__name__ == "<lambda>":
                continue
            cells = zip(function.__code__.co_freevars, function.__closure__, strict=True)
            name = operator_of({variable: cell.cell_contents for variable, cell in cells})
            if name is not None:
                paths.setdefault(name, set()).add(maker)
    return paths


FAST_PATHS = fast_paths()


@contextmanager
def recorded_calls(names: set[tuple[str, str]]) -> Iterator[None]:
    """Collect (operator, function of `fastpath`) for each fast path that runs."""
    def profile(frame: Any, event: str, argument: Any) -> None:
        code = frame.f_code
        if event == "return" and "/_tensor/fastpath/" in code.co_filename and "<locals>" in code.co_qualname:
            if argument is None or argument is NotImplemented or code.co_name == "<genexpr>":  # of what makes them
                return
            name = operator_of(frame.f_locals)
            if name is not None:
                names.add((name, code.co_qualname.partition(".")[0]))

    sys.setprofile(profile)
    try:
        yield
    finally:
        sys.setprofile(None)


# ----- what a call shows -----

def tensors_in(value: Any) -> list[Any]:
    if isinstance(value, torch.Tensor):
        return [value]
    if isinstance(value, dict):
        value = tuple(value.values())
    return [t for item in value for t in tensors_in(item)] if isinstance(value, (list, tuple)) else []


def graph_of(node: Any, depth: int = 3) -> Any:
    """The names of a node and of its inputs, and the numbers of the outputs that they are."""
    if node is None or not depth:
        return None
    return node.name(), [(graph_of(parent, depth - 1), number) for parent, number in node.next_functions]


def plain(value: Any) -> Any:
    """A value that compares by content."""
    if isinstance(value, torch.Tensor):
        return value.dtype, tuple(value.shape), value.stride(), value.detach()._array.tobytes()
    if isinstance(value, (list, tuple)):
        return tuple(plain(item) for item in value)
    return repr(value)


def saved_by(node: Any) -> dict[str, Any]:
    if node is None or node.name() in ("AccumulateGrad",):
        return {}
    saved = {name: getattr(node, name) for name in dir(node) if name.startswith("_saved_")}
    return {name: scalar(value) if isinstance(value, torch.Tensor) and not value.ndim else plain(value)
            for name, value in saved.items() if not callable(value)}


def scalar(x: Any) -> str:
    """A saved 0-d tensor without its dtype: for a Python scalar `apply` saves the result's dtype, PyTorch int64 or
    float64, as the fast paths do."""
    return repr(np.complex64(x.item()))


def shown(function: Callable[..., Any], sample: Sample, mode: Any) -> dict[str, Any]:
    """Everything that a program can observe of a call."""
    inputs = tensors_in((sample.args, sample.kwargs))
    leaves = [x for x in inputs if x.requires_grad]
    with warnings.catch_warnings(record=True) as caught, mode:
        warnings.simplefilter("always")
        try:
            result = function(*sample.args, **sample.kwargs)
        except Exception as error:
            return {"error": (type(error).__name__, str(error))}
    outs = tensors_in(result)
    seen: dict[str, Any] = {
        "type": type(result).__name__,
        "warnings": [str(w.message) for w in caught],
        "values": [plain(x) for x in outs],
        "requires_grad": [x.requires_grad for x in outs],
        "is_leaf": [x.is_leaf for x in outs],
        "is_inference": [x.is_inference() for x in outs],
        "output_nr": [x.output_nr for x in outs],
        "is_view": [x._is_view() for x in outs],
        "base": [next((i for i, y in enumerate(inputs) if x._base is y), None) if x._is_view() else None for x in outs],
        "is_input": [next((i for i, y in enumerate(inputs) if x is y), None) for x in outs],
        "versions": [None if x.is_inference() else x._version for x in (*inputs, *outs)],
        "graph": [graph_of(x.grad_fn) for x in outs],
        "saved": [saved_by(x.grad_fn) for x in outs],
    }
    live = [x for x in outs if x.requires_grad]
    if live and leaves:
        seeds = [torch.full_like(x.detach(), 0.5) for x in live]
        try:
            gradients = torch.autograd.grad(live, leaves, seeds, allow_unused=True, retain_graph=True)
            seen["gradients"] = [plain(g) for g in gradients]
        except Exception as error:
            seen["gradients"] = (type(error).__name__, str(error))
        with torch.no_grad():
            for x in (*leaves, *live):
                x._bump_version()
        try:  # which saved tensors are checked
            torch.autograd.grad(live, leaves, seeds, allow_unused=True)
            seen["modified"] = "no saved tensor was modified"
        except RuntimeError as error:
            # the fast path of `linear` makes no view of the weight, and so names another node than PyTorch
            seen["modified"] = str(error).replace("output 0 of T,", "output 0 of AsStrided,")
    return seen


# ----- inputs -----

LAYOUTS: dict[str, Callable[[Any], Any]] = {
    "contiguous": lambda x: x.clone(),
    "transposed": lambda x: x.mT.clone(memory_format=torch.contiguous_format).mT if x.ndim >= 2 else x.clone(),
    "strided": lambda x: torch.stack([x, x], -1)[..., 0],
}
MODES: dict[str, Callable[[], Any]] = {
    "grad": nullcontext, "no_grad": torch.no_grad, "inference_mode": torch.inference_mode,
}
DTYPES = (torch.float32, torch.float64, torch.bfloat16, torch.complex64)


def prepared(sample: Sample, layout: str, requires_grad: str) -> Sample:
    """A sample with new tensors of a layout.

    Args:
        requires_grad: "none", "leaf", "non-leaf" or "view" (of a non-leaf).
    """
    def new(x: Any) -> Any:
        x = LAYOUTS[layout](x.detach()).detach()
        if requires_grad == "none" or not (x.dtype.is_floating_point or x.dtype.is_complex):
            return x
        x.requires_grad_()
        return x if requires_grad == "leaf" else x * 1 if requires_grad == "non-leaf" else (x * 1).view_as(x)

    def replaced(value: Any) -> Any:
        if isinstance(value, torch.Tensor):
            return new(value)
        if isinstance(value, (list, tuple)) and type(value) in (list, tuple):
            return type(value)(replaced(item) for item in value)
        return value

    return Sample(tuple(replaced(x) for x in sample.args), {k: replaced(v) for k, v in sample.kwargs.items()})


def samples_of(name: str, dtype: Any) -> list[Sample]:
    record = RECORDS[name]
    if not record.floats and not record.integers:
        return []
    return list(record.samples(Make(torch, dtype, False)))


#: calls that no record makes
def gathered_gradient(x: Any) -> Any:
    """The gradient of max pooling's gradient by the cotangent."""
    y = F.max_pool2d((x * 1)[None], 2)
    cotangent = torch.ones_like(y).requires_grad_()
    g, = torch.autograd.grad(y, x, cotangent, create_graph=True)
    return torch.autograd.grad(g, cotangent, torch.ones_like(g).requires_grad_(), create_graph=True)[0]


MORE: dict[str, Callable[..., Any]] = {
    "gradient of max pooling's gradient": gathered_gradient,
    "float on the left": lambda x: 2.5 - x, "int on the right": lambda x: x * 3, "a large int": lambda x: x + 2 ** 70,
    "bool": lambda x: x + True, "nan": lambda x: x + float("nan"), "minus zero": lambda x: x * -0.0,
    "a row": lambda x: x + x[0], "a column": lambda x: x * x[:, :1], "0-d": lambda x: x - x[0, 0],
    "another dtype": lambda x: x * x.detach().double().long(), "twice": lambda x: x * x,
    "not a tensor": lambda x: x + "1",
    "shapes that do not match": lambda x: x + x[:, :3], "sum as float64": lambda x: x.sum(0, dtype=torch.float64),
    "one element": lambda x: x[0, 0] * x[1, 1], "tanh of one element": lambda x: x[0, 0].tanh(),
    "int power": lambda x: x ** 3, "complex power": lambda x: x ** 2j, "linear": lambda x: F.linear(x, x, x[0]),
    "linear without bias": lambda x: F.linear(x, x), "@": lambda x: x @ x, "@ of a transpose": lambda x: x.T @ x,
    "nll_loss": lambda x: F.nll_loss(x, torch.tensor([0, 1, 3, 2])), "glu of an odd size": lambda x: F.glu(x[:, :3]),
    "max": lambda x: x.max(1), "sort": lambda x: x.sort(0), "median": lambda x: x.median(1), "x[1]": lambda x: x[1],
    "x[1:, 0]": lambda x: x[1:, 0], "x[None]": lambda x: x[None], "x[index]": lambda x: x[torch.tensor([2, 0])],
    "cat": lambda x: torch.cat([x, x], 1), "stack": lambda x: torch.stack([x, x]), "chunk": lambda x: x.chunk(3, 1),
    "to float64": lambda x: x.to(torch.float64), "squeeze": lambda x: x[:1].squeeze(), "T": lambda x: x.T,
    "expand": lambda x: x[0].expand(3, 4), "unsqueeze": lambda x: x.unsqueeze(-1), "index out of range": lambda x: x[9],
    "x[...]": lambda x: x[...], "x[:, 1]": lambda x: x[:, 1], **{
        f"pad {rank}d by {mode}": lambda x, mode=mode, rank=rank: F.pad(
            x.reshape(1, *{1: (4, 4), 2: (2, 2, 4), 3: (1, 2, 2, 4)}[rank]), (1, 1) + (1, 1) * (rank - 1), mode)
        for mode in ("reflect", "replicate") for rank in (1, 2, 3)},
    **{f"interpolate {rank}d by {mode}{' antialiased' * antialias}": lambda x, mode=mode, rank=rank, a=antialias: (
        F.interpolate(x.reshape(1, 2, *{1: (8,), 2: (2, 4), 3: (2, 2, 2)}[rank]), scale_factor=2, mode=mode,
                      antialias=a))
       for mode, ranks, antialias in (
           ("nearest", (1, 2, 3), False), ("nearest-exact", (1, 2, 3), False), ("linear", (1,), False),
           ("bilinear", (2,), False), ("bicubic", (2,), False), ("trilinear", (3,), False), ("bilinear", (2,), True),
           ("bicubic", (2,), True), ("lanczos", (2,), True)) for rank in ranks},
    "pixel_shuffle": lambda x: F.pixel_shuffle(x.reshape(4, 2, 2), 2),
    "pixel_unshuffle": lambda x: F.pixel_unshuffle(x.reshape(1, 4, 4), 2),
    "channel_shuffle": lambda x: F.channel_shuffle(x.reshape(1, 4, 4), 2),
    "view of a view": lambda x: x.view(2, 8).view(16), "view that does not fit": lambda x: x.view(3, 5),
}


#: operators that public functions call in place, with values drawn before, with complex tensors, with two inputs or by
#: `apply` only: their fast paths, which follow from their declarations, never run
UNREACHABLE = {"_causal_zero", "_fft_c2r", "_standard_gamma", "bernoulli", "cauchy", "conj", "exponential", "geometric",
               "log_normal", "norm", "normal", "poisson", "prelu", "random", "uniform", "zero"}


def check(function: Callable[..., Any], sample: Sample, dtype: Any, where: str) -> None:
    for layout in LAYOUTS:
        for mode, entered in MODES.items():
            for requires_grad in ("none", "leaf", "non-leaf", "view"):
                if layout != "contiguous" and (mode != "grad" or requires_grad not in ("none", "leaf")):
                    continue
                if dtype is not torch.float32 and (mode != "grad" or requires_grad in ("non-leaf", "none")):
                    continue
                fast = shown(function, prepared(sample, layout, requires_grad), entered())
                general = shown_general(function, prepared(sample, layout, requires_grad), entered())
                for what in fast.keys() | general.keys():
                    assert fast.get(what) == general.get(what), (
                        f"{where}: {what} of the fast path and of `apply` differ ({dtype}, {layout}, {mode}, "
                        f"requires_grad={requires_grad})")


def shown_general(function: Callable[..., Any], sample: Sample, mode: Any) -> dict[str, Any]:
    """`shown` of a call by the general path; only the call itself, so that backward runs as usual."""
    def call(*args: Any, **kwargs: Any) -> Any:
        with general_path():
            return function(*args, **kwargs)

    return shown(call, sample, mode)


NAMES = sorted(name for name in RECORDS if name.rpartition(".")[2] != "rrelu")


@pytest.mark.usefixtures("every_warning")
@pytest.mark.parametrize(("name", "dtype"), [(name, dtype) for name in NAMES for dtype in DTYPES
                                             if RECORDS[name].complex or not dtype.is_complex], ids=str)
def test_records_by_both_paths(name: str, dtype: Any) -> None:
    function = public(torch, name)
    for i, sample in enumerate(samples_of(name, dtype)):
        check(function, sample, dtype, f"{name}, sample {i}")


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16, torch.int64], ids=str)
@pytest.mark.parametrize("name", MORE)
def test_other_calls_by_both_paths(name: str, dtype: Any) -> None:
    x = (torch.arange(16.).reshape(4, 4) / 8 - 1).to(dtype)
    check(MORE[name], Sample((x,)), dtype, name)


@pytest.mark.parametrize("name", ["exp", "erf", "leaky_relu", "add", "mul"])
def test_large_tensors_by_both_paths(name: str) -> None:
    x = torch.linspace(-1, 1, 100 * 400).reshape(100, 400)
    function: Any = {"leaky_relu": F.leaky_relu, "add": lambda x: x + x, "mul": lambda x: x * 2.5}.get(name) or getattr(
        torch, name)
    check(function, Sample((x,)), x.dtype, name)


def test_every_fast_path_is_compared() -> None:
    ran: set[tuple[str, str]] = set()
    x = (torch.arange(16.).reshape(4, 4) / 8 - 1).requires_grad_()
    calls = [(public(torch, name), sample) for name in NAMES for sample in
             ([] if not RECORDS[name].floats else RECORDS[name].samples(Make(torch, torch.float32, True)))]
    calls += [(function, Sample((y,))) for function in MORE.values() for y in (x, x.detach())]
    with recorded_calls(ran), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for function, sample in calls:
            try:
                outs = [y for y in tensors_in(function(*sample.args, **sample.kwargs)) if y.requires_grad]
                leaves = [y for y in tensors_in((sample.args, sample.kwargs)) if y.requires_grad]
                gradients = torch.autograd.grad(outs, leaves, list(map(torch.ones_like, outs)), create_graph=True,
                                                allow_unused=True)  # rules apply operators, too
                sum((g * g).sum() for g in gradients if g is not None).backward()
            except Exception:
                continue
    missing = FAST_PATHS.keys() - {name for name, _ in ran} - UNREACHABLE
    assert not missing, f"no record calls the fast paths of {sorted(missing)}"
    assert len(FAST_PATHS) > 150


# ----- in place -----

@pytest.mark.parametrize("name", ["add_", "sub_", "mul_", "div_", "copy_", "fill_", "zero_"])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.int64], ids=str)
def test_writes_by_both_paths(name: str, dtype: Any) -> None:
    def write(x: Any, y: Any) -> Any:
        return getattr(x, name)(*(() if name == "zero_" else (y,) if name != "fill_" else (3,)))

    for other in ("same shape", "row", "number", "itself"):
        x = (torch.arange(12.).reshape(3, 4) + 1).to(dtype)
        operand: Any = {"same shape": x + 1, "row": x[0] + 1, "number": 2.0, "itself": None}[other]

        def run(x: Any = x, operand: Any = operand) -> Any:
            target = x.clone()
            return write(target, target if operand is None else operand)

        if name == "copy_" and other == "number":
            continue
        fast = shown(run, Sample(()), nullcontext())
        assert fast == shown_general(run, Sample(()), nullcontext()), (name, other)


def test_assignments_by_both_paths() -> None:
    keys: list[Any] = [0, slice(1, 3), (slice(None), 1), (0, 1), None, Ellipsis, slice(None, None, 2), 9]
    for key in keys:
        for value in (1, 2.5, 1e39, torch.tensor(3.0), torch.ones(4), torch.ones(4, dtype=torch.float64)):
            def run(key: Any = key, value: Any = value) -> Any:
                x = torch.zeros(4, 4)
                x[key] = value
                return x

            fast = shown(run, Sample(()), nullcontext())
            assert fast == shown_general(run, Sample(()), nullcontext()), (key, value)


# ----- other behavior of fast paths -----

def test_versions_of_saved_tensors_are_checked() -> None:
    x = torch.randn(3, 3, requires_grad=True)
    y = x * 1
    out = F.leaky_relu(y)
    y.add_(1)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        out.sum().backward()


@pytest.mark.parametrize("scale", [1.0, 0.0, float("nan")])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.float16], ids=str)
def test_norms_of_cosines_are_clamped(scale: float, dtype: Any) -> None:
    x = (torch.arange(12.).reshape(3, 4) * scale).to(dtype).requires_grad_()
    y = torch.ones(3, 4, dtype=dtype)
    found = F.cosine_similarity(x, y, eps=0.5)
    norms = [t.detach().double().numpy() for t in (x, y)]
    lengths = [np.maximum(np.sqrt((n * n).sum(1)), 0.5) for n in norms]
    expected = (norms[0] * norms[1]).sum(1) / lengths[0] / lengths[1]
    np.testing.assert_allclose(found.detach().double().numpy(), expected, rtol=1e-2 if dtype is torch.float16 else 1e-6)
    found.sum().backward()
    assert x.grad is not None


def test_chunks_take_integers_of_any_type() -> None:
    x = torch.arange(12.).reshape(3, 4)
    for dim in (1, -1, np.int64(1)):
        pieces = x.chunk(2, dim)
        assert isinstance(pieces, tuple)
        assert [tuple(piece.shape) for piece in pieces] == [(3, 2), (3, 2)]
