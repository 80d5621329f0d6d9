"""PTX of scalar IR, statement by statement; NVIDIA's assembler accepts it."""

from __future__ import annotations

import numpy as np
import pytest

from flambeau.codegen.gpu.kernel_ir import KernelBuilder, substitute
from flambeau.codegen.gpu.nvptx import ptx, ptxas
from flambeau.codegen.scalar import scalar_ir as e
from flambeau.dtypes import BFLOAT16
from tests.codegen.gpu.assembling import assemble

FLOATS, INTEGERS = ("float32", "float64"), ("int32", "int64", "uint8", "uint64")
DTYPES = ("bool", "uint8", "int8", "int16", "int32", "int64", "uint32", "uint64", "float16", BFLOAT16, "float32",
          "float64")


def kernel_of(node, dtypes):
    """A kernel that computes one element of an expression over arrays of these dtypes."""
    b = KernelBuilder("scalar", 32)
    inputs = [b.buffer(dtype) for dtype in dtypes]
    known = {e.variable(i, dtype): b.load(x, b.thread) for i, (x, dtype) in enumerate(zip(inputs, dtypes, strict=True))}
    b.store(b.buffer(node.dtype), b.thread, substitute(node, known))
    return b.kernel()


def operations():
    """Every operation of scalar IR on every dtype that it is defined for."""
    made = []
    for op, arity in {**e.FLOATING, **e.ARITHMETIC, **e.BITWISE, **dict.fromkeys(e.COMPARISON, 2)}.items():
        for dtype in ("bool", *INTEGERS, *FLOATS):
            if op in e.FLOAT32_ONLY and dtype == "float64":
                continue
            try:
                node = e.apply(op, *(e.variable(i, dtype) for i in range(arity)))
            except TypeError:
                continue
            if not (dtype in (*INTEGERS, "bool") and op in ("fmin", "fmax")):
                made.append(kernel_of(node, [dtype] * arity))
    return made


def test_every_operation_is_assembled():
    kernels = operations()
    assert len(kernels) > 150
    assemble(kernels)


def test_every_cast_is_assembled():
    assemble([kernel_of(e.cast(e.variable(0, source), to), [source]) for source in DTYPES for to in DTYPES
              if e.variable(0, source).dtype != np.dtype(to)])


def test_multiplications_and_additions_are_not_contracted():
    x, y, z = (e.variable(i, "float32") for i in range(3))
    text = ptx.compile_kernels([kernel_of(x * y + z, ["float32"] * 3)])
    assert "mul.rn.f32" in text
    assert "fma" not in text


def test_what_the_assembler_refuses_is_an_error():
    if ptxas.path() is None:
        pytest.skip("ptxas is not installed: pip install flambeau[cuda-test]")
    with pytest.raises(RuntimeError, match="ptxas refuses the code for sm_80:"):
        ptxas.assemble(".version 7.0\n.target sm_80\nnonsense", "sm_80")


def test_unknown_architectures_and_blocks_are_refused():
    with pytest.raises(ValueError, match="no code for 'sm_35'"):
        ptx.compile_kernels([], "sm_35")
    with pytest.raises(ValueError, match="a block of 100 threads"):
        KernelBuilder("odd", 100)
    with pytest.raises(TypeError, match="no atomic add of float16"):
        b = KernelBuilder("narrow", 32)
        b.atomic("add", b.buffer("float16"), b.thread, e.constant(1.0, "float32"))


@pytest.mark.parametrize("shape", ["m16n8k16.bf16", "m16n8k16.f16", "m16n8k8.tf32"])
def test_tensor_core_instructions_are_assembled(shape):
    from flambeau.codegen.gpu.fragments import SHAPES

    layout = SHAPES[shape]
    b = KernelBuilder("mma", 32)
    left, right, out = b.buffer(layout.dtype), b.buffer(layout.dtype), b.buffer("float32")
    a = [b.load(left, b.thread * 8 + i) for i in range(len(layout.a(0)))]
    c = [b.load(right, b.thread * 4 + i) for i in range(len(layout.b(0)))]
    zero = e.constant(0.0, "float32")
    for i, each in enumerate(b.mma(shape, a, c, [zero] * 4)):
        b.store(out, b.thread * 4 + i, each)
    assemble([b.kernel()])
    assert f"mma.sync.aligned.m16n8k{layout.k}.row.col.f32" in ptx.compile_kernels([b.kernel()], "sm_80")
