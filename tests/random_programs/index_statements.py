"""Statements that index with tensors of every sort, and write there."""

from __future__ import annotations

from typing import Any

from .generation import Unfit, Writer, statement


def _index(w: Writer, size: int) -> str:
    """An index tensor, or what stands for one, of a dimension."""
    if not size:
        return str(w.choose("torch.tensor([], dtype=torch.int64)", "[]", "torch.zeros(0, dtype=torch.bool)"))
    places = [w.random.randrange(-size, size) for _ in range(w.choose(1, 2, 2))]
    mask = [w.chance(0.5) for _ in range(size)]
    return str(w.choose(
        f"torch.tensor({places})", f"torch.tensor({places})", str(places), f"torch.tensor({mask})", str(mask),
        f"torch.tensor({places}, dtype=torch.int32)", f"torch.tensor({places[0]})", f"torch.tensor([{places}])",
        "torch.tensor([], dtype=torch.int64)", f"torch.tensor({[p % size for p in places]}, dtype=torch.int8)",
        f"torch.tensor({[p % size for p in places]}, dtype=torch.int16)", "torch.tensor(True)", "torch.tensor(False)",
        f"torch.tensor({[p % size for p in places]})[:, None]"))


def _key(w: Writer, t: Any) -> str:
    parts: list[str] = []
    for size in t.shape[: w.random.randrange(t.ndim) + 1]:
        kind = w.random.random()
        if kind < 0.5:
            parts.append(_index(w, size))
        elif kind < 0.65:
            parts.append(w.choose(":", "1:", ":-1", "::2"))
        elif kind < 0.75 and size:
            parts.append(str(w.random.randrange(size)))
        elif kind < 0.85:
            parts.append("None")
        else:
            parts.append(":")
    if w.chance(0.1):
        parts.insert(w.random.randrange(len(parts) + 1), "...")
    return ", ".join(parts)


@statement(3)
def _indexed(w: Writer) -> str:
    x = w.floating(lambda t: t.ndim > 0 and t.is_contiguous())
    return f"{w.fresh()} = {x}[{_key(w, w.value(x))}]"


@statement(3)
def _assigned(w: Writer) -> str:
    """An assignment to a copy, so that errors leave nothing half done."""
    x = w.floating(lambda t: t.ndim > 0)
    key = _key(w, w.value(x))
    y = w.floating()
    value = w.choose("0.5", "torch.tensor(0.5)", f"{x}[{key}] * 2", f"torch.ones(1, dtype={x}.dtype)", f"{y}",
                     "torch.tensor(1)", "1j", "True")
    name = w.fresh()
    return f"{name} = {x}.contiguous() * 1\n{name}[{key}] {w.choose('=', '=', '=', '+=', '*=')} {value}"


@statement(2)
def _detached(w: Writer) -> str:
    """Functions whose nodes save more in PyTorch."""
    x = w.pick(lambda t: t.ndim > 0 and 0 < t.numel() < 20)
    t = w.value(x)
    dim = w.dim(t)
    size = t.shape[dim] if -t.ndim <= dim < t.ndim else 1
    places = [w.random.randrange(size) for _ in range(w.choose(1, 2, 3))]
    flat = [w.random.randrange(-t.numel(), t.numel()) for _ in range(3)]
    d, index = f"{x}.detach()", f"torch.tensor({places})"
    part = f"{d}.index_select({dim}, {index})"
    whole = f"torch.zeros({tuple(t.shape)}, dtype=torch.int64)"
    reduce = w.choose("sum", "prod", "mean", "amax", "amin")
    inside = w.choose("True", "False")
    return f"{w.fresh()} = " + w.choose(
        f"{d}.take(torch.tensor({flat}))", f"{d}.gather({dim}, {whole})",
        f"{d}.index_add({dim}, {index}, {part}, alpha=2)",
        f"{d}.index_copy({dim}, {index}, {part})", f"{d}.scatter_add({dim}, {whole}, {d})",
        f"{d}.scatter_reduce({dim}, {whole}, {d}, '{reduce}', include_self={inside})",
        f"{d}.index_reduce({dim}, {index}, {part}, '{reduce if reduce != 'sum' else 'mean'}', include_self={inside})",
        f"{d}.clone().put_(torch.tensor({flat}), torch.ones(3, dtype={d}.dtype), accumulate={inside})",
        f"{d}.masked_select({d}.abs() > 0.3)", f"{d}.masked_scatter({d}.abs() > 0.3, {d} * 2)",
        f"torch.take_along_dim({d}, {whole}, {dim})", f"{d}.nonzero()", f"torch.where({d}.abs() > 0.3)",
        f"{d}.index_fill({dim}, {index}, {w.choose('0.5', '1', '1j', 'torch.tensor(2)', 'None')})",
        f"{d}.scatter({dim}, {whole}, {w.choose('0.5', '1', '1j', 'None', d)})", f"torch.argwhere({d})",
        f"{d}.index_put((torch.tensor([0]),), {part}, accumulate={inside})", f"{d}.bool().nonzero(as_tuple=True)[0]",
        f"{d}.select_scatter({d}.select({dim}, 0) * 2, {dim}, 0)", f"{d}.diagonal_scatter({d}.diagonal() * 2)",
        f"{d}.slice_scatter({d}.narrow({dim}, 0, 1) * 2, {dim}, 0, 1)", f"{d}.tril()", f"{d}.triu(1)",
        f"{d}.repeat_interleave(2, {dim})", f"{d}.repeat_interleave(torch.tensor([2]), {dim})",
        f"torch.bucketize({d}, torch.tensor([-0.5, 0.5]))", f"{d}.index_select({dim}, {index}.int())")


@statement(1)
def _out_of_range(w: Writer) -> str:
    x = w.floating(lambda t: t.ndim > 0 and t._base is None)
    size = w.value(x).shape[0]
    key = w.choose(str(size), f"torch.tensor([{size}])", f"[{size}]", f"torch.zeros({size + 1}, dtype=torch.bool)",
    "0.5",
                   "'a'", "torch.tensor(0.5)", "[[0, 1], [0]]", "0, 0, 0, 0", "..., ...", "torch.tensor([0]), 'b'",
                   "{}")
    if w.chance(0.3):
        raise Unfit
    # a copy is written to: PyTorch may write to some elements before it raises
    return f"{w.fresh()} = {x}[{key}]" if w.chance(0.6) else f"{x}.clone()[{key}] = 1"
