"""Convolution: three bilinear operators, each of which is a derivative of the others, and the public operator.

⟨output, conv(image, weight)⟩ is linear in each of its three arguments. Its derivative by one of them is an operator
of the other two, and the derivatives of these three operators are among them.

Arrays are (N, C, *spatial), weights (O, C / groups, *kernel).
"""

from __future__ import annotations

import functools
from math import prod
from typing import Any, NamedTuple

from ..declare import linear, not_implemented, not_implemented_error, op


class Geometry(NamedTuple):
    """The sizes and parameters of a convolution, per spatial dimension.

    Attributes:
        spatial: the image's size.
        kernel: the kernel's size.
        positions: the output's size.
    """

    spatial: tuple[int, ...]
    kernel: tuple[int, ...]
    positions: tuple[int, ...]
    stride: tuple[int, ...]
    padding: tuple[int, ...]
    dilation: tuple[int, ...]
    groups: int


_OPTIONS: dict[str, Any] = {"node": "ConvolutionBackwardBackward0", "expose": ()}


@linear("image", "weight", **_OPTIONS)
def _conv_output(xp, image, weight, *, geometry):
    """The convolution of image and weight."""
    return xp.conv_output(image, weight, geometry)


@linear("output", "weight", **_OPTIONS)
def _conv_image(xp, output, weight, *, geometry):
    """The transposed convolution of output and weight: the convolution's gradient by its image."""
    return xp.conv_image(output, weight, geometry)


@linear("output", "image", **_OPTIONS)
def _conv_weight(xp, output, image, *, geometry):
    """The convolution's gradient by its weight."""
    return xp.conv_weight(output, image, geometry)


_conv_output.vjp(image=lambda xp, g, weight, geometry: xp._conv_image(g, weight, geometry=geometry),
                 weight=lambda xp, g, image, geometry: xp._conv_weight(g, image, geometry=geometry))
_conv_image.vjp(output=lambda xp, g, weight, geometry: xp._conv_output(g, weight, geometry=geometry),
                weight=lambda xp, g, output, geometry: xp._conv_weight(output, g, geometry=geometry))
_conv_weight.vjp(output=lambda xp, g, image, geometry: xp._conv_output(image, g, geometry=geometry),
                 image=lambda xp, g, output, geometry: xp._conv_image(output, g, geometry=geometry))


# ----- under vmap -----------------------------------------------------------------------


def _merge_batch(xp, x, k, dim, groups):
    """Return `x` with its first `k` dimensions merged into dimension `dim` of the others, within each group.

    (h, …, g · m, …) becomes (…, g · h · m, …).
    """
    h, dims_shape = prod(x.shape[:k]), x.shape[k:]
    if groups == 1:
        merged = (*dims_shape[:dim], h * dims_shape[dim], *dims_shape[dim + 1:])
        if dim and h != 1:
            x = x if k == 1 else xp.reshape(x, (h, *dims_shape))
            x = xp.movedim(x, 0, dim)
        return xp.reshape(x, merged)
    x = xp.reshape(x, (h, *dims_shape[:dim], groups, dims_shape[dim] // groups, *dims_shape[dim + 1:]))
    return xp.reshape(xp.movedim(x, 0, dim + 1), (*dims_shape[:dim], h * dims_shape[dim], *dims_shape[dim + 1:]))


def _split_batch(xp, x, sizes, dim, groups, size):
    """Return the inverse of `_merge_batch`; `size` is the dimension's size without the batch."""
    h, shape = prod(sizes), x.shape
    if groups == 1:
        x = xp.reshape(x, (*shape[:dim], h, size, *shape[dim + 1:]))
        if dim:
            x = xp.movedim(x, dim, 0)
        return x if len(sizes) == 1 else xp.reshape(x, (*sizes, *shape[:dim], size, *shape[dim + 1:]))
    x = xp.reshape(x, (*shape[:dim], groups, h, size // groups, *shape[dim + 1:]))
    return xp.reshape(xp.movedim(x, dim + 1, 0), (*sizes, *shape[:dim], size, *shape[dim + 1:]))


#: operator -> the dimensions that batch dimensions are merged into: of the first input and the result where only the
#: first input is batched; of the second and the result where only that is; of all three. A pair's bool says whether the
#: dimension spans all groups.
_MERGE_DIMS: dict[str, Any] = {
    "_conv_output": (((0, False), (0, False)), ((0, True), (1, True)), (1, 0, 1)),
    "_conv_image": (((0, False), (0, False)), ((1, False), (1, True)), (1, 0, 1)),
    "_conv_weight": (((1, True), (0, True)), ((1, True), (1, False)), (1, 1, 0)),
}


def _bilinear_vmap(xp, batch, name, x, x_on, y, y_on, geometry):
    """Compute one of the three operators on a batch, merged into the samples, the channels or the groups."""
    convolve, k, groups = getattr(xp, name), batch.k, geometry.groups
    first, second, (in_x, in_y, in_z) = _MERGE_DIMS[name]
    if x_on and y_on:
        x, y = _merge_batch(xp, x, k, in_x, 1), _merge_batch(xp, y, k, in_y, 1)
        out = convolve(x, y, geometry=geometry._replace(groups=groups * batch.count))
        return _split_batch(xp, out, batch.sizes, in_z, 1, out.shape[in_z] // batch.count)
    (dim, grouped), (to, to_grouped) = first if x_on else second
    size = (x if x_on else y).shape[k + dim]
    if grouped != to_grouped:
        size = size * groups if to_grouped else size // groups
    if x_on:
        x = _merge_batch(xp, x, k, dim, groups if grouped else 1)
    else:
        y = _merge_batch(xp, y, k, dim, groups if grouped else 1)
    return _split_batch(xp, convolve(x, y, geometry=geometry), batch.sizes, to, groups if to_grouped else 1, size)


_conv_output.vmap(lambda xp, batch, image, weight, *, geometry: _bilinear_vmap(
    xp, batch, "_conv_output", image, batch.on[0], weight, batch.on[1], geometry))
_conv_image.vmap(lambda xp, batch, output, weight, *, geometry: _bilinear_vmap(
    xp, batch, "_conv_image", output, batch.on[0], weight, batch.on[1], geometry))
_conv_weight.vmap(lambda xp, batch, output, image, *, geometry: _bilinear_vmap(
    xp, batch, "_conv_weight", output, batch.on[0], image, batch.on[1], geometry))


def _convolution_vmap(xp, batch, input, weight, bias=None, **options):
    k = batch.k
    input_on, weight_on, bias_on = batch.on
    if input_on and not weight_on and not bias_on:
        out = xp.convolution(_merge_batch(xp, input, k, 0, 1), weight, bias, **options)
        return _split_batch(xp, out, batch.sizes, 0, 1, input.shape[k])
    if input_on or weight_on:
        geometry = geometry_of(input.shape[k * input_on:], weight.shape[k * weight_on:], **options)
        name = "_conv_image" if options["transposed"] else "_conv_output"
        out = _bilinear_vmap(xp, batch, name, input, input_on, weight, weight_on, geometry)
    else:
        out = xp.convolution(input, weight, None, **options)
    return out if bias is None else out + xp.reshape(bias, (*bias.shape[:-1], 1, -1, *(1 for _ in options["stride"])))


# ----- the public operator -----------------------------------------------------


def geometry_of(input: Any, weight: Any, stride: Any, padding: Any, dilation: Any, transposed: bool,
                output_padding: Any, groups: int) -> Geometry:
    """Return the geometry of a convolution; that of a transposed convolution is its transpose's.

    Args:
        input, weight: shapes.
    """
    if _INTS.issuperset(map(type, (*input, *weight))):
        return _known_geometry(tuple(input[2:]), tuple(weight[2:]), tuple(stride), tuple(padding), tuple(dilation),
                               transposed, tuple(output_padding), groups)
    return _geometry(tuple(input[2:]), tuple(weight[2:]), stride, padding, dilation, transposed, output_padding, groups)


_INTS = frozenset((int,))


def _geometry(spatial: Any, kernel: Any, stride: Any, padding: Any, dilation: Any, transposed: bool,
              output_padding: Any, groups: int) -> Geometry:
    if transposed:
        image = tuple((n - 1) * s - 2 * p + d * (k - 1) + e + 1 for n, s, p, d, k, e in zip(
            spatial, stride, padding, dilation, kernel, output_padding, strict=True))
        return Geometry(image, kernel, spatial, tuple(stride), tuple(padding), tuple(dilation), groups)
    positions = tuple((n + 2 * p - d * (k - 1) - 1) // s + 1 for n, s, p, d, k in zip(
        spatial, stride, padding, dilation, kernel, strict=True))
    return Geometry(spatial, kernel, positions, tuple(stride), tuple(padding), tuple(dilation), groups)


_known_geometry = functools.lru_cache(1024)(_geometry)


def _refuse_lengths(rank: int, groups: int, **lists: Any) -> None:
    """Raise PyTorch's error for options that have not one value for each spatial dimension."""
    if rank < 3:
        raise RuntimeError("weight should have at least three dimensions")
    if groups <= 0:
        raise RuntimeError("non-positive groups is not supported")
    for name, values in lists.items():
        if len(values) not in (1, rank - 2) or (rank == 3 and len(values) != 1):
            raise RuntimeError(f"expected {name} to be a single integer value or a list of {rank - 2} values to match "
                               f"the convolution dimensions, but got {name}={list(values)}")


def _unsupported_without_kernel(input, weight, bias=None, *, dilation, transposed, **_):
    """Return PyTorch's error for bool and wide unsigned dtypes; empty inputs raise none."""
    if 0 in input.shape:
        return None
    is_3d = len(weight.shape) == 5
    if transposed:
        return not_implemented_error(f"slow_conv_transpose{2 + is_3d}d_out_cpu")
    if max(dilation) > 1:
        return not_implemented_error("slow_conv_dilated<>")
    return not_implemented_error("compute_columns3d" if is_3d else "slow_conv2d_cpu")


def _unsupported_small_integers(input, weight, bias=None, *, dilation, transposed, **_):
    """The same for integers narrower than int64, which PyTorch's plain convolutions support."""
    if transposed or max(dilation) > 1:
        return _unsupported_without_kernel(input, weight, dilation=dilation, transposed=transposed)
    return None


@op(unsupported_dtypes=dict.fromkeys(("bool", "unsigned"), _unsupported_without_kernel)
    | dict.fromkeys(("uint8", "int8", "int16", "int32"), _unsupported_small_integers), expose=("torch",),
    saved="bias_sym_sizes_opt dilation groups input output_padding padding stride transposed weight")
def convolution(xp, input, weight, bias=None, *, stride, padding, dilation, transposed, output_padding, groups):
    """The cross-correlation of images and kernels, or its transpose; `conv1d` to `conv_transpose3d` call it.

    Args:
        input: (N, C, *spatial).
        weight: (O, C / groups, *kernel); (C, O / groups, *kernel) if transposed.
        bias: (O).
        stride, padding, dilation, output_padding: one int per spatial dimension.
        transposed: whether to compute the transposed convolution.
        groups: the number of groups of channels.

    >>> import flambeau as torch
    >>> torch.convolution(torch.ones(1, 1, 3), torch.ones(1, 1, 2), None, (1,), (0,), (1,), False, (0,), 1)
    tensor([[[2., 2.]]])
    """
    try:
        geometry = geometry_of(input.shape, weight.shape, stride, padding, dilation, transposed, output_padding, groups)
    except ValueError:  # of lists of other lengths
        _refuse_lengths(len(weight.shape), groups, padding=padding, stride=stride, dilation=dilation,
                        output_padding=output_padding)
        raise
    return xp.convolve(input, weight, bias, geometry, transposed)


def _convolution_vjp_input(xp, g, weight, input_shape, stride, padding, dilation, transposed, output_padding, groups):
    geometry = geometry_of(input_shape, weight.shape, stride, padding, dilation, transposed, output_padding, groups)
    if transposed:
        return xp._conv_output(g, weight, geometry=geometry)
    return xp._conv_image(g, weight, geometry=geometry)


def _convolution_vjp_weight(xp, g, input, weight_shape, stride, padding, dilation, transposed, output_padding, groups):
    geometry = geometry_of(input.shape, weight_shape, stride, padding, dilation, transposed, output_padding, groups)
    if transposed:
        return xp._conv_weight(input, g, geometry=geometry)
    return xp._conv_weight(g, input, geometry=geometry)


def _convolution_jvp(xp, t_input, t_weight, t_bias, input, weight, stride, padding, dilation, transposed,
                     output_padding, groups):
    options = {"stride": stride, "padding": padding, "dilation": dilation, "transposed": transposed,
               "output_padding": output_padding, "groups": groups}
    parts = []
    if t_input is not None:
        parts.append(xp.convolution(t_input, weight, None, **options))
    if t_weight is not None:
        parts.append(xp.convolution(input, t_weight, None, **options))
    if t_bias is not None:
        parts.append(xp.reshape(t_bias, (1, -1, *(1 for _ in stride))))
    total = parts[0]
    for part in parts[1:]:
        total = total + part
    return total


convolution.vjp(input=_convolution_vjp_input,
                weight=_convolution_vjp_weight,
                bias=lambda xp, g: xp.sum(g, (0, *range(2, len(g.shape)))))
convolution.jvp(_convolution_jvp)
convolution.vmap(_convolution_vmap)


# ----- im2col ---------------------------------------------------------------


@linear(name="im2col", node="Im2ColBackward0", expose=(),
        unsupported_dtypes=not_implemented("im2col_out_cpu", "integer"),
        saved="dilation kernel_size padding self_sym_argsize_minus_1 self_sym_argsize_minus_2 stride")
def im2col(xp, input, *, kernel_size, dilation, padding, stride):
    """The windows of (N, C, H, W) images as columns, (N, C · kernel, windows)."""
    return xp.im2col(input, kernel_size, dilation, padding, stride)


@linear(name="col2im", node="Col2ImBackward0", expose=(),
        unsupported_dtypes=not_implemented("col2im_out_cpu", "integer"))
def col2im(xp, input, *, output_size, kernel_size, dilation, padding, stride):
    """The transpose of `im2col`: columns accumulated into (N, C, H, W) images."""
    return xp.col2im(input, output_size, kernel_size, dilation, padding, stride)


im2col.vjp(input=lambda xp, g, input_shape, kernel_size, dilation, padding, stride: xp.col2im(
    g, output_size=input_shape[-2:], kernel_size=kernel_size, dilation=dilation, padding=padding, stride=stride))
col2im.vjp(input=lambda xp, g, kernel_size, dilation, padding, stride: xp.im2col(
    g, kernel_size=kernel_size, dilation=dilation, padding=padding, stride=stride))


def _flatten_vmap(rank):
    """Return the batching rule of an operator on `own` dimensions and one sample dimension: all batches are samples."""
    def rule(xp, batch, input, **options):
        batch_shape = input.shape[:len(input.shape) - rank]
        compute = xp.im2col if rank == 3 else xp.col2im
        result = compute(xp.reshape(input, (prod(batch_shape), *input.shape[len(batch_shape):])), **options)
        return xp.reshape(result, (*batch_shape, *result.shape[1:]))

    return rule


im2col.vmap(_flatten_vmap(3))
col2im.vmap(_flatten_vmap(2))
