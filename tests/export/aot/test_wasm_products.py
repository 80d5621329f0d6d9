"""Products, convolutions and recurrent layers in WebAssembly: kernels of their own blocking, divided among threads."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import numpy as np
import pytest

import flambeau as torch
from flambeau import nn
from flambeau.export import export
from flambeau.export.aot.targets import resolve
from tests.export.aot.javascript import NODE, literal, node
from tests.export.aot.results import agree, eager

#: loads a module on several numbers of threads: the results of one, and whether the others' are the same bits
SCRIPT = """
    import {{ load }} from "./module.mjs";
    const x = {x};
    const results = [];
    for (const threads of [1, 2, 3]) {{
      const model = await load(undefined, {{ threads }});
      let result;
      for (let i = 0; i < 5; i += 1) result = model(x);
      results.push([...result]);
      model.close();
    }}
    const equal = results.every((each) => each.every((value, i) => Object.is(value, results[0][i])));
    console.log(JSON.stringify([equal, results[0]]));
"""


def check(folder, module: nn.Module, x: torch.Tensor) -> None:
    """Assert that a module in Node gives eager results, on any number of threads the same."""
    expected = eager(module, (x,))
    export(module, (x,)).save(folder / "module.wasm", threads=3)
    equal, result = node(folder, SCRIPT.format(x=literal(x.numpy())))
    assert equal
    agree([np.array(result, expected[0].dtype).reshape(expected[0].shape)], expected)


class Products(nn.Module):
    """Products of parts of the input with matrices whose rows, or columns, are contiguous."""

    def __init__(self, shapes: list[tuple[int, int]], dtype: torch.dtype) -> None:
        super().__init__()
        self.by_row = nn.ParameterList([torch.randn(n, k, dtype=dtype) for k, n in shapes])
        self.by_column = nn.ParameterList([torch.randn(k, n, dtype=dtype) for k, n in shapes])

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        results = []
        for rows in (1, 2, 3, 5, 33):
            results += [x[:rows, : w.shape[1]] @ w.T for w in self.by_row]
            results += [x[:rows, : w.shape[0]] @ w for w in self.by_column]
        return torch.cat([each.flatten() for each in results])


@pytest.mark.parametrize("runtime", NODE)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_products(runtime, dtype, tmp_path):
    """Of depths around whole iterations of vectors, and of widths around whole panels."""
    torch.manual_seed(0)
    depths, widths = (1, 3, 64, 65, 68, 72, 76, 80, 95, 300), (130, 1, 2, 3, 4, 15, 16, 17, 20, 33)
    check(tmp_path, Products(list(zip(depths, widths, strict=True)), dtype), torch.randn(33, 300, dtype=dtype))


class Convolutions(nn.Module):
    """Convolutions of few and many channels, in groups, depthwise, strided, of one dimension and three."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.ModuleList([
            nn.Conv2d(24, 40, 3, padding=1), nn.Conv2d(24, 7, 5, stride=2), nn.Conv2d(24, 24, 3, groups=24, padding=1),
            nn.Conv2d(24, 48, 3, groups=24, dilation=2), nn.Conv2d(24, 36, 2, groups=6), nn.Conv2d(24, 130, 1)])
        self.first, self.line, self.volume = nn.Conv2d(3, 20, 3), nn.Conv1d(24, 17, 4), nn.Conv3d(3, 5, (2, 3, 3))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        results = [layer(x) for layer in self.layers]
        results += [self.first(x[:, :3]), self.line(x.flatten(2)), self.volume(x.unflatten(1, (3, 8)))]
        return torch.cat([each.flatten() for each in results])


@pytest.mark.parametrize("runtime", NODE)
def test_convolutions(runtime, tmp_path):
    torch.manual_seed(0)
    check(tmp_path, Convolutions().eval(), torch.randn(2, 24, 11, 13))


class Layers(nn.Module):
    """The outputs of recurrent layers of one, a few and many sequences."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.ModuleList([kind(40, 100, batch_first=True) for kind in (nn.LSTM, nn.GRU, nn.RNN)])

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.cat([layer(x[:rows])[0].flatten() for layer in self.layers for rows in (1, 4, 32)])


@pytest.mark.parametrize("runtime", NODE)
def test_recurrent_layers(runtime, tmp_path):
    torch.manual_seed(0)
    check(tmp_path, Layers().eval(), torch.randn(32, 9, 40))


#: prints the chunks of a product of some rows with a matrix whose columns are contiguous
CHUNKS = """
import numpy as np
from flambeau.codegen.matmul import matmul
from flambeau.kernels import threads
from flambeau.runtime.launch import Spec
f4 = np.dtype(np.float32)
with threads.assumed({threads}):
    columns = Spec(({k}, {n}), (4, 4 * {k}), f4)
    launches = matmul.launches([Spec.dense((1, {n}), f4)], Spec.dense((1, {k}), f4), columns)
print([each.chunks for each in launches])
"""


@pytest.mark.parametrize(("threads", "k", "n", "chunks"), [
    (1, 128, 512, 1), (2, 128, 512, 2), (4, 128, 512, 4), (2, 64, 16, 1), (4, 64, 16, 1)])
def test_a_product_of_one_row_has_a_region_for_each_thread(threads, k, n, chunks):
    """The step of an LSTM of 128 units takes 5 us on one thread, and a hand-over less than 1 us."""
    host = json.dumps(resolve("wasm32", threads).variants[0].host)
    done = subprocess.run([sys.executable, "-c", CHUNKS.format(threads=threads, k=k, n=n)], capture_output=True,
                          text=True, check=False, env=os.environ | {"FLAMBEAU_TARGET": host})
    assert done.stdout == f"[{chunks}]\n", done.stderr
