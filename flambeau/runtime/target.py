"""The machine that code is made for: this one, its widest vectors included.

`FLAMBEAU_JIT_WIDTH` (128, 256 or 512) keeps to narrower vectors than the processor has.
"""

from __future__ import annotations

import json
import os
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

from .cache_store import MEASUREMENTS

_NARROWER = {256: ("avx512", "evex512", "avx10"), 128: ("avx", "fma", "f16c", "evex512", "vaes", "vpclmulqdq")}


class Host(NamedTuple):
    """A processor as LLVM names it, and the width of its vectors in bits."""

    triple: str
    cpu: str
    features: str
    vector_bits: int
    version: str  # of what compiles for it
    halves: bool  # whether it converts float16


@cache
def host() -> Host:
    """This machine."""
    triple, cpu, found, version = _described()
    width = 512 if found.get("avx512f") and found.get("avx512vl") else 256 if found.get("avx2") else 128
    asked = os.environ.get("FLAMBEAU_JIT_WIDTH", "")
    if asked.isdigit() and int(asked) < width:
        width = 256 if int(asked) >= 256 else 128
        for name in found:
            if name.startswith(_NARROWER[width]):
                found[name] = False
    if found.get("avx512f"):
        found["prefer-256-bit"] = False
    features = ",".join(("+" if on else "-") + name for name, on in sorted(found.items()))
    halves = bool(found.get("f16c")) or triple.startswith(("aarch64", "arm64"))
    return Host(triple, cpu, features, width, version, halves)


def _described() -> tuple[str, str, dict[str, bool], str]:
    """LLVM's names for this system, the processor and its features, and LLVM's own version.

    A process that finds all its code on disk needs nothing else of LLVM: so the answer is kept there too.
    """
    entry = _identity()
    kept = None if entry is None else MEASUREMENTS.read(entry)
    if kept is not None:
        try:
            triple, cpu, features, version = json.loads(kept)
            return str(triple), str(cpu), dict.fromkeys(features[0], True) | dict.fromkeys(features[1], False), version
        except (ValueError, TypeError, IndexError):
            pass
    import llvmlite
    import llvmlite.binding as llvm

    version = f"{llvmlite.__version__}/{'.'.join(map(str, llvm.llvm_version_info))}"
    triple, cpu, found = llvm.get_process_triple(), llvm.get_host_cpu_name(), dict(llvm.get_host_cpu_features())
    if entry is not None:
        features = [sorted(name for name, on in found.items() if on is wanted) for wanted in (True, False)]
        MEASUREMENTS.write(entry, json.dumps([triple, cpu, features, version]).encode())
    return triple, cpu, found, version


def _identity() -> str | None:
    """What tells this processor and this LLVM from others without asking LLVM; None where nothing does."""
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
    told = [line for line in first.splitlines() if line.partition("\t")[0].strip(" :") in (
        "vendor_id", "cpu family", "model", "model name", "stepping", "flags")]
    return MEASUREMENTS.key("host", *told, str(library), str(status.st_size), str(status.st_mtime_ns))


@cache
def _initialize() -> None:
    import llvmlite.binding as llvm

    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    llvm.initialize_native_asmparser()


def machine() -> Any:
    """A new target machine: whoever is handed one owns it."""
    import llvmlite.binding as llvm

    _initialize()
    this = host()
    return llvm.Target.from_triple(this.triple).create_target_machine(
        cpu=this.cpu, features=this.features, opt=3, reloc="pic", codemodel="default")


def pass_builder(tm: Any) -> Any:
    """What makes and runs passes for a machine: the loops come vectorised and unrolled already, and stay so."""
    import llvmlite.binding as llvm

    options = llvm.create_pipeline_tuning_options(speed_level=2)
    options.loop_vectorization = options.slp_vectorization = options.loop_unrolling = False
    options.loop_interleaving = False
    return llvm.create_pass_builder(tm, options)


def pipeline(builder: Any, passes: bool | str) -> Any:
    """The passes to run: the usual ones, or "few": what loops of plain arithmetic need.

    Code that the usual pipeline makes no quicker takes a third of its time.
    """
    import llvmlite.binding as llvm

    if passes != "few":
        return builder.getModulePassManager()
    made = llvm.create_new_module_pass_manager()
    made.add_always_inliner_pass()
    made.add_sroa_pass()
    made.add_instruction_combine_pass()
    made.add_new_gvn_pass()
    made.add_loop_rotate_pass()
    made.add_simplify_cfg_pass()
    made.add_aggressive_dce_pass()
    return made


def optimize(source: str, tm: Any, passes: bool | str = True) -> Any:
    """LLVM's module of `source`, after the passes that `pipeline` names; False: as it comes."""
    import llvmlite.binding as llvm

    module = llvm.parse_assembly(source)
    module.triple = host().triple
    module.data_layout = str(tm.target_data)
    module.verify()
    if passes:
        builder = pass_builder(tm)
        pipeline(builder, passes).run(module, builder)
    return module
