"""Weights that are packed when the file is built."""

from __future__ import annotations

import numpy as np
import pytest

import flambeau as torch
from flambeau import nn
from flambeau.export import Dim, export
from tests.export.aot.c_program import run
from tests.export.aot.javascript import NODE, literal, node
from tests.export.aot.results import agree, eager


def convolutions() -> tuple[nn.Module, tuple[torch.Tensor, ...]]:
    """Weights for vectors over positions, Winograd, direct convolutions, few positions, products."""
    torch.manual_seed(0)
    return nn.Sequential(
        nn.Conv2d(2, 20, 3, padding=1), nn.ReLU(), nn.Conv2d(20, 32, 3, padding=1), nn.Conv2d(32, 40, 5, stride=2),
        nn.ConvTranspose2d(40, 12, 2, stride=2), nn.Conv2d(12, 24, 1), nn.AdaptiveAvgPool2d(2), nn.Flatten(),
        nn.Linear(96, 300), nn.Tanh(), nn.Linear(300, 7)).eval(), (torch.randn(9, 2, 17, 23),)


class Shared(nn.Module):
    """A weight that a product packs and a gather reads; products with a constant on either side."""

    def __init__(self) -> None:
        super().__init__()
        self.table = nn.Embedding(70, 40)
        self.register_buffer("left", torch.randn(20, 16))

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        return (self.left @ self.table(ids)) @ self.table.weight.T


@pytest.mark.parametrize("threads", [1, 2])
def test_convolutions(threads, tmp_path):
    module, args = convolutions()
    expected = eager(module, args)
    program = export(module, args)
    sizes = {}
    for packs in (True, False):
        path = tmp_path / f"net{packs:d}.so"
        report = program.save(path, target="native", threads=threads, pack_weights=packs)
        sizes[packs] = report.weights
        if threads == 1:
            agree(run(path, [x.numpy() for x in args], expected)[0], expected)
    assert sizes[True] != sizes[False]


def test_a_weight_that_is_read_in_other_ways_stays(tmp_path):
    torch.manual_seed(1)
    module, args = Shared().eval(), (torch.arange(48).reshape(3, 16),)
    expected = eager(module, args)
    path = tmp_path / "shared.so"
    report = export(module, args).save(path, target="native", pack_weights=True)
    assert report.weights > module.table.weight.nbytes * 2
    agree(run(path, [x.numpy() for x in args], expected)[0], expected)


def test_another_processor(tmp_path):
    """What is packed for another processor is packed by code for this one."""
    module, args = convolutions()
    expected = eager(module, args)
    path = tmp_path / "low.so"
    export(module, args).save(path, target="x86-64-v2", pack_weights=True)
    agree(run(path, [x.numpy() for x in args], expected)[0], expected)


@pytest.mark.parametrize("runtime", NODE)
def test_in_webassembly(runtime, tmp_path):
    module, args = convolutions()
    expected = eager(module, args)
    export(module, args).save(tmp_path / "net.wasm")
    found = node(tmp_path, f"""
import {{ readFileSync }} from "node:fs";
import {{ load }} from "./net.mjs";
const model = await load(readFileSync("./net.wasm"));
console.log(JSON.stringify(Array.from(model({literal(args[0].numpy())}))));
""")
    agree([np.float32(found).reshape(expected[0].shape)], expected)


def test_several_sizes_share_what_is_packed(tmp_path):
    torch.manual_seed(0)
    module, x = nn.Linear(64, 160).eval(), torch.randn(12, 64)
    program = export(module, (x,), dynamic_shapes=({0: Dim("batch", min=10, max=13)},))
    report = program.save(tmp_path / "line.so", target="native", pack_weights=True)
    one = export(module, (x,)).save(tmp_path / "one.so", target="native", pack_weights=True)
    assert report.weights == one.weights
