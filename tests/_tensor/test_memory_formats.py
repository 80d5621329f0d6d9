"""Strides of copies and of results of operators on images, those with dimensions of size 1 included."""

from __future__ import annotations

import numpy as np
import pytest

from flambeau.kernels.memory_format import preserved_strides
from tests.autograd.differential import same

SHAPES = [(2, 3, 4, 4), (2, 1, 4, 4), (1, 3, 4, 4), (2, 3, 1, 1), (1, 1, 1, 1), (2, 1, 1, 4), (2, 4, 4, 1)]
LAYOUTS = {
    "contiguous": lambda torch, shape: torch.zeros(shape),
    "channels last": lambda torch, shape: torch.empty(shape, memory_format=torch.channels_last).zero_(),
    "half of the channels": lambda torch, shape: torch.empty((shape[0], 2 * shape[1], *shape[2:]),
                                                             memory_format=torch.channels_last).zero_()[:, ::2],
    "transposed": lambda torch, shape: torch.zeros(shape[::-1]).permute(3, 2, 1, 0),
    "expanded": lambda torch, shape: torch.zeros(1, *shape[1:]).expand(shape),
}
COPIES = {
    "clone": lambda torch, x: x.clone(),
    "empty_like": lambda torch, x: torch.empty_like(x),
    "zeros_like": lambda torch, x: torch.zeros_like(x, dtype=torch.int64),
    "rand_like": lambda torch, x: torch.rand_like(x),
    "double": lambda torch, x: x.double(),
    "to channels last": lambda torch, x: x.to(memory_format=torch.channels_last),
    "to contiguous": lambda torch, x: x.to(memory_format=torch.contiguous_format),
    "contiguous": lambda torch, x: x.contiguous(memory_format=torch.channels_last),
}
OPERATORS = {
    "conv2d": lambda F, torch, x: F.conv2d(x, torch.ones(5, x.shape[1], 1, 1)),
    "max_pool2d": lambda F, torch, x: F.max_pool2d(x, 1, return_indices=True)[1],
    "avg_pool2d": lambda F, torch, x: F.avg_pool2d(x, 1),
    "adaptive_avg_pool2d": lambda F, torch, x: F.adaptive_avg_pool2d(x, (2, 2)),
    "mean": lambda F, torch, x: F.adaptive_avg_pool2d(x, 1),
    "max_unpool2d": lambda F, torch, x: F.max_unpool2d(x, torch.zeros_like(x, dtype=torch.int64), 1),
    "group_norm": lambda F, torch, x: F.group_norm(x, 1, torch.ones(x.shape[1])),
    "constant": lambda F, torch, x: F.pad(x, (1, 1)),
    "reflect": lambda F, torch, x: F.pad(x, (0, 0, 0, 0), mode="reflect"),
    "replicate": lambda F, torch, x: F.pad(x, (1, 1, 1, 1), mode="replicate"),
    "cat": lambda F, torch, x: torch.cat([x, x], 1),
    "cat of two layouts": lambda F, torch, x: torch.cat([x, torch.zeros(x.shape)], 1),
}


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("copy", COPIES)
def test_copies(copy, layout):
    def program(torch):
        return [COPIES[copy](torch, LAYOUTS[layout](torch, shape)).stride() for shape in SHAPES]

    same(program)


@pytest.mark.parametrize("layout", list(LAYOUTS)[:3])
@pytest.mark.parametrize("operator", OPERATORS)
def test_images(operator, layout):
    def program(torch):
        F = torch.nn.functional
        return [OPERATORS[operator](F, torch, LAYOUTS[layout](torch, shape)).stride() for shape in SHAPES]

    same(program)


@pytest.mark.parametrize("operator", ["group_norm", "constant", "replicate", "cat", "reflect"])
def test_volumes(operator):
    def program(torch):
        x = torch.empty((2, 3, 4, 4, 4), memory_format=torch.channels_last_3d).zero_()
        if operator in ("replicate", "reflect"):
            return torch.nn.functional.pad(x, (1,) * 6, mode=operator).stride()
        return OPERATORS[operator](torch.nn.functional, torch, x).stride()

    same(program)


def test_copies_of_arrays_with_gaps_are_dense():
    for order in ((0, 2, 1), (1, 2, 0), (2, 1, 0)):
        x = np.zeros((4, 6, 8))[::2, ::3].transpose(order)
        assert preserved_strides(x, 8) == x.copy("K").strides


RESAMPLED = {
    "nearest": lambda F, x: F.interpolate(x, scale_factor=2.0),
    "nearest-exact": lambda F, x: F.interpolate(x, size=(3, 5), mode="nearest-exact"),
    "bilinear": lambda F, x: F.interpolate(x, scale_factor=1.5, mode="bilinear"),
    "bilinear with aligned corners": lambda F, x: F.interpolate(x, size=(7, 4), mode="bilinear", align_corners=True),
    "bicubic": lambda F, x: F.interpolate(x, size=(6, 3), mode="bicubic"),
    "antialiased": lambda F, x: F.interpolate(x, size=(3, 2), mode="bilinear", antialias=True),
    "the same size": lambda F, x: F.interpolate(x, size=(4, 6), mode="bilinear"),
    "pixel_shuffle": lambda F, x: F.pixel_shuffle(x, 2),
    "pixel_unshuffle": lambda F, x: F.pixel_unshuffle(x, 2),
    "channel_shuffle": lambda F, x: F.channel_shuffle(x, 2),
}


@pytest.mark.parametrize("memory_format", ["contiguous_format", "channels_last"])
@pytest.mark.parametrize("operator", RESAMPLED)
def test_resampled_images(operator, memory_format):
    def program(torch):
        torch.manual_seed(0)
        x = torch.rand(2, 4, 4, 6, dtype=torch.float64).to(memory_format=getattr(torch, memory_format))
        x.requires_grad_()
        y = RESAMPLED[operator](torch.nn.functional, x)
        (y * y.detach()).sum().backward()
        return y.detach(), y.stride(), y.grad_fn.name(), x.grad, x.grad.stride()

    same(program)


@pytest.mark.parametrize("mode", ["bilinear", "bicubic"])
@pytest.mark.parametrize("antialias", [False, True])
def test_resampled_bytes(mode, antialias):
    def program(torch):
        results = []
        for shape in ((2, 3, 8, 8), (1, 3, 8, 8), (2, 1, 8, 8)):
            for memory_format in (torch.contiguous_format, torch.channels_last):
                x = torch.full(shape, 7, dtype=torch.uint8).contiguous(memory_format=memory_format)
                for size in (8, 5, (8, 5)):
                    y = torch.nn.functional.interpolate(x, size=size, mode=mode, antialias=antialias)
                    results.append((y.stride(), y.data_ptr() == x.data_ptr()))
        return results

    same(program)
