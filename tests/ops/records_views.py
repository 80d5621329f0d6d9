"""Records of views, copies, joining and repeating."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from tests.ops.spec import Make, Sample, record, sample

Samples = Callable[[Make], Iterable[Sample]]


def of(*calls: tuple[Any, ...]) -> Samples:
    """One sample per call: a shape, then the arguments after the tensor; a dict last gives keywords."""
    def samples(make: Make) -> Iterable[Sample]:
        for shape, *rest in calls:
            kwargs = rest.pop() if rest and isinstance(rest[-1], dict) else {}
            yield sample(make(*shape), *rest, **kwargs)
    return samples


MOVES: dict[str, Any] = {"complex": True, "integers": True}

# ----- another shape
record("Tensor.view", of(((2, 3), 6), ((2, 3), -1, 2), ((), 1), ((0, 3), 3, 0), ((2, 3), (3, 2))),
       reference=lambda x, *size: x.reshape(*size), any_layout=False, **MOVES)
record("reshape", of(((2, 3), (6,)), ((2, 3), (-1, 2)), ((), (1,)), ((0, 3), (3, 0))),
       reference=lambda x, shape: x.reshape(shape), covers=("_unsafe_view",), **MOVES)
record("flatten", of(((2, 3, 4),), ((2, 3, 4), 1), ((),)), **MOVES)
record("unflatten", of(((2, 6), 1, (2, -1)), ((4,), 0, (2, 2))), **MOVES)
record("ravel", of(((2, 3),), ((),)), reference=np.ravel, **MOVES)
record("squeeze", of(((1, 2, 1),), ((1, 2, 1), 0), ((1, 2, 1), (0, 2)), ((2, 3), 1), ((), 0)),
       covers=("_squeeze_all", "_squeeze_dim", "_squeeze_dims"), **MOVES)
record("unsqueeze", of(((2, 3), 0), ((2, 3), -1), ((), 0)), reference=np.expand_dims, **MOVES)
record("transpose", of(((2, 3, 4), 0, 2), ((2, 3), -1, 0), ((), 0, 0)), **MOVES)
record("t", of(((2, 3),), ((2,),), ((),)), reference=np.transpose, **MOVES)
record("permute", of(((2, 3, 4), (2, 0, 1)), ((2, 3), (-1, 0)), ((), ())), reference=np.transpose, **MOVES)
record("movedim", of(((2, 3, 4), 0, 2), ((2, 3, 4), (0, 1), (2, 0))), reference=np.moveaxis, **MOVES)
record("Tensor.expand", of(((2, 1), 2, 3), ((3,), 2, -1), ((), 2)), **MOVES)
record("broadcast_to", of(((2, 1), (4, 2, 3)), ((), (2,))), reference=np.broadcast_to, **MOVES)
record("select", of(((2, 3), 0, 1), ((2, 3), -1, -2)), **MOVES)
record("narrow", of(((4, 3), 0, 1, 2), ((4, 3), -1, -2, 1)), covers=("slice",), **MOVES)
record("diagonal", of(((3, 4),), ((3, 4), 1), ((2, 3, 4), -1, 0, 2)), reference=np.diagonal, **MOVES)
record("Tensor.unfold", of(((5, 2), 0, 3, 1), ((5,), 0, 2, 2), ((), 0, 1, 1)), covers=("_embed_windows",), **MOVES)
record("as_strided", of(((3, 4), (2, 2), (1, 2)), ((3, 4), (2, 3), (4, 1), 1), ((6,), (3, 2), (1, 1))),
       covers=("_as_strided", "_embed_strided", "_take_strided"), any_layout=False, **MOVES)

# ----- lists of views
record("unbind", of(((2, 3),), ((2, 3), 1)), **MOVES)
record("split", of(((5, 2), 2), ((5, 2), [1, 4]), ((5, 2), 1, 1)), covers=("_split", "split_with_sizes"), **MOVES)
record("split_with_sizes", of(((5, 2), [2, 3])), **MOVES)
record("chunk", of(((5, 2), 3), ((5, 2), 2, 1)), **MOVES)
record("tensor_split", of(((5, 2), 3), ((5, 2), (1, 3))), **MOVES)
record("unsafe_split", of(((5, 2), 2)), **MOVES)
record("unsafe_split_with_sizes", of(((5, 2), [2, 3])), **MOVES)

# ----- copies of views
for name, calls in {
    "view_copy": [((2, 3), (6,))], "alias_copy": [((2, 3),)], "t_copy": [((2, 3),)],
    "transpose_copy": [((2, 3), 0, 1)], "permute_copy": [((2, 3), (1, 0))], "expand_copy": [((2, 1), (2, 3))],
    "unsqueeze_copy": [((2, 3), 0)], "select_copy": [((2, 3), 0, 1)], "slice_copy": [((4,), 0, 1, 3)],
    "diagonal_copy": [((3, 3),)], "unfold_copy": [((4,), 0, 2, 1)], "unbind_copy": [((2, 3),)],
    "split_copy": [((5,), 2)], "split_with_sizes_copy": [((5,), [2, 3])], "narrow_copy": [((4,), 0, 1, 2)],
    "squeeze_copy": [((1, 2),), ((1, 2), 0), ((1, 2), (0, 1))], "as_strided_copy": [((4,), (2, 2), (1, 2))],
}.items():
    record(name, of(*calls), any_layout=name not in ("view_copy", "as_strided_copy"), **MOVES,
           covers={"squeeze_copy": ("_squeeze_all_copy", "_squeeze_dim_copy", "_squeeze_dims_copy"),
                   "as_strided_copy": ("_as_strided_copy",)}.get(name, ()))

# ----- a part replaced


def with_part(shape: tuple[int, ...], part: tuple[int, ...], *rest: Any, **kwargs: Any) -> Samples:
    def samples(make: Make) -> Iterable[Sample]:
        yield sample(make(*shape), make(*part), *rest, **kwargs)
    return samples


record("select_scatter", with_part((2, 3), (3,), 0, 1), covers=("_basic_index", "_embed"), integers=True)  # PyTorch
record("slice_scatter", with_part((4, 2), (2, 2), 0, 1, 4, 2), integers=True)  # refuses to differentiate complex ones
record("diagonal_scatter", with_part((3, 4), (3,), 1), covers=("_embed_diagonal",), **MOVES)
record("as_strided_scatter", with_part((3, 4), (2, 2), (2, 2), (1, 2)),
       covers=("_as_strided_scatter", "_replace_strided"), any_layout=False, **MOVES)

# ----- copies and casts
record("clone", of(((2, 3),), ((),)), reference=np.copy, **MOVES)
record("fill", of(((2, 3), 2.5)), covers=("_fill_scalar", "_fill_tensor"), complex=True)

# ----- joining


def several(*shapes: tuple[int, ...], **kwargs: Any) -> Samples:
    def samples(make: Make) -> Iterable[Sample]:
        yield sample([make(*shape) for shape in shapes], **kwargs)
    return samples


def both(*all_samples: Samples) -> Samples:
    def samples(make: Make) -> Iterable[Sample]:
        for each in all_samples:
            yield from each(make)
    return samples


record("cat", both(several((2, 3), (1, 3)), several((2, 3), (2, 1), dim=-1), several((0,), (2,))),
       reference=lambda xs, dim=0: np.concatenate(xs, dim), **MOVES)
record("stack", both(several((2, 3), (2, 3)), several((2,), (2,), dim=-1), several((), ())),
       reference=lambda xs, dim=0: np.stack(xs, dim), **MOVES)
record("hstack", both(several((2, 3), (2, 1)), several((2,), ())), reference=np.hstack, **MOVES)
record("vstack", both(several((2, 3), (1, 3)), several((2,), (2,))), reference=np.vstack, **MOVES)
record("dstack", several((2, 3), (2, 3)), reference=np.dstack, **MOVES)
record("column_stack", both(several((2,), (2, 3))), reference=np.column_stack, **MOVES)


def spread_out(*shapes: tuple[int, ...]) -> Samples:
    def samples(make: Make) -> Iterable[Sample]:
        yield sample(*[make(*shape) for shape in shapes])
    return samples


record("block_diag", spread_out((2, 3), (2,), ()), covers=("_block_diag",), **MOVES)
record("cartesian_prod", spread_out((2,), (3,)), **MOVES)
record("combinations", of(((4,),), ((3,), 2, True)), **MOVES)
record("Tensor.repeat", of(((2, 3), 2, 1), ((3,), 2, 2), ((), 2)),
       reference=lambda x, *counts: np.tile(x, counts), **MOVES)
record("tile", of(((2, 3), (2,)), ((3,), (2, 2))), reference=np.tile, **MOVES)
record("repeat_interleave", of(((2, 3), 2), ((2, 3), 2, 1)), reference=np.repeat, **MOVES)
record("flip", of(((2, 3), (0,)), ((2, 3), (0, -1))), reference=np.flip, **MOVES)
record("fliplr", of(((2, 3),)), reference=np.fliplr, **MOVES)
record("flipud", of(((2, 3),)), reference=np.flipud, **MOVES)
record("roll", of(((2, 3), 1), ((2, 3), (1, -1), (0, 1))), reference=np.roll, **MOVES)
record("rot90", of(((2, 3),), ((2, 3), 2), ((2, 3), 3, (1, 0)), ((2, 3), 0)), reference=np.rot90, **MOVES)
record("tril", of(((3, 4),), ((2, 3, 3), -1)), reference=np.tril, **MOVES)
record("triu", of(((3, 4),), ((2, 3, 3), 1)), reference=np.triu, **MOVES)
record("diag_embed", of(((2, 3),), ((3,), 1), ((2, 3), -1, 0, 1)), **MOVES)
record("diag", of(((3,),), ((3, 4), 1)), reference=np.diag, **MOVES)
record("constant_pad_nd", of(((2, 3), (1, 2)), ((4, 3), (0, 1, -1, 0), 2.0)), **MOVES)
