"""Other processors: x86-64's levels, aarch64."""

from __future__ import annotations

import os
import struct
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from flambeau.export import export
from flambeau.export.aot.linking import zig
from flambeau.export.aot.targets import NAMES, resolve
from tests.export.aot.c_program import emulator, run
from tests.export.aot.models import make, zoo
from tests.export.aot.results import agree, eager


def machine(path: Path) -> int:
    """The processor that an ELF file is for."""
    code = path.read_bytes()
    assert code[:4] == b"\x7fELF"
    return struct.unpack_from("<H", code, 18)[0]


@pytest.mark.parametrize(("target", "name"), [("x86-64", "mlp"), ("x86-64-v2", "cnn"), ("x86-64-v3", "gpt")])
def test_levels_of_x86_64(target, name, tmp_path):
    """The first library has code for all levels; the others make sure that each level is run here."""
    module, args = make(name)
    expected = eager(module, args)
    path = tmp_path / f"{name}.so"
    export(module, args).save(path, target=target)
    [got] = run(path, [x.numpy() for x in args], expected)
    agree(got, expected)


def test_code_for_aarch64(tmp_path):
    module, args = zoo()
    expected = eager(module, args)
    path = tmp_path / "zoo.o"
    export(module, args).save(path, target="aarch64")
    assert machine(path) == 183
    target = resolve("aarch64").zig_triple
    bare = Path(__file__).parent / "bare.c"
    subprocess.run(
        [
            *zig(),
            "cc",
            "-target",
            target,
            "-O1",
            "-ffreestanding",
            "-fno-stack-protector",
            "-c",
            str(bare),
            "-o",
            str(tmp_path / "bare.o"),
        ],
        check=True,
    )
    program = tmp_path / "program"
    subprocess.run([*zig(), "ld.lld", "-static", "-o", str(program), str(tmp_path / "bare.o"), str(path)], check=True)
    assert machine(program) == 183
    command = emulator()
    if command:
        arrays = [x.numpy() for x in args]
        words = [np.array([len(arrays), len(expected)], np.int64).tobytes()]
        words += [np.int64(a.nbytes).tobytes() + np.ascontiguousarray(a).tobytes() for a in arrays]
        words += [np.int64(a.nbytes).tobytes() for a in expected]
        done = subprocess.run([*command, str(program)], input=b"".join(words), capture_output=True, check=True)
        got, at = [], 0
        for a in expected:
            got.append(np.frombuffer(done.stdout, a.dtype, a.size, at).reshape(a.shape))
            at += a.nbytes
        agree(got, expected)


_BUILD = """
import sys
from flambeau.export import export
from tests.export.aot.models import make
module, args = make("mlp")
export(module, args).save(sys.argv[1])
"""


def test_code_does_not_depend_on_the_machine_that_compiles_it(tmp_path):
    """A machine with narrower vectors, more threads and an empty code cache builds the same file."""
    module, args = make("mlp")
    export(module, args).save(tmp_path / "mlp.wasm")
    (tmp_path / "other").mkdir()
    other = {"FLAMBEAU_JIT_WIDTH": "128", "OMP_NUM_THREADS": "7", "FLAMBEAU_CACHE_DIR": str(tmp_path / "cache")}
    command = [sys.executable, "-c", _BUILD, str(tmp_path / "other" / "mlp.wasm")]
    subprocess.run(command, check=True, env=os.environ | other)
    assert (tmp_path / "other" / "mlp.wasm").read_bytes() == (tmp_path / "mlp.wasm").read_bytes()


@pytest.mark.parametrize("name", NAMES)
def test_targets_have_triples(name):
    target = resolve(name)
    assert target.triple.count("-") >= 2
    assert all(each.host.vector_bits in (128, 256, 512) for each in target.variants)
    assert target.is_wasm is (name == "wasm32")
