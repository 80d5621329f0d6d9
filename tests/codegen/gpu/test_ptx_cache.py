"""PTX in the persistent cache: the next process, here an emptied memory, generates none."""

from __future__ import annotations

import pytest

from flambeau import codegen
from flambeau.codegen.gpu.kernel_ir import KernelBuilder
from flambeau.codegen.gpu.nvptx import ptx

pytestmark = pytest.mark.skipif(not codegen.available(), reason="llvmlite is not installed, or FLAMBEAU_JIT is 0")


def test_code_is_found_again(monkeypatch, tmp_path):
    monkeypatch.setenv("FLAMBEAU_CACHE_DIR", str(tmp_path))
    b = KernelBuilder("fill", threads=32)
    x = b.buffer("int32")
    b.store(x, b.thread, b.thread * 77)
    kernel = b.kernel()
    code = ptx.compile_kernels([kernel], "sm_90")
    ptx._compile.cache_clear()
    monkeypatch.setattr(ptx, "_generated", None)
    assert ptx.compile_kernels([kernel], "sm_90") == code
    with pytest.raises(TypeError):  # other code for another architecture
        ptx.compile_kernels([kernel], "sm_80")
