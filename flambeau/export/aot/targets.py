"""Targets of ahead-of-time compilation: names, and what LLVM and the code generators are told of each.

A name stands for one or several *variants* of the code: "x86-64" is compiled for three levels of the architecture, of
which the best that the processor has is chosen when the model runs first.
"""

from __future__ import annotations

import platform
from typing import NamedTuple

from ...runtime import target as compilation_target
from ...runtime.target import Host

_V2 = ("cx16", "popcnt", "sahf", "sse3", "sse4.1", "sse4.2", "ssse3")
_V3 = (*_V2, "avx", "avx2", "bmi", "bmi2", "f16c", "fma", "lzcnt", "movbe", "xsave")
_V4 = (*_V3, "avx512bw", "avx512cd", "avx512dq", "avx512f", "avx512vl", "evex512")


class Variant(NamedTuple):
    """One processor that code is compiled for.

    Attributes:
        name: part of symbols.
        host: what code generation is told.
        level: the level of x86-64 that the processor must have; 0: it is not checked.
    """

    name: str
    host: Host
    level: int = 0


class Target(NamedTuple):
    """A target.

    Attributes:
        name: as the user spells it.
        variants: the best first.
        zig_triple: the target in the spelling of zig, which links for other systems than this one.
    """

    name: str
    variants: tuple[Variant, ...]
    zig_triple: str

    @property
    def triple(self) -> str:
        """LLVM's target triple."""
        return self.variants[0].host.triple

    @property
    def is_wasm(self) -> bool:
        """Whether the file is a WebAssembly module."""
        return self.triple.startswith("wasm")

    @property
    def shares_memory(self) -> bool:
        """Whether the file is a WebAssembly module whose memory several threads may use."""
        return self.is_wasm and "+atomics" in self.variants[0].host.features.split(",")


def _x86(level: int) -> Variant:
    names = {2: _V2, 3: _V3, 4: _V4}[level]
    features = [*sorted(f"+{name}" for name in names), *(["-prefer-256-bit"] if level == 4 else [])]
    host = Host(
        "x86_64-unknown-linux-gnu",
        f"x86-64-v{level}",
        ",".join(features),
        {2: 128, 3: 256, 4: 512}[level],
        compilation_target.host().version,
        level > 2,
    )
    return Variant(f"v{level}", host, level)


def _other(name: str, triple: str, cpu: str, features: str, converts_half: bool) -> Variant:
    return Variant(name, Host(triple, cpu, features, 128, compilation_target.host().version, converts_half))


#: name -> what it means
NAMES = {
    "native": "this machine's processor only",
    "x86-64": "x86-64-v2, v3 and v4, chosen when the model runs first",
    "x86-64-v2": "x86-64 with SSE 4.2",
    "x86-64-v3": "x86-64 with AVX2 and FMA",
    "x86-64-v4": "x86-64 with AVX-512",
    "aarch64": "64-bit Arm with NEON",
    "wasm32": "WebAssembly with SIMD128",
}


def resolve(name: str, threads: int = 1) -> Target:
    """The target of a name.

    Args:
        name: one of `NAMES`.
        threads: how many threads a run is planned for: for several, WebAssembly needs atomic instructions.

    Raises:
        ValueError: there is no such target.

    >>> resolve("aarch64").variants[0].host.triple
    'aarch64-unknown-linux-gnu'
    """
    linux = "x86_64-linux-gnu"
    if name == "native":
        host = compilation_target.host()
        return Target(name, (Variant("native", host),), f"{platform.machine()}-linux-gnu")
    if name == "x86-64":
        return Target(name, (_x86(4), _x86(3), _x86(2)), linux)
    if name in ("x86-64-v2", "x86-64-v3", "x86-64-v4"):
        return Target(name, (_x86(int(name[-1])),), linux)
    if name == "aarch64":
        variant = _other("neon", "aarch64-unknown-linux-gnu", "generic", "+neon,+fp-armv8", True)
        return Target(name, (variant,), "aarch64-linux-gnu")
    if name == "wasm32":
        features = "+bulk-memory,+mutable-globals,+nontrapping-fptoint,+sign-ext,+simd128"
        features = f"+atomics,{features}" if threads > 1 else features
        return Target(
            name, (_other("simd", "wasm32-unknown-unknown", "generic", features, False),), "wasm32-freestanding"
        )
    raise ValueError(f"there is no target {name!r}: the targets are {', '.join(map(repr, NAMES))}")


def default_name(is_wasm: bool) -> str:
    """The target of a file whose target is not given."""
    if is_wasm:
        return "wasm32"
    machine = platform.machine().lower()
    return {"x86_64": "x86-64", "amd64": "x86-64", "aarch64": "aarch64", "arm64": "aarch64"}.get(machine, "native")


__all__ = ["NAMES", "Target", "Variant", "default_name", "resolve"]
