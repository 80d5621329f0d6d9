"""Copies of views (`transpose_copy`, ...), and copies with a view's elements replaced (`select_scatter`, ...)."""

from __future__ import annotations

from ..declare import LINEAR, REGISTRY, Op, linear, op
from .views import (
    VIEW_OPTIONS,
    alias,
    as_strided,
    diagonal,
    expand,
    index_at,
    permute,
    select,
    slice_,
    slice_bounds,
    split,
    split_with_sizes,
    squeeze_all,
    squeeze_dim,
    squeeze_dims,
    t,
    transpose,
    unbind,
    unfold,
    unsqueeze,
    view_,
)

# ----- copies of views ------------------------------------------------------------


def _declare_copy(of: Op, name: str, example: str = "", shape: str = "") -> None:
    """Declare the operator that returns a copy of the view `of`.

    Args:
        example: a call on a (2, 3) tensor `x`, for the docstring.
        shape: the shape of its result, or of its first result.
    """
    view_forward, is_list = of.forward, of.tensor_list

    def forward(xp, input, **params):
        result = view_forward(xp, input, **params)
        return [a.copy() for a in result] if is_list else result.copy()

    doc = f"A copy of the view that `{of.name}` returns."
    if example:
        first = "[0]" if is_list else ""
        doc += f"""

    >>> import flambeau as torch
    >>> x = torch.ones(2, 3)
    >>> torch.{name}({example}){first}.shape
    flambeau.Size({shape})
    """
    rule = of.batching_rule
    if callable(rule):
        def rule(xp, batch, *inputs, **params):
            return xp.clone(of.batching_rule(xp, batch, *inputs, **params))

    REGISTRY[name] = of.derived(forward=forward, kind=LINEAR, name=name, node=of.node + "_copy", doc=doc,
                                batching_rule=rule, expose=("torch",) if example else (), aliases=(),
                                multi_output_view=False, exact_out=True)


_declare_copy(view_, "view_copy", "x, (6,)", "[6]")
_declare_copy(alias, "alias_copy", "x", "[2, 3]")
_declare_copy(t, "t_copy", "x", "[3, 2]")
_declare_copy(transpose, "transpose_copy", "x, 0, 1", "[3, 2]")
_declare_copy(permute, "permute_copy", "x, (1, 0)", "[3, 2]")
_declare_copy(expand, "expand_copy", "x, (4, 2, 3)", "[4, 2, 3]")
_declare_copy(unsqueeze, "unsqueeze_copy", "x, 0", "[1, 2, 3]")
_declare_copy(select, "select_copy", "x, 0, 1", "[3]")
_declare_copy(slice_, "slice_copy", "x, 0, 0, 1", "[1, 3]")
_declare_copy(diagonal, "diagonal_copy", "x", "[2]")
_declare_copy(unfold, "unfold_copy", "x, 1, 2, 1", "[2, 2, 2]")
_declare_copy(unbind, "unbind_copy", "x", "[3]")
_declare_copy(split, "split_copy", "x, 1", "[1, 3]")
_declare_copy(split_with_sizes, "split_with_sizes_copy", "x, [1, 1]", "[1, 3]")
_declare_copy(squeeze_all, "_squeeze_all_copy")
_declare_copy(squeeze_dim, "_squeeze_dim_copy")
_declare_copy(squeeze_dims, "_squeeze_dims_copy")
_declare_copy(as_strided, "_as_strided_copy")


@linear(expose=("torch", "method"), opmath=False,
        exact_out="Expected self.dtype() == output.dtype() to be true, but got false.  (Could this error message be "
        "improved?  If so, please report an enhancement request to PyTorch.)",
        **VIEW_OPTIONS)
def narrow_copy(xp, input, *, dim, start, length):
    """A copy of the slice [start, start + length) of dimension `dim`.

    >>> import flambeau as torch
    >>> torch.narrow_copy(torch.arange(4), 0, 1, 2)
    tensor([1, 2])
    """
    return xp.slice(input, dim, start, start + length).copy()


narrow_copy.vjp(input=lambda xp, g, input_shape, dim, start, length: xp._embed(
    g, size=input_shape, key=index_at(input_shape, dim, slice_bounds(input_shape, dim, start, start + length, 1))))


# ----- a view's elements replaced ---------------------------------------------------------------------


@op(argument_order=("input", "src", "dim", "index"), opmath=False, complex_gradients=False,
    saved="dim index", **VIEW_OPTIONS)
def select_scatter(xp, input, src, *, dim, index):
    """A copy of `input` with `input.select(dim, index)` replaced by `src`.

    >>> import flambeau as torch
    >>> torch.select_scatter(torch.zeros(2, 2), torch.ones(2), 0, 0)
    tensor([[1., 1.],
            [0., 0.]])
    """
    return xp.replace_basic_index(input, src, xp.select(input, dim, index).shape,
                                  index_at(input.shape, dim, index), "slice")


def _zero_at_key(xp, g, key):
    return g - xp._embed(xp._basic_index(g, key=key), size=g.shape, key=key)


select_scatter.moves_gradients = False  # they subtract
select_scatter.vjp(
    input=lambda xp, g, input_shape, dim, index: _zero_at_key(xp, g, index_at(input_shape, dim, index)),
    src=lambda xp, g, input_shape, dim, index: xp._basic_index(g, key=index_at(input_shape, dim, index)))


@op(opmath=False, complex_gradients=False, saved="dim end start step", exact_out=True, **VIEW_OPTIONS)
def slice_scatter(xp, input, src, *, dim=0, start=None, end=None, step=1):
    """A copy of `input` with the slice start:end:step of dimension `dim` replaced by `src`.

    >>> import flambeau as torch
    >>> torch.slice_scatter(torch.zeros(4), torch.ones(2), start=1, end=3)
    tensor([0., 1., 1., 0.])
    """
    return xp.replace_basic_index(input, src, xp.slice(input, dim, start, end, step).shape,
                           index_at(input.shape, dim, slice_bounds(input.shape, dim, start, end, step)), "slice")


slice_scatter.moves_gradients = False
slice_scatter.vjp(
    input=lambda xp, g, input_shape, dim, start, end, step: _zero_at_key(
        xp, g, index_at(input_shape, dim, slice_bounds(input_shape, dim, start, end, step))),
    src=lambda xp, g, input_shape, dim, start, end, step: xp._basic_index(
        g, key=index_at(input_shape, dim, slice_bounds(input_shape, dim, start, end, step))))


@op(opmath=False, **VIEW_OPTIONS)
def diagonal_scatter(xp, input, src, *, offset=0, dim1=0, dim2=1):
    """A copy of `input` with `input.diagonal(offset, dim1, dim2)` replaced by `src`.

    >>> import flambeau as torch
    >>> torch.diagonal_scatter(torch.zeros(2, 2), torch.ones(2))
    tensor([[1., 0.],
            [0., 1.]])
    """
    return xp.replace_diagonal(input, src, offset, dim1, dim2)


diagonal_scatter.moves_gradients = False
diagonal_scatter.vjp(
    input=lambda xp, g, offset, dim1, dim2: g - xp._embed_diagonal(
        xp.diagonal(g, offset=offset, dim1=dim1, dim2=dim2), size=g.shape, offset=offset, dim1=dim1, dim2=dim2),
    src=lambda xp, g, offset, dim1, dim2: xp.diagonal(g, offset=offset, dim1=dim1, dim2=dim2))


@op(name="as_strided_scatter", key="_as_strided_scatter", expose=(), opmath=False,
    saved="size storage_offset stride", **VIEW_OPTIONS)
def as_strided_scatter(xp, input, src, *, size, stride, storage_offset, geometry):
    """A copy of `input` with `input.as_strided(size, stride, storage_offset)` replaced by `src`."""
    return xp.replace_strided(input, src, geometry)


as_strided_scatter.vmap(lambda xp, batch, input, src, size, stride, storage_offset, geometry: xp._replace_strided(
    input if batch.on[0] else batch.expand_levels(input), src if batch.on[1] else batch.expand_levels(src),
    geometry=geometry.repeated(batch.sizes)))
as_strided_scatter.vjp(
    input=lambda xp, g, geometry: xp._replace_strided(
        g, xp.zeros_like(xp._take_strided(g, geometry=geometry)), geometry=geometry),
    src=lambda xp, g, geometry: xp._take_strided(g, geometry=geometry))


select_scatter.jvp(lambda xp, input, src, t_input, t_src, dim, index: xp.select_scatter(
    xp.zeros_like(input) if t_input is None else t_input,
    xp.zeros_like(src) if t_src is None else t_src, dim=dim, index=index))
slice_scatter.jvp(lambda xp, input, src, t_input, t_src, dim, start, end, step: xp.slice_scatter(
    xp.zeros_like(input) if t_input is None else t_input,
    xp.zeros_like(src) if t_src is None else t_src, dim=dim, start=start, end=end, step=step))
diagonal_scatter.jvp(lambda xp, input, src, t_input, t_src, offset, dim1, dim2: xp.diagonal_scatter(
    xp.zeros_like(input) if t_input is None else t_input,
    xp.zeros_like(src) if t_src is None else t_src, offset=offset, dim1=dim1, dim2=dim2))
as_strided_scatter.jvp(lambda xp, input, src, t_input, t_src, geometry: xp._replace_strided(
    xp.zeros_like(input) if t_input is None else t_input,
    xp.zeros_like(src) if t_src is None else t_src, geometry=geometry))
