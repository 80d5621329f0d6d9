"""The compilation target: this machine's processor and features, LLVM's target machines and pass pipelines.

`FLAMBEAU_JIT_WIDTH` (128, 256 or 512) limits the width of vectors in bits. `FLAMBEAU_TARGET`, the fields of a `Host` in
JSON, makes this process generate code for another machine, which it cannot run: ahead-of-time compilation
(`flambeau.export.aot`) sets it for processes of its own.
"""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

from .cache_store import MEASUREMENTS

_FEATURES_OF_WIDER = {256: ("avx512", "evex512", "avx10"), 128: ("avx", "fma", "f16c", "evex512", "vaes", "vpclmulqdq")}


class Host(NamedTuple):
    """The processor in LLVM's terms, and the width of its vectors in bits."""

    triple: str
    cpu: str
    features: str
    vector_bits: int
    version: str  # of llvmlite and LLVM
    converts_half: bool  # whether it has instructions that convert float16

    @property
    def is_wasm(self) -> bool:
        """Whether it is WebAssembly, whose engine chooses registers and the order of instructions."""
        return self.triple.startswith("wasm")


@cache
def is_foreign() -> bool:
    """Whether code is generated for another machine than this one."""
    return "FLAMBEAU_TARGET" in os.environ


@cache
def host() -> Host:
    """The machine for which code is generated: this one, unless `FLAMBEAU_TARGET` names another."""
    if is_foreign():
        return Host(*json.loads(os.environ["FLAMBEAU_TARGET"]))
    return this_machine()


@cache
def this_machine() -> Host:
    """This machine."""
    triple, cpu, flags, version = _describe_host()
    width = 512 if flags.get("avx512f") and flags.get("avx512vl") else 256 if flags.get("avx2") else 128
    limit = os.environ.get("FLAMBEAU_JIT_WIDTH", "")
    if limit.isdigit() and int(limit) < width:
        width = 256 if int(limit) >= 256 else 128
        for name in flags:
            if name.startswith(_FEATURES_OF_WIDER[width]):
                flags[name] = False
    if flags.get("avx512f"):
        flags["prefer-256-bit"] = False
    features = ",".join(("+" if on else "-") + name for name, on in sorted(flags.items()))
    converts_half = bool(flags.get("f16c")) or triple.startswith(("aarch64", "arm64"))
    return Host(triple, cpu, features, width, version, converts_half)


def _describe_host() -> tuple[str, str, dict[str, bool], str]:
    """The target triple, the processor's name and features, and the versions of llvmlite and LLVM.

    The persistent cache holds them too: a process that finds all its code there does not import llvmlite.
    """
    entry = _host_fingerprint()
    cached = None if entry is None else MEASUREMENTS.read(entry)
    if cached is not None:
        try:
            triple, cpu, features, version = json.loads(cached)
            return str(triple), str(cpu), dict.fromkeys(features[0], True) | dict.fromkeys(features[1], False), version
        except (ValueError, TypeError, IndexError):
            pass
    import llvmlite
    import llvmlite.binding as llvm

    version = f"{llvmlite.__version__}/{'.'.join(map(str, llvm.llvm_version_info))}"
    triple, cpu, flags = llvm.get_process_triple(), llvm.get_host_cpu_name(), dict(llvm.get_host_cpu_features())
    if entry is not None:
        features = [sorted(name for name, on in flags.items() if on is enabled) for enabled in (True, False)]
        MEASUREMENTS.write(entry, json.dumps([triple, cpu, features, version]).encode())
    return triple, cpu, flags, version


def _host_fingerprint() -> str | None:
    """The cache key of this processor and LLVM, computed without importing llvmlite; None where that is impossible."""
    try:
        with open("/proc/cpuinfo", encoding="utf-8", errors="replace") as file:
            first = file.read(1 << 14).split("\n\n")[0]
        found = find_spec("llvmlite")
        library = None if found is None or found.origin is None else Path(found.origin).parent / "binding"
        if library is None or "flags" not in first:
            return None
        status = (library / "libllvmlite.so").stat()
    except OSError:
        return None
    identity = [line for line in first.splitlines() if line.partition("\t")[0].strip(" :") in (
        "vendor_id", "cpu family", "model", "model name", "stepping", "flags")]
    return MEASUREMENTS.key("host", *identity, str(library), str(status.st_size), str(status.st_mtime_ns))


_generating = threading.local()


def code_target() -> Host:
    """What code is generated for in this thread: `host`, unless `generating_for` says otherwise."""
    return getattr(_generating, "target", None) or host()


@contextmanager
def generating_for(device: Host) -> Iterator[None]:
    """Generate code for another processor in this thread, such as a GPU; its caches are the caller's concern."""
    before = getattr(_generating, "target", None)
    _generating.target = device
    try:
        yield
    finally:
        _generating.target = before


@cache
def _initialize() -> None:
    import llvmlite.binding as llvm

    if is_foreign():  # without parsers of inline assembly, which LLVM has for this machine only
        llvm.initialize_all_targets()
        llvm.initialize_all_asmprinters()
        return
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    llvm.initialize_native_asmparser()


def machine() -> Any:
    """A new target machine, owned by the caller."""
    _initialize()
    return machine_for(host())


def machine_for(this: Host) -> Any:
    """A new target machine for a processor whose target is initialized, owned by the caller."""
    import llvmlite.binding as llvm

    reloc = "static" if this.is_wasm else "pic"
    return llvm.Target.from_triple(this.triple).create_target_machine(
        cpu=this.cpu, features=this.features, opt=3, reloc=reloc, codemodel="default")


def pass_builder(tm: Any) -> Any:
    """A pass builder without loop vectorization and unrolling, since code generation has done both."""
    import llvmlite.binding as llvm

    options = llvm.create_pipeline_tuning_options(speed_level=2)
    options.loop_vectorization = options.slp_vectorization = options.loop_unrolling = False
    options.loop_interleaving = False
    return llvm.create_pass_builder(tm, options)


def pipeline(builder: Any, passes: bool | str) -> Any:
    """The pass pipeline: LLVM's default, or with "few" the passes that loops of plain arithmetic need.

    The short pipeline takes a third of the time, for code that the default one makes no faster.
    """
    import llvmlite.binding as llvm

    if passes != "few":
        return builder.getModulePassManager()
    manager = llvm.create_new_module_pass_manager()
    manager.add_always_inliner_pass()
    manager.add_sroa_pass()
    manager.add_instruction_combine_pass()
    manager.add_new_gvn_pass()
    manager.add_loop_rotate_pass()
    manager.add_simplify_cfg_pass()
    manager.add_aggressive_dce_pass()
    return manager


def optimize(source: str, tm: Any, passes: bool | str = True) -> Any:
    """The LLVM module of `source`, after the passes of `pipeline`; `passes` False: unoptimized."""
    import llvmlite.binding as llvm

    module = llvm.parse_assembly(source)
    module.triple = host().triple
    module.data_layout = str(tm.target_data)
    module.verify()
    if passes:
        builder = pass_builder(tm)
        pipeline(builder, passes).run(module, builder)
    return module
