"""The innermost loops of matmul and convolution on other processors: `python -m tests.codegen.spills CPU`.

Prints a line of JSON for every loop that multiplies: the code's name, multiplications, instructions, and vectors that
are stored to the stack. Nothing is run, so any processor that LLVM knows will do.
"""

from __future__ import annotations

import json
import re
import sys

import llvmlite.binding as llvm
import numpy as np

from flambeau.codegen.convolution import convolution
from flambeau.codegen.matmul import code as matmul_code
from flambeau.runtime import compilation, target
from flambeau.runtime.launch import Spec

#: processors: target triple, target features, bits of a vector
PROCESSORS = {
    "znver3": ("x86_64-unknown-linux-gnu", "+fma", 256),
    "haswell": ("x86_64-unknown-linux-gnu", "+fma", 256),
    "znver5": ("x86_64-unknown-linux-gnu", "+fma,-prefer-256-bit", 512),
    "sapphirerapids": ("x86_64-unknown-linux-gnu", "+fma,-prefer-256-bit", 512),
    "neoverse-n1": ("aarch64-unknown-linux-gnu", "", 128),
    "apple-m1": ("aarch64-unknown-linux-gnu", "", 128),
}
#: channels in and out, pixels in a row and a column, and the kernel's side
CONVOLUTIONS = ((32, 64, 28, 3), (1, 32, 28, 3), (64, 64, 14, 3), (16, 48, 50, 5), (3, 64, 112, 7), (64, 96, 7, 3))


def main(cpu: str) -> None:
    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()
    triple, features, bits = PROCESSORS[cpu]
    here = target.Host(triple, cpu, features, bits, "", True)
    target.host = lambda: here
    for dtype in ("float32", "float64"):
        report(f"matmul {dtype}", matmul_code.generate(np.dtype(dtype)), False)
    for inner, outer, pixels, kernel in CONVOLUTIONS:
        x, w = _spec(8, inner, pixels, pixels), _spec(outer, inner, kernel, kernel)
        y = _spec(8, outer, pixels, pixels)
        half = kernel // 2
        options = {"stride": (1, 1), "padding": (half, half), "dilation": (1, 1), "groups": 1}
        convolution.forward([y], x, w, **options)
        convolution.input_gradient([x], y, w, **options)
        convolution.weight_gradient([w], x, y, **options)
    for library in list(compilation._loaded.values()):
        if library.recipe.startswith(("convolution panel_pass", "convolution gradient float",
                                      "convolution winograd panel_pass")):
            report(library.recipe, library.ir, library._passes)


def _spec(*shape: int) -> Spec:
    array = np.empty(shape, np.float32)
    return Spec(array.shape, array.strides, array.dtype)


def report(name: str, source: str, passes: bool | str) -> None:
    machine = target.machine()
    for body in innermost(machine.emit_assembly(target.optimize(source, machine, passes))):
        products = sum(bool(re.match(r"\s+(vfmadd|fmla)", line)) for line in body)
        stored = sum(bool(re.match(r"\s+(vmov[au]p[sd]\s+%[xyz]mm\d+, .*\(%r[sb]p\)|st[rp]\s+q.*\[sp)", line))
                     for line in body)
        if products >= 8:
            print(json.dumps({"code": name, "products": products, "instructions": len(body), "spilled": stored}))


def innermost(assembly: str) -> list[list[str]]:
    """The instructions of every loop without an inner loop or a jump target."""
    lines, labels, found = assembly.splitlines(), {}, []
    for i, line in enumerate(lines):
        if label := re.match(r"(\.L\w+):", line):
            labels[label[1]] = i
        jump = re.match(r"\s+(?:j\w+|b|b\.\w+|cbn?z|tbn?z)\s+(?:.*,\s*)?(\.L\w+)\s*$", line)
        if jump and jump[1] in labels:
            inside = lines[labels[jump[1]] + 1:i + 1]
            if not any(re.match(r"\.L\w+:", each) for each in inside):
                found.append([each for each in inside if re.match(r"\s+[a-z]", each)])
    return found


if __name__ == "__main__":
    main(sys.argv[1])
