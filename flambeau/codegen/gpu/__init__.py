"""Kernels for NVIDIA GPUs: a kernel IR of threads and blocks, its lowering to PTX, and its execution on the CPU.

Expressions are scalar IR (`codegen.scalar`), as on the CPU; a kernel (`kernel_ir`) adds what scalar IR lacks: memory,
loops, barriers, shuffles. `ptx` lowers kernels by LLVM's NVPTX target, `ptxas` assembles PTX, `emulator` runs kernels
on the CPU and reports accesses out of bounds and races. The families of kernels return launches, as those of the CPU
do. Nothing here needs a GPU.
"""
