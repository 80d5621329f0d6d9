"""The checks of values, errors and layout: one way of calling each, made on both libraries and compared."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from typing import Any

from . import compare, opdb
from .bridge import Missing, Side, Unsupported, dtype_name
from .outcome import Outcome, attempt, first_line, raised
from .rebind import rebind
from .runs import Call, Run, both, call, check, compare_samples, describe, verdict

# ---- values


def function(run: Run) -> Callable[[Any], tuple[Call, Call]]:
    """The operator as a public function, called on both sides."""
    return functools.partial(both, run, run.op.op, path=run.op.name)


@check
def forward(run: Run) -> Iterator[Outcome]:
    """The function: values, dtype, shape, number and kind of outputs."""
    pair = function(run)
    for outcome, *_ in compare_samples(run, "forward", run.dtypes(run.usual), pair):
        yield outcome


@check
def dtypes(run: Run) -> Iterator[Outcome]:
    """Every dtype the operator takes (of those the candidate has): result dtype and values."""
    pair = function(run)
    there = [name for name in opdb.dtype_names(run.op) if run.have.has_dtype(name)]
    for outcome, *_ in compare_samples(run, "dtypes", run.dtypes(there), pair, share=0.4):
        yield outcome


@check
def context(run: Run) -> Iterator[Outcome]:
    """Within `torch.device("meta")`: which results are on meta. Tensors that are made of others are not."""
    pair = functools.partial(both, run, run.op.op, path=run.op.name, within=_on_meta)
    for dtype in run.dtypes(run.usual):
        for index, sample in run.samples(dtype, share=0.3):
            try:
                want, have = pair(sample)
            except Unsupported:
                continue
            places = [[str(x.device) for x in made.side.tensors(made.result.value)] if made.result.error is None
                      else [type(made.result.error).__name__] for made in (want, have)]
            reason = "" if places[0] == places[1] else f"{places[1]}, expected {places[0]}"
            yield run.outcome("context", dtype, index, reason, f"{describe(sample)}\n{have.result.trace}")


def _on_meta(side: Side) -> Any:
    return side.module.device("meta")


def strided_apart(sample: Any) -> Any:
    """The sample with gaps in every tensor; sparse ones have no strides."""
    if (apart := attempt(sample.noncontiguous)).error is not None:
        raise Unsupported(str(apart.error))
    return apart.value


@check
def noncontig(run: Run) -> Iterator[Outcome]:
    """The same samples with every tensor strided apart."""
    pair = function(run)
    for outcome, *_ in compare_samples(
        run, "noncontig", run.dtypes(run.usual), lambda s: pair(strided_apart(s)), share=0.5
    ):
        yield outcome


@check
def method(run: Run) -> Iterator[Outcome]:
    """Tensor.name(...)"""
    if run.op.method_variant is None:
        return
    pair = functools.partial(both, run, run.op.method_variant)
    for outcome, *_ in compare_samples(run, "method", run.dtypes(run.usual), pair, share=0.5):
        yield outcome


@check
def operator(run: Run) -> Iterator[Outcome]:
    """Python's operator, and its augmented assignment."""
    for function in (run.op.operator_variant, run.op.inplace_operator_variant):
        if function is None:
            continue
        arity = 1 if opdb.is_elementwise(run.op) and not hasattr(run.op, "lhs_make_tensor_kwargs") else 2
        for dtype in run.dtypes(run.usual):
            for index, sample in run.samples(dtype, share=0.5):
                if sample.kwargs or len(sample.args) != arity - 1:
                    continue
                want, have = both(run, function, sample)
                reason, detail = verdict(run, want.result, have.result)
                yield run.outcome("operator", dtype, index, reason, f"{describe(sample)}\n{detail}")


@check
def alias(run: Run) -> Iterator[Outcome]:
    """PyTorch's other names for the operator: function, method, in-place method."""
    dtype = run.dtype or next(iter(run.usual), "float32")
    for other in run.op.aliases:
        for kind in ("op", "method_variant", "inplace_variant"):
            function = getattr(other, kind)
            if function is None:
                continue
            for index, sample in run.samples(dtype, share=0.1):
                if kind == "inplace_variant" and sample.broadcasts_input:
                    continue
                try:
                    path = other.name if kind == "op" else f"Tensor.{other.name}" + "_" * (kind[0] == "i")
                    want = call(run.want, function, sample)
                    have = call(run.have, rebind(function, run.have.module, path), sample)
                    reason, detail = verdict(run, want.result, have.result, sample)
                except Missing as missing:
                    reason, detail = str(missing), ""
                yield run.outcome("alias", dtype, index, reason, f"{other.name} {describe(sample)}\n{detail}")


@check
def inplace(run: Run) -> Iterator[Outcome]:
    """Tensor.name_(...): values, that the result is the input, and the version counter's step."""
    if run.op.inplace_variant is None:
        return
    pair = functools.partial(both, run, run.op.inplace_variant)
    usual = run.dtypes(opdb.dtype_names(run.op)[:3])
    for outcome, want, have in compare_samples(run, "inplace", usual, pair, share=0.5):
        if outcome.ok and want.result.error is None:
            outcome.reason = _in_place_difference(want, have) or ""
        yield outcome


def _in_place_difference(want: Call, have: Call) -> str | None:
    if (want.result.value is want.input) != (have.result.value is have.input):
        return "result is not the input"
    if not hasattr(want.input, "_version"):
        return None
    # Both copies are fresh, so their versions count this call alone.
    if want.input._version != have.input._version:
        return f"_version is {have.input._version}, expected {want.input._version}"
    return None


@check
def out(run: Run) -> Iterator[Outcome]:
    """out=: into the right shape, into an empty tensor, and into a wrong dtype."""
    if not run.op.supports_out:
        return
    dtype = run.dtype or next(iter(run.usual), "float32")
    functions = [(side, opdb.function_of(run.op, side)) for side in (run.want, run.have)]
    for index, sample in run.samples(dtype, share=0.4):
        first = call(*functions[0], sample).result
        if first.error is not None or not list(run.want.tensors(first.value)):
            continue
        for kind in ("right", "empty", "integer"):
            if kind == "integer" and index:
                continue
            try:
                want, have = (_into(*pair, sample, first.value, kind, run) for pair in functions)
            except Unsupported:
                continue
            reason, detail = verdict(run, want.result, have.result, sample)
            if not reason and want.result.error is None:
                reason = None if _is_out(want) == _is_out(have) else "result is not out"
            yield run.outcome(
                "out", dtype, index, reason and f"{kind} out: {reason}", f"{describe(sample)}\n{detail}"
            )


def _into(side: Side, function: Callable, sample: Any, like: Any, kind: str, run: Run) -> Call:
    def room(result: Any) -> Any:
        if run.want.is_tensor(result):
            dtype = run.want.module.int64 if kind == "integer" else result.dtype
            shape = (0,) if kind == "empty" else tuple(result.shape)
            # Made by the library itself: memory lent by NumPy could not be resized.
            return side.module.zeros(shape, dtype=side.dtype(dtype_name(dtype)))
        rooms = [room(item) for item in result]
        return rooms if isinstance(result, list) else tuple(rooms)

    return call(side, function, sample, out=room(like))


def _is_out(made: Call) -> bool:
    given = list(made.side.tensors(made.kwargs["out"]))
    returned = list(made.side.tensors(made.result.value))
    return len(given) == len(returned) and all(a is b for a, b in zip(given, returned, strict=True))


# ---- errors


@check
def errors(run: Run) -> Iterator[Outcome]:
    """PyTorch's bad inputs: the same exception type."""
    for index, expected, want, have in _bad_calls(run):
        if want.result.error is None:
            continue
        reason, detail = verdict(run, want.result, have.result)
        yield run.outcome("errors", "-", index, reason, f"{describe(expected.sample_input)}\n{detail}")


@check
def messages(run: Run) -> Iterator[Outcome]:
    """PyTorch's bad inputs: the same first line of the message."""
    for index, expected, want, have in _bad_calls(run):
        errors_ = want.result.error, have.result.error
        if None in errors_:
            continue
        text, other = map(first_line, errors_)
        reason = None if text == other else f"message {other[:200]!r}, expected {text[:200]!r}"
        yield run.outcome("messages", "-", index, reason, describe(expected.sample_input))


def _bad_calls(run: Run) -> Iterator[tuple[int, Any, Call, Call]]:
    if run.op.error_inputs_func is None:
        return
    for index, expected in enumerate(run.op.error_inputs("cpu")):
        if run.only is not None and index != run.only:
            continue
        try:
            want, have = both(run, run.op.op, expected.sample_input, path=run.op.name)
        except (Unsupported, Missing):
            continue
        yield index, expected, want, have


@check
def unsupported(run: Run) -> Iterator[Outcome]:
    """Dtypes PyTorch's CPU refuses are refused."""
    usual = ["bool", "int64", "float16", "complex64"]
    for dtype in run.dtypes([n for n in usual if n not in opdb.dtype_names(run.op)]):
        refused = attempt(lambda dtype=dtype: list(run.samples(dtype, share=0.1)))
        for index, sample in refused.value or ():
            want, have = both(run, run.op.op, sample, path=run.op.name)
            if want.result.error is None:
                continue
            reason, detail = verdict(run, want.result, have.result)
            yield run.outcome("unsupported", dtype, index, reason, f"{describe(sample)}\n{detail}")


@check
def warnings(run: Run) -> Iterator[Outcome]:
    """The same warnings, category and first line."""
    pair = function(run)
    for outcome, want, have in compare_samples(run, "warnings", run.dtypes(run.usual), pair):
        if want.result.error is None and have.result.error is None:
            extra = set(have.result.warnings) - set(want.result.warnings)
            lost = set(want.result.warnings) - set(have.result.warnings)
            outcome.reason = f"warnings {sorted(extra)}, expected {sorted(lost)}" if extra or lost else ""
            yield outcome


# ---- layout


@check
def strides(run: Run) -> Iterator[Outcome]:
    """The strides of the results."""
    pair = function(run)
    for outcome, want, have in compare_samples(run, "strides", run.dtypes(run.usual), pair):
        if _comparable(want, have):
            pairs = list(
                zip(want.side.tensors(want.result.value), have.side.tensors(have.result.value), strict=True)
            )
            found = attempt(lambda p=pairs: next((r for w, h in p if (r := compare.strides(w, h))), ""))
            outcome.reason = found.value if found.error is None else raised(found.error)
            yield outcome


@check
def views(run: Run) -> Iterator[Outcome]:
    """Which results are, or share memory with, which inputs."""
    pair = function(run)
    for outcome, want, have in compare_samples(run, "views", run.dtypes(run.usual), pair):
        if _comparable(want, have):
            shared = [
                compare.sharing(c.side, list(c.side.tensors(c.result.value)), c.crossing.tensors)
                for c in (want, have)
            ]
            outcome.reason = (
                "" if shared[0] == shared[1] else f"{shared[1] or 'no sharing'}, expected {shared[0]}"
            )
            yield outcome


def _comparable(want: Call, have: Call) -> bool:
    if want.result.error is not None or have.result.error is not None:
        return False
    shapes = [[tuple(t.shape) for t in c.side.tensors(c.result.value)] for c in (want, have)]
    return shapes[0] == shapes[1]
