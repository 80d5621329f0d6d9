"""PTX of kernels, by LLVM's NVPTX target.

No GPU is needed, and later processes find the code in the persistent cache. No operation is contracted or reordered: a
kernel rounds as its expressions say.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache, lru_cache
from typing import Any

from ....runtime import target
from ....runtime.cache_store import CODE
from ..kernel_ir import Kernel

#: the PTX version of the code: CUDA 11.0 and later read it; sm_90 needs 7.8
_PTX_VERSIONS = {"sm_80": 70, "sm_86": 71, "sm_89": 78, "sm_90": 78}
ARCHITECTURES = tuple(_PTX_VERSIONS)
_TRIPLE = "nvptx64-nvidia-cuda"


def device_target(architecture: str) -> target.Host:
    """The GPU as a target of code generation.

    Raises:
        ValueError: the architecture is unknown.
    """
    if architecture not in _PTX_VERSIONS:
        raise ValueError(f"no code for {architecture!r}: write one of {', '.join(ARCHITECTURES)}")
    return target.Host(_TRIPLE, architecture, f"+ptx{_PTX_VERSIONS[architecture]}", 0, "", True)


@cache
def _machine(architecture: str) -> Any:
    import llvmlite.binding as llvm

    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()
    device = device_target(architecture)
    return llvm.Target.from_triple(_TRIPLE).create_target_machine(cpu=device.cpu, features=device.features, opt=3)


def llvm_ir(kernels: Sequence[Kernel], architecture: str = "sm_80") -> str:
    """The LLVM IR of kernels, before optimization."""
    from . import lowering as llvm_lowering

    with target.generating_for(device_target(architecture)):
        return str(llvm_lowering.module_of(kernels))


def compile_kernels(kernels: Sequence[Kernel], architecture: str = "sm_80") -> str:
    """The PTX of kernels: one module, whose entry points have the kernels' names.

    >>> from flambeau import codegen
    >>> from flambeau.codegen.gpu.kernel_ir import KernelBuilder
    >>> b = KernelBuilder("fill", threads=32)
    >>> x = b.buffer("int32")
    >>> b.store(x, b.thread, b.thread)
    >>> print(".visible .entry fill_" in compile_kernels([b.kernel()]) if codegen.available() else True)
    True
    """
    return _compile(tuple(dict.fromkeys(kernels)), architecture)


@lru_cache(256)
def _compile(kernels: tuple[Kernel, ...], architecture: str) -> str:
    import llvmlite.binding as llvm

    distinct = {kernel.name: kernel for kernel in kernels}
    key = CODE.key("ptx", architecture, repr(llvm.llvm_version_info), *[each.text for each in distinct.values()])
    known = CODE.read(key)
    if known is None:
        known = _generated(distinct, architecture).encode()
        CODE.write(key, known)
    return known.decode()


def _generated(distinct: dict[str, Kernel], architecture: str) -> str:
    import llvmlite.binding as llvm

    machine = _machine(architecture)
    module = llvm.parse_assembly(llvm_ir(list(distinct.values()), architecture))
    module.triple, module.data_layout = _TRIPLE, str(machine.target_data)
    module.verify()
    options = llvm.create_pipeline_tuning_options(speed_level=2)
    options.loop_vectorization = options.slp_vectorization = False
    builder = llvm.create_pass_builder(machine, options)
    builder.getModulePassManager().run(module, builder)
    return str(machine.emit_assembly(module))


__all__ = ["ARCHITECTURES", "compile_kernels", "device_target", "llvm_ir"]
