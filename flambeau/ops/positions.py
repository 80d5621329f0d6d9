"""Elements by their position in the flattened tensor: what writes through views differentiate by."""

from __future__ import annotations

from .declare import linear, op


@linear(name="_select_positions", node="AsStridedBackward0", expose=())
def _select_positions(xp, input, *, index):
    """The elements at `index` (positions in the flattened input), shaped as `index`."""
    return xp.reshape(input, (-1,))[index]


_select_positions.vjp(input=lambda xp, g, input_shape, index: xp._add_at_positions(g, index=index, size=input_shape))


@linear(name="_add_at_positions", expose=())
def _add_at_positions(xp, input, *, index, size):
    """Zeros of shape `size` with the input added at `index`."""
    return xp.add_at_positions(input, index, size)


_add_at_positions.vjp(input=lambda xp, g, index: xp._select_positions(g, index=index))


@op(name="_replace_positions", expose=())
def _replace_positions(xp, input, source, *, index):
    """The input with the elements at `index` replaced by `source`."""
    return xp.replace_positions(input, source, index)


_replace_positions.vjp(
    input=lambda xp, g, index: xp._replace_positions(g, xp.zeros_like(xp._select_positions(g, index=index)), index=index),
    source=lambda xp, g, index: xp._select_positions(g, index=index),
)
_replace_positions.jvp(lambda xp, input, source, t_input, t_source, index: xp._replace_positions(
    xp.zeros_like(input) if t_input is None else t_input,
    xp.zeros_like(source) if t_source is None else t_source, index=index))
