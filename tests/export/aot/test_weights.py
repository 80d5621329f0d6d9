"""Weights beside the file, and weights in fewer bits."""

from __future__ import annotations

import json
import subprocess
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

import flambeau as torch
from flambeau import nn
from flambeau.export import export
from flambeau.export.aot.weights import quantize, store
from tests.export.aot.javascript import NODE, literal, node
from tests.export.aot.results import agree, eager


def net():
    torch.manual_seed(0)
    module = nn.Sequential(nn.Linear(40, 20), nn.Tanh(), nn.Linear(20, 30, dtype=torch.float32)).eval()
    return module, (torch.ones(2, 40),)


def rounded(module: nn.Module, dtype: str) -> nn.Module:
    """The module with the weights that are stored."""
    with torch.no_grad():
        for p in module.parameters():
            if p.dim() > 1:
                if dtype == "bfloat16":
                    p.copy_(p.bfloat16().float())
                else:
                    q, scale = quantize(p.numpy())
                    p.copy_(torch.from_numpy(q * scale[:, None]))
    return module


@pytest.fixture(scope="module", params=[None, "bfloat16", "int8"])
def beside(request, tmp_path_factory):
    folder = tmp_path_factory.mktemp("net")
    module, args = net()
    report = export(module, args).save(folder / "net.o", target="native", weights="beside", weight_dtype=request.param)
    assert [path.name for path in report.files] == ["net.o", "net.h", "net.safetensors"]
    source = Path(__file__).parent / "weights.c"
    options = [] if request.param is None else ["-DDECODED"]
    subprocess.run(
        [
            "gcc",
            "-std=gnu99",
            "-Wall",
            "-Wextra",
            "-Werror",
            *options,
            f"-I{folder}",
            "-o",
            str(folder / "program"),
            str(source),
            str(folder / "net.o"),
        ],
        check=True,
    )
    return folder, request.param


def test_a_mapped_file(beside):
    folder, dtype = beside
    module, args = net()
    expected = eager(module if dtype is None else rounded(module, dtype), args)
    done = subprocess.run(
        [folder / "program", folder / "net.safetensors", "good"], capture_output=True, text=True, check=True
    )
    agree([np.float32(done.stdout.split()).reshape(2, 30)], expected)


@pytest.mark.parametrize(
    ("mode", "text"),
    [
        ("truncated", "not the weights file of this model, or not all of it"),
        ("other", "not the weights file"),
        ("misaligned", "an address is not a multiple"),
        ("null", "a pointer is null"),
    ],
)
def test_a_damaged_file_is_a_status(mode, text, beside):
    folder, _ = beside
    done = subprocess.run(
        [folder / "program", folder / "net.safetensors", mode], capture_output=True, text=True, check=False
    )
    assert 0 < done.returncode < 32
    assert text in done.stderr


def test_the_file_is_a_safetensors_file(beside):
    folder, dtype = beside
    data = (folder / "net.safetensors").read_bytes()
    length = int.from_bytes(data[:8], "little")
    table = json.loads(data[8 : 8 + length])
    table.pop("__metadata__")
    weight = table["0.weight"]
    assert weight["dtype"] == {None: "F32", "bfloat16": "BF16", "int8": "I8"}[dtype]
    assert weight["shape"] == [20, 40]
    places = sorted(each["data_offsets"] for each in table.values())
    assert places[0][0] == 0
    assert all(end == start for (_, end), (start, _) in pairwise(places))
    assert places[-1][1] == len(data) - 8 - length
    assert (8 + length) % 64 == 0


@pytest.mark.parametrize(("place", "dtype"), [("beside", None), ("inside", "int8")])
@pytest.mark.parametrize("runtime", NODE)
def test_weights_in_node(runtime, place, dtype, tmp_path):
    module, args = net()
    report = export(module, args).save(tmp_path / "net.wasm", weights=place, weight_dtype=dtype)
    assert len(report.files) == (3 if place == "beside" else 2)
    got = node(
        tmp_path,
        f"""
        import {{ load }} from "./net.mjs";
        const model = await load();
        model({literal(args[0].numpy())});
        console.log(JSON.stringify([...model({literal(args[0].numpy())})]));
    """,
    )
    expected = eager(module if dtype is None else rounded(module, dtype), args)
    agree([np.float32(got).reshape(2, 30)], expected)


def test_weights_in_fewer_bits_take_fewer_bytes():
    rng = np.random.default_rng(0)
    arrays = [rng.normal(size=(64, 64)).astype(np.float32), np.ones(64, np.float32)]
    sizes = {dtype: len(store(["a", "b"], arrays, dtype, False).stored) for dtype in (None, "bfloat16", "int8")}
    assert sizes == {None: 64 * 64 * 4 + 256, "bfloat16": 64 * 64 * 2 + 256, "int8": 64 * 64 + 2 * 256}
    q, scale = quantize(arrays[0])
    assert np.abs(q * scale[:, None] - arrays[0]).max() <= scale.max() / 2 * (1 + 1e-6)


def test_options_that_do_not_exist(tmp_path):
    program = export(*net())
    with pytest.raises(ValueError, match='weights= is "inside" or "beside"'):
        program.save(tmp_path / "net.so", weights="outside")
    with pytest.raises(ValueError, match='weight_dtype= is None, "bfloat16" or "int8"'):
        program.save(tmp_path / "net.so", weight_dtype="int4")
