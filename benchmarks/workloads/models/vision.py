"""Training steps of image models: ResNet-18, ResNet-50, MobileNetV3-small and a U-Net."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..workload import Arrays, Sizes, Workload
from .jax_layers import Parameters, batch_norm, convolution, linear, max_pool, upconvolution
from .parameters import Model, classifier, classifier_jax, parameters


def _images(model: Model, per_pixel: bool = False) -> Any:
    def arrays(sizes: Sizes, rng: np.random.Generator) -> Arrays:
        side, batch = sizes["side"], sizes["batch"]
        return {"x": rng.standard_normal((batch, 3, side, side)),
                "y": rng.integers(0, sizes["classes"], (batch, side, side) if per_pixel else batch),
                **parameters(model, sizes, rng)}

    return arrays


# ----- ResNet-18 -----

def _residual_network(torch: Any, sizes: Sizes, blocks: list[Any], outputs: int) -> Any:
    """A stem, residual blocks and a classifier of their `outputs` channels."""
    nn, width = torch.nn, sizes["width"]

    class ResNet(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.stem, self.stem_norm = nn.Conv2d(3, width, 7, 2, 3, bias=False), nn.BatchNorm2d(width)
            self.blocks = nn.ModuleList(blocks)
            self.head = nn.Linear(outputs, sizes["classes"])

        def forward(self, x: Any) -> Any:
            x = nn.functional.max_pool2d(nn.functional.relu(self.stem_norm(self.stem(x))), 3, 2, 1)
            for block in self.blocks:
                x = block(x)
            return self.head(x.mean((2, 3)))

    return ResNet()


def resnet(torch: Any, sizes: Sizes) -> Any:
    nn, relu, width = torch.nn, torch.nn.functional.relu, sizes["width"]

    class Block(nn.Module):
        def __init__(self, inputs: int, outputs: int, stride: int) -> None:
            super().__init__()
            self.conv1 = nn.Conv2d(inputs, outputs, 3, stride, 1, bias=False)
            self.conv2 = nn.Conv2d(outputs, outputs, 3, 1, 1, bias=False)
            self.norm1, self.norm2 = nn.BatchNorm2d(outputs), nn.BatchNorm2d(outputs)
            self.shortcut = None if stride == 1 else nn.Conv2d(inputs, outputs, 1, stride, bias=False)
            self.shortcut_norm = None if stride == 1 else nn.BatchNorm2d(outputs)

        def forward(self, x: Any) -> Any:
            y = self.norm2(self.conv2(relu(self.norm1(self.conv1(x)))))
            return relu(y + (x if self.shortcut is None else self.shortcut_norm(self.shortcut(x))))

    widths = [width * 2 ** stage for stage in range(sizes["stages"])]
    return _residual_network(torch, sizes, [
        Block(widths[max(stage - (k == 0), 0)], widths[stage], 2 if k == 0 and stage else 1)
        for stage in range(sizes["stages"]) for k in range(2)], widths[-1])


def resnet_jax(p: Parameters, x: Any, sizes: Sizes) -> Any:
    import jax

    relu = jax.nn.relu
    x = x.transpose(0, 2, 3, 1)
    x = max_pool(relu(batch_norm(p, "stem_norm", convolution(p, "stem", x, 2, 3))), 3, 2, 1)
    for k in range(2 * sizes["stages"]):
        name, stride = f"blocks.{k}", 2 if k in (2, 4, 6) else 1
        y = relu(batch_norm(p, f"{name}.norm1", convolution(p, f"{name}.conv1", x, stride, 1)))
        y = batch_norm(p, f"{name}.norm2", convolution(p, f"{name}.conv2", y, 1, 1))
        if stride == 2:
            x = batch_norm(p, f"{name}.shortcut_norm", convolution(p, f"{name}.shortcut", x, 2))
        x = relu(x + y)
    return linear(p, "head", x.mean((1, 2)))


# ----- ResNet-50 -----

#: blocks of each stage
_DEPTHS = (3, 4, 6, 3)


def resnet50(torch: Any, sizes: Sizes) -> Any:
    nn, relu, width = torch.nn, torch.nn.functional.relu, sizes["width"]

    class Bottleneck(nn.Module):
        def __init__(self, inputs: int, inner: int, stride: int) -> None:
            super().__init__()
            self.conv1, self.norm1 = nn.Conv2d(inputs, inner, 1, bias=False), nn.BatchNorm2d(inner)
            self.conv2 = nn.Conv2d(inner, inner, 3, stride, 1, bias=False)
            self.norm2 = nn.BatchNorm2d(inner)
            self.conv3, self.norm3 = nn.Conv2d(inner, 4 * inner, 1, bias=False), nn.BatchNorm2d(4 * inner)
            projects = inputs != 4 * inner
            self.shortcut = nn.Conv2d(inputs, 4 * inner, 1, stride, bias=False) if projects else None
            self.shortcut_norm = nn.BatchNorm2d(4 * inner) if projects else None

        def forward(self, x: Any) -> Any:
            y = relu(self.norm2(self.conv2(relu(self.norm1(self.conv1(x))))))
            y = self.norm3(self.conv3(y))
            return relu(y + (x if self.shortcut is None else self.shortcut_norm(self.shortcut(x))))

    blocks, inputs = [], width
    for stage in range(sizes["stages"]):
        inner = width * 2 ** stage
        for k in range(_DEPTHS[stage]):
            blocks.append(Bottleneck(inputs, inner, 2 if k == 0 and stage else 1))
            inputs = 4 * inner
    return _residual_network(torch, sizes, blocks, inputs)


def resnet50_jax(p: Parameters, x: Any, sizes: Sizes) -> Any:
    import jax

    relu = jax.nn.relu
    x = x.transpose(0, 2, 3, 1)
    x = max_pool(relu(batch_norm(p, "stem_norm", convolution(p, "stem", x, 2, 3))), 3, 2, 1)
    strides = [2 if k == 0 and stage else 1 for stage in range(sizes["stages"]) for k in range(_DEPTHS[stage])]
    for number, stride in enumerate(strides):
        name = f"blocks.{number}"
        y = relu(batch_norm(p, f"{name}.norm1", convolution(p, f"{name}.conv1", x)))
        y = relu(batch_norm(p, f"{name}.norm2", convolution(p, f"{name}.conv2", y, stride, 1)))
        y = batch_norm(p, f"{name}.norm3", convolution(p, f"{name}.conv3", y))
        if f"{name}.shortcut.weight" in p:
            x = batch_norm(p, f"{name}.shortcut_norm", convolution(p, f"{name}.shortcut", x, stride))
        x = relu(x + y)
    return linear(p, "head", x.mean((1, 2)))


# ----- MobileNetV3-small -----

#: kernel, expanded width, outputs, squeeze and excitation, hardswish, stride
_MOBILE = ((3, 16, 16, True, False, 2), (3, 72, 24, False, False, 2), (3, 88, 24, False, False, 1),
           (5, 96, 40, True, True, 2), (5, 240, 40, True, True, 1), (5, 240, 40, True, True, 1),
           (5, 120, 48, True, True, 1), (5, 144, 48, True, True, 1), (5, 288, 96, True, True, 2),
           (5, 576, 96, True, True, 1), (5, 576, 96, True, True, 1))


def _squeezed(width: int) -> int:
    """The width of squeeze and excitation: a quarter, rounded to a multiple of 8."""
    return max(8, (width // 4 + 4) // 8 * 8)


def mobilenet(torch: Any, sizes: Sizes) -> Any:
    nn, functional = torch.nn, torch.nn.functional

    class Block(nn.Module):
        def __init__(self, inputs: int, kernel: int, width: int, outputs: int, excites: bool, swish: bool,
                     stride: int) -> None:
            super().__init__()
            self.activation = functional.hardswish if swish else functional.relu
            self.expand = nn.Conv2d(inputs, width, 1, bias=False)
            self.expand_norm = nn.BatchNorm2d(width)
            self.depthwise = nn.Conv2d(width, width, kernel, stride, kernel // 2, groups=width, bias=False)
            self.depthwise_norm = nn.BatchNorm2d(width)
            self.squeeze = nn.Conv2d(width, _squeezed(width), 1) if excites else None
            self.excite = nn.Conv2d(_squeezed(width), width, 1) if excites else None
            self.project = nn.Conv2d(width, outputs, 1, bias=False)
            self.project_norm = nn.BatchNorm2d(outputs)
            self.residual = stride == 1 and inputs == outputs

        def forward(self, x: Any) -> Any:
            y = self.activation(self.expand_norm(self.expand(x)))
            y = self.activation(self.depthwise_norm(self.depthwise(y)))
            if self.squeeze is not None:
                scale = functional.relu(self.squeeze(functional.adaptive_avg_pool2d(y, 1)))
                y = y * functional.hardsigmoid(self.excite(scale))
            y = self.project_norm(self.project(y))
            return x + y if self.residual else y

    class MobileNet(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.stem, self.stem_norm = nn.Conv2d(3, 16, 3, 2, 1, bias=False), nn.BatchNorm2d(16)
            inputs = [16, *(row[2] for row in _MOBILE)]
            self.blocks = nn.ModuleList([Block(n, *row) for n, row in zip(inputs[:sizes["blocks"]], _MOBILE,
                                                                          strict=False)])
            self.last = nn.Conv2d(inputs[sizes["blocks"]], 576, 1, bias=False)
            self.last_norm = nn.BatchNorm2d(576)
            self.hidden, self.head = nn.Linear(576, 1024), nn.Linear(1024, sizes["classes"])

        def forward(self, x: Any) -> Any:
            x = functional.hardswish(self.stem_norm(self.stem(x)))
            for block in self.blocks:
                x = block(x)
            x = functional.hardswish(self.last_norm(self.last(x))).mean((2, 3))
            return self.head(functional.hardswish(self.hidden(x)))

    return MobileNet()


def mobilenet_jax(p: Parameters, x: Any, sizes: Sizes) -> Any:
    import jax

    x = jax.nn.hard_swish(batch_norm(p, "stem_norm", convolution(p, "stem", x.transpose(0, 2, 3, 1), 2, 1)))
    inputs = 16
    for k, (kernel, width, outputs, excites, swish, stride) in enumerate(_MOBILE[:sizes["blocks"]]):
        name, activation = f"blocks.{k}", jax.nn.hard_swish if swish else jax.nn.relu
        y = activation(batch_norm(p, f"{name}.expand_norm", convolution(p, f"{name}.expand", x)))
        y = convolution(p, f"{name}.depthwise", y, stride, kernel // 2, width)
        y = activation(batch_norm(p, f"{name}.depthwise_norm", y))
        if excites:
            scale = jax.nn.relu(convolution(p, f"{name}.squeeze", y.mean((1, 2), keepdims=True)))
            y = y * jax.nn.hard_sigmoid(convolution(p, f"{name}.excite", scale))
        y = batch_norm(p, f"{name}.project_norm", convolution(p, f"{name}.project", y))
        x = x + y if stride == 1 and inputs == outputs else y
        inputs = outputs
    x = jax.nn.hard_swish(batch_norm(p, "last_norm", convolution(p, "last", x))).mean((1, 2))
    return linear(p, "head", jax.nn.hard_swish(linear(p, "hidden", x)))


# ----- U-Net -----

def unet(torch: Any, sizes: Sizes) -> Any:
    nn, relu, widths = torch.nn, torch.nn.functional.relu, [sizes["width"] * 2 ** k for k in range(sizes["depth"])]

    class Double(nn.Module):
        def __init__(self, inputs: int, outputs: int) -> None:
            super().__init__()
            self.conv1, self.norm1 = nn.Conv2d(inputs, outputs, 3, 1, 1, bias=False), nn.BatchNorm2d(outputs)
            self.conv2, self.norm2 = nn.Conv2d(outputs, outputs, 3, 1, 1, bias=False), nn.BatchNorm2d(outputs)

        def forward(self, x: Any) -> Any:
            return relu(self.norm2(self.conv2(relu(self.norm1(self.conv1(x))))))

    class UNet(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.down = nn.ModuleList([Double(n, m) for n, m in zip([3, *widths], widths, strict=False)])
            self.up = nn.ModuleList([nn.ConvTranspose2d(2 * n, n, 2, 2) for n in widths[-2::-1]])
            self.merge = nn.ModuleList([Double(2 * n, n) for n in widths[-2::-1]])
            self.head = nn.Conv2d(widths[0], sizes["classes"], 1)

        def forward(self, x: Any) -> Any:
            skipped = []
            for k, block in enumerate(self.down):
                x = block(x if k == 0 else nn.functional.max_pool2d(x, 2))
                skipped.append(x)
            skipped.pop()
            for up, merge in zip(self.up, self.merge, strict=True):
                x = merge(torch.cat([skipped.pop(), up(x)], 1))
            return self.head(x).permute(0, 2, 3, 1)

    return UNet()


def unet_jax(p: Parameters, x: Any, sizes: Sizes) -> Any:
    import jax
    import jax.numpy as jnp

    def double(name: str, x: Any) -> Any:
        for k in (1, 2):
            x = jax.nn.relu(batch_norm(p, f"{name}.norm{k}", convolution(p, f"{name}.conv{k}", x, 1, 1)))
        return x

    x, skipped = x.transpose(0, 2, 3, 1), []
    for k in range(sizes["depth"]):
        x = double(f"down.{k}", x if k == 0 else max_pool(x, 2, 2))
        skipped.append(x)
    skipped.pop()
    for k in range(sizes["depth"] - 1):
        x = double(f"merge.{k}", jnp.concatenate([skipped.pop(), upconvolution(p, f"up.{k}", x)], -1))
    return convolution(p, "head", x)


ROWS = [
    # Results are checked at fewer stages: rectifiers and norms amplify rounding. After five steps of a whole model the
    # gradients of the first layer differ from float64 by up to a fifth, in PyTorch, too.
    Workload("resnet18", "ResNet-18, 8 images of 96 x 96, SGD step", 1.2, 1.2,
             {"stages": 4, "width": 64, "side": 96, "batch": 8, "classes": 100},
             {"stages": 2, "width": 4, "side": 24, "batch": 3, "classes": 5},
             _images(resnet), {"": classifier(resnet)}, {"": classifier_jax(resnet_jax)}, optimizer=True,
             checked={"stages": 2, "width": 64, "side": 32, "batch": 8, "classes": 100}),
    Workload("resnet50", "ResNet-50, 4 images of 96 x 96, SGD step", 1.2, 1.2,
             {"stages": 4, "width": 64, "side": 96, "batch": 4, "classes": 100},
             {"stages": 1, "width": 4, "side": 24, "batch": 3, "classes": 5},
             _images(resnet50), {"": classifier(resnet50)}, {"": classifier_jax(resnet50_jax)}, optimizer=True,
             checked={"stages": 1, "width": 64, "side": 32, "batch": 8, "classes": 100}),
    Workload("mobilenet", "MobileNetV3-small, 8 images of 96 x 96, SGD step", 1.2, 1.2,
             {"blocks": 11, "side": 96, "batch": 8, "classes": 100},
             {"blocks": 2, "side": 32, "batch": 3, "classes": 5},
             _images(mobilenet), {"": classifier(mobilenet)}, {"": classifier_jax(mobilenet_jax)}, optimizer=True,
             checked={"blocks": 3, "side": 64, "batch": 8, "classes": 100}),
    Workload("unet", "U-Net, 4 levels, 32 wide, 2 images of 96 x 96, SGD step", 1.2, 1.2,
             {"width": 32, "depth": 4, "side": 96, "batch": 2, "classes": 8},
             {"width": 4, "depth": 2, "side": 8, "batch": 2, "classes": 3},
             _images(unet, per_pixel=True), {"": classifier(unet)}, {"": classifier_jax(unet_jax)}, optimizer=True,
             checked={"width": 32, "depth": 2, "side": 96, "batch": 2, "classes": 8}),
]
