"""Convolution: one trilinear form of image, weight and output, and the three operators it makes.

⟨output, conv(image, weight)⟩ is linear in each of the three. Leaving one out gives an operator of the
other two, whose derivatives are the two others; so all orders of derivatives stay within the three.
Arrays are (N, C, *spatial), weights (O, C / groups, *kernel).
"""

from __future__ import annotations

from math import prod
from typing import Any, NamedTuple

from ..declare import linear, not_implemented, not_implemented_error, op


class Geometry(NamedTuple):
    """The sizes that the form needs: of the image, the kernel and the output, and how windows lie."""

    spatial: tuple[int, ...]
    kernel: tuple[int, ...]
    positions: tuple[int, ...]
    stride: tuple[int, ...]
    padding: tuple[int, ...]
    dilation: tuple[int, ...]
    groups: int


_FORM: dict[str, Any] = {"node": "ConvolutionBackwardBackward0", "expose": ()}


@linear("image", "weight", **_FORM)
def _conv_output(xp, image, weight, *, geometry):
    """The form without its output: the convolution."""
    return xp.conv_output(image, weight, geometry)


@linear("output", "weight", **_FORM)
def _conv_image(xp, output, weight, *, geometry):
    """The form without its image: the convolution's transpose, a transposed convolution."""
    return xp.conv_image(output, weight, geometry)


@linear("output", "image", **_FORM)
def _conv_weight(xp, output, image, *, geometry):
    """The form without its weight."""
    return xp.conv_weight(output, image, geometry)


_conv_output.vjp(image=lambda xp, g, weight, geometry: xp._conv_image(g, weight, geometry=geometry),
                 weight=lambda xp, g, image, geometry: xp._conv_weight(g, image, geometry=geometry))
_conv_image.vjp(output=lambda xp, g, weight, geometry: xp._conv_output(g, weight, geometry=geometry),
                weight=lambda xp, g, output, geometry: xp._conv_weight(output, g, geometry=geometry))
_conv_weight.vjp(output=lambda xp, g, image, geometry: xp._conv_output(image, g, geometry=geometry),
                 image=lambda xp, g, output, geometry: xp._conv_image(output, g, geometry=geometry))


# ----- under vmap -----------------------------------------------------------------------


def _merge_batch(xp, x, k, dim, groups):
    """The first `k` dimensions of `x` merged into its dimension `dim` of those that follow, within each of its groups.

    (h, …, g · m, …) becomes (…, g · h · m, …).
    """
    h, own = prod(x.shape[:k]), x.shape[k:]
    x = xp.reshape(x, (h, *own[:dim], groups, own[dim] // groups, *own[dim + 1:]))
    return xp.reshape(xp.movedim(x, 0, dim + 1), (*own[:dim], h * own[dim], *own[dim + 1:]))


def _split_batch(xp, x, sizes, dim, groups, size):
    """What `_merge_batch` does, undone: `size` is that of the dimension alone."""
    h, shape = prod(sizes), x.shape
    x = xp.reshape(x, (*shape[:dim], groups, h, size // groups, *shape[dim + 1:]))
    return xp.reshape(xp.movedim(x, dim + 1, 0), (*sizes, *shape[:dim], size, *shape[dim + 1:]))


#: for each operator the dimensions that hidden ones are merged into, of the first input and the result where it
#: alone has them, of the second and the result, and of all three; a dimension of all groups is followed by True
_PLACES: dict[str, Any] = {
    "_conv_output": (((0, False), (0, False)), ((0, True), (1, True)), (1, 0, 1)),
    "_conv_image": (((0, False), (0, False)), ((1, False), (1, True)), (1, 0, 1)),
    "_conv_weight": (((1, True), (0, True)), ((1, True), (1, False)), (1, 1, 0)),
}


def _trilinear_form_vmap(xp, batch, name, x, x_on, y, y_on, geometry):
    """One of the three operators for batches: hidden dimensions are more samples or channels, or more groups."""
    run, k, groups = getattr(xp, name), batch.k, geometry.groups
    first, second, (in_x, in_y, in_z) = _PLACES[name]
    if x_on and y_on:
        x, y = _merge_batch(xp, x, k, in_x, 1), _merge_batch(xp, y, k, in_y, 1)
        out = run(x, y, geometry=geometry._replace(groups=groups * batch.count))
        return _split_batch(xp, out, batch.sizes, in_z, 1, out.shape[in_z] // batch.count)
    (dim, grouped), (to, to_grouped) = first if x_on else second
    size = (x if x_on else y).shape[k + dim]
    if grouped != to_grouped:
        size = size * groups if to_grouped else size // groups
    if x_on:
        x = _merge_batch(xp, x, k, dim, groups if grouped else 1)
    else:
        y = _merge_batch(xp, y, k, dim, groups if grouped else 1)
    return _split_batch(xp, run(x, y, geometry=geometry), batch.sizes, to, groups if to_grouped else 1, size)


_conv_output.vmap(lambda xp, batch, image, weight, *, geometry: _trilinear_form_vmap(
    xp, batch, "_conv_output", image, batch.on[0], weight, batch.on[1], geometry))
_conv_image.vmap(lambda xp, batch, output, weight, *, geometry: _trilinear_form_vmap(
    xp, batch, "_conv_image", output, batch.on[0], weight, batch.on[1], geometry))
_conv_weight.vmap(lambda xp, batch, output, image, *, geometry: _trilinear_form_vmap(
    xp, batch, "_conv_weight", output, batch.on[0], image, batch.on[1], geometry))


def _convolution_vmap(xp, batch, input, weight, bias=None, **how):
    k = batch.k
    input_on, weight_on, bias_on = batch.on
    if input_on and not weight_on and not bias_on:
        out = xp.convolution(_merge_batch(xp, input, k, 0, 1), weight, bias, **how)
        return _split_batch(xp, out, batch.sizes, 0, 1, input.shape[k])
    if input_on or weight_on:
        geometry = geometry_of(input.shape[k * input_on:], weight.shape[k * weight_on:], **how)
        out = _trilinear_form_vmap(xp, batch, "_conv_image" if how["transposed"] else "_conv_output", input, input_on,
                               weight, weight_on, geometry)
    else:
        out = xp.convolution(input, weight, None, **how)
    return out if bias is None else out + xp.reshape(bias, (*bias.shape[:-1], 1, -1, *(1 for _ in how["stride"])))


# ----- the operator that users call -----------------------------------------------------


def geometry_of(input: Any, weight: Any, stride: Any, padding: Any, dilation: Any, transposed: bool,
                output_padding: Any, groups: int) -> Geometry:
    """The geometry of a convolution, or of the one that a transposed convolution is the transpose of.

    Args:
        input, weight: shapes.
    """
    spatial, kernel = tuple(input[2:]), tuple(weight[2:])
    if transposed:
        image = tuple((n - 1) * s - 2 * p + d * (k - 1) + e + 1 for n, s, p, d, k, e in zip(
            spatial, stride, padding, dilation, kernel, output_padding, strict=True))
        return Geometry(image, kernel, spatial, tuple(stride), tuple(padding), tuple(dilation), groups)
    positions = tuple((n + 2 * p - d * (k - 1) - 1) // s + 1 for n, s, p, d, k in zip(
        spatial, stride, padding, dilation, kernel, strict=True))
    return Geometry(spatial, kernel, positions, tuple(stride), tuple(padding), tuple(dilation), groups)


def _unsupported_without_kernel(input, weight, bias=None, *, dilation, transposed, **_):
    """PyTorch's words for a convolution of numbers that it has no kernel for: bool and wide unsigned ones."""
    if 0 in input.shape:  # nothing to compute
        return None
    volumes = len(weight.shape) == 5
    if transposed:
        return not_implemented_error(f"slow_conv_transpose{2 + volumes}d_out_cpu")
    if max(dilation) > 1:
        return not_implemented_error("slow_conv_dilated<>")
    return not_implemented_error("compute_columns3d" if volumes else "slow_conv2d_cpu")


def _unsupported_small_integers(input, weight, bias=None, *, dilation, transposed, **_):
    """The same for integers smaller than int64, which plain convolutions are made for."""
    if transposed or max(dilation) > 1:
        return _unsupported_without_kernel(input, weight, dilation=dilation, transposed=transposed)
    return None


@op(unsupported_dtypes=dict.fromkeys(("bool", "unsigned"), _unsupported_without_kernel)
    | dict.fromkeys(("uint8", "int8", "int16", "int32"), _unsupported_small_integers), expose=("torch",))
def convolution(xp, input, weight, bias=None, *, stride, padding, dilation, transposed, output_padding, groups):
    """The cross-correlation of images and kernels, or its transpose; what `conv2d` and its kin are made of.

    Args:
        input: (N, C, *spatial).
        weight: (O, C / groups, *kernel); (C, O / groups, *kernel) if transposed.
        bias: (O).

    >>> import flambeau as torch
    >>> torch.convolution(torch.ones(1, 1, 3), torch.ones(1, 1, 2), None, (1,), (0,), (1,), False, (0,), 1)
    tensor([[[2., 2.]]])
    """
    geometry = geometry_of(input.shape, weight.shape, stride, padding, dilation, transposed, output_padding, groups)
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
    how = {"stride": stride, "padding": padding, "dilation": dilation, "transposed": transposed,
           "output_padding": output_padding, "groups": groups}
    parts = []
    if t_input is not None:
        parts.append(xp.convolution(t_input, weight, None, **how))
    if t_weight is not None:
        parts.append(xp.convolution(input, t_weight, None, **how))
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


# ----- windows as columns ---------------------------------------------------------------


@linear(name="im2col", node="Im2ColBackward0", expose=(),
        unsupported_dtypes=not_implemented("im2col_out_cpu", "integer"))
def im2col(xp, input, *, kernel_size, dilation, padding, stride):
    """Each window of (N, C, H, W) images as a column: (N, C · kernel, windows)."""
    return xp.windows_to_columns(input, kernel_size, dilation, padding, stride)


@linear(name="col2im", node="Col2ImBackward0", expose=(),
        unsupported_dtypes=not_implemented("col2im_out_cpu", "integer"))
def col2im(xp, input, *, output_size, kernel_size, dilation, padding, stride):
    """Columns added up where `im2col` takes them from: (N, C, H, W)."""
    return xp.columns_to_windows(input, output_size, kernel_size, dilation, padding, stride)


im2col.vjp(input=lambda xp, g, input_shape, kernel_size, dilation, padding, stride: xp.col2im(
    g, output_size=input_shape[-2:], kernel_size=kernel_size, dilation=dilation, padding=padding, stride=stride))
col2im.vjp(input=lambda xp, g, kernel_size, dilation, padding, stride: xp.im2col(
    g, kernel_size=kernel_size, dilation=dilation, padding=padding, stride=stride))


def _flatten_vmap(own):
    """The batching rule of an operator of `own` dimensions and one of samples before them."""
    def rule(xp, batch, input, **how):
        lead = input.shape[:len(input.shape) - own]
        run = xp.im2col if own == 3 else xp.col2im
        found = run(xp.reshape(input, (prod(lead), *input.shape[len(lead):])), **how)
        return xp.reshape(found, (*lead, *found.shape[1:]))

    return rule


im2col.vmap(_flatten_vmap(3))
col2im.vmap(_flatten_vmap(2))
