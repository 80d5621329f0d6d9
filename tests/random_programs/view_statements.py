"""Statements that make views: of every sort, of views, and under the modes that forbid writing to them."""

from __future__ import annotations

from typing import Any

from .generation import Unfit, Writer, statement


def basic_key(w: Writer, t: Any) -> str:
    """An index of ints, slices, None and `...` for a tensor."""
    parts = []
    for size in t.shape[: w.random.randrange(1, t.ndim + 1)] if t.ndim else ():
        kind = w.random.random()
        if kind < 0.4 and size:
            parts.append(str(w.random.randrange(-size, size)))
        elif kind < 0.9:
            start = w.choose("", "", "0", "1", "-1", "-2")
            stop = w.choose("", "", "1", "2", "-1", "3")
            step = w.choose("", "", "", ":2")
            parts.append(f"{start}:{stop}{step}")
        else:
            parts.append(":")
    if w.chance(0.12):
        parts.insert(w.random.randrange(len(parts) + 1), "None")
    if w.chance(0.15) or not parts:
        parts.insert(w.random.randrange(len(parts) + 1), "...")
    if w.chance(0.01):
        parts.append("99")
    return ", ".join(parts)


def view_of(w: Writer, x: str) -> str:
    """An expression that gives a view of a tensor."""
    t = w.value(x)
    n = t.ndim
    dim = w.dim(t, 0.01 if t._base is None else 0.0)
    options = [f"{x}.detach()", f"{x}.unsqueeze({dim})", f"{x}.squeeze()", f"{x}.reshape(-1)",
               f"{x}.view(-1)" if t.is_contiguous() or t._base is None else f"{x}.reshape(-1)",
               f"{x}.view({x}.shape)", f"{x}.expand({', '.join(['2', *map(str, t.shape)])})", f"{x}.flatten()",
               f"{x}.expand_as({x})", f"{x}.view_as({x})", f"{x}[...]", f"{x}[None]"]
    if not n:
        options += [f"{x}.mT", f"{x}.T", f"{x}.t()", f"{x}.permute(())", f"{x}.transpose(0, -1)",
                    f"{x}[0]"]  # for other indices PyTorch reads memory that is not the tensor's
        options += [f"{x}.expand(-1)"] * (t._base is None)
        options += [f"{x}.{w.choose('mH', 'H', 'adjoint()')}"] * (not t.is_complex())
    if n:
        options += [f"{x}[{basic_key(w, t)}]"] * 6
        size = t.shape[dim] if -n <= dim < n else 1
        start = w.random.randrange(size + 1)
        options += [f"{x}.narrow({dim}, {start}, {w.random.randrange(size - start + 1)})", f"{x}.squeeze({dim})",
                    f"{x}.unfold({dim}, {min(2, size)}, 2)", f"{x}.select({dim}, {w.random.randrange(max(size, 1))})",
                    f"{x}.movedim({dim}, 0)", f"{x}.flatten(0)", f"{x}.unflatten({dim}, (1, -1))"]
        if t.numel():
            step = [w.choose(0, 1, 1, 2) for _ in range(w.choose(1, 2))]
            sizes = [w.choose(1, 2) for _ in step]
            offset = w.choose(None, 0, 1)
            last = sum((s - 1) * n for s, n in zip(sizes, step, strict=True)) + (
                t.storage_offset() if offset is None else offset)
            if last <= t.storage_offset() + sum((s - 1) * n for s, n in zip(t.shape, t.stride(), strict=True)):
                options.append(f"{x}.as_strided({sizes}, {step}{'' if offset is None else f', {offset}'})")
    if n >= 2:
        a, b = w.random.sample(range(n), 2)
        order = w.random.sample(range(n), n)
        options += [f"{x}.transpose({a}, {b})", f"{x}.transpose({a}, {b})", f"{x}.permute({order})",
                    f"{x}.mT", f"{x}.mT" if t.is_complex() else f"{x}.mH",
                    f"{x}.diagonal({w.choose(0, 0, 1, -1)})", f"{x}.flatten({n - 2})",
                    f"{x}.view({t.shape[-1]}, -1)" if t.is_contiguous() or t._base is None else f"{x}.t()",
                    f"{x}.reshape({t.shape[-1]}, -1)", f"{x}.swapaxes({a}, {b})"]
        if n == 2:
            options += [f"{x}.t()", f"{x}.T"]
    if t.is_complex():
        options += [f"{x}.real", f"{x}.imag", f"torch.view_as_real({x})"] * 2
    elif t.is_floating_point() and t.dtype.itemsize > 2 and n and t.shape[-1] == 2 and t.stride(-1) == 1 and t.numel():
        options += [f"torch.view_as_complex({x})"] * 3
    return str(w.choose(*options))


def several_views_of(w: Writer, x: str) -> tuple[str, int]:
    """An expression that gives several views, and how many."""
    t = w.value(x)
    if not t.ndim:
        raise Unfit
    dim = w.random.randrange(t.ndim)
    size = t.shape[dim]
    if not 1 <= size <= 4:
        raise Unfit
    if w.chance(0.5):
        return f"{x}.unbind({dim})" if dim or w.chance(0.5) else x, size
    if w.chance(0.5):
        return f"{x}.chunk({size}, {dim})", size
    if w.chance(0.3):
        return f"torch.tensor_split({x}, {size}, {dim})", size
    return f"{x}.split(1, {dim})", size


@statement(22)
def _view(w: Writer) -> str:
    x = w.floating() if w.chance(0.95) else w.pick()
    text = f"{w.fresh()} = {view_of(w, x)}"
    if w.chance(0.05):
        mode = w.choose("no_grad", "no_grad", "inference_mode", "enable_grad")
        return f"with torch.{mode}():\n    {text}"
    return text


@statement(4)
def _several_views(w: Writer) -> str:
    text, count = several_views_of(w, w.floating())
    names = ", ".join(w.fresh() for _ in range(count))
    return f"{names}{',' if count == 1 else ''} = {text}"


@statement(1)
def _data(w: Writer) -> str:
    return f"{w.fresh()} = {w.floating(lambda t: not t.is_inference())}.data"
