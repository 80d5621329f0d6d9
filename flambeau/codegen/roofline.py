"""The roofline model: this machine's peak arithmetic and memory throughput, measured by small kernels.

The peaks are those of all threads that operators may use. Memory throughput is measured for working sets of several
sizes, since caches are faster than memory. A measurement takes a fraction of a second. The persistent cache holds it
per processor, number of threads and version of the kernels.

The *roofline* of a kernel is the larger of its arithmetic and its bytes, each divided by its peak rate.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Callable
from time import perf_counter
from typing import NamedTuple

import numpy as np

from ..kernels import threads as limits
from ..runtime import compilation, launch, target
from ..runtime.cache_store import MEASUREMENTS, source_hash
from ..runtime.launch import Launch, Spec
from .elementwise import elementwise
from .rows import reduction
from .scalar.scalar_ir import variable

#: working sets in bytes
SIZES = tuple(1 << n for n in (14, 16, 18, 20, 22, 24, 26))
#: the least number of bytes that a round moves, by repetition
_ROUND_BYTES = 1 << 22
#: a measurement is the best of at least this many rounds; rounds last at least this many seconds in all, for bandwidth
#: and for arithmetic, which is longer because all threads must run at the same time
_ROUNDS, _BANDWIDTH_SECONDS, _ARITHMETIC_SECONDS = 3, 0.005, 0.025
#: iterations of the arithmetic kernel
_ITERATIONS = 4000
_FORMAT = "peaks 2"

_IR = """
declare {vector} @llvm.fmuladd.{suffix}({vector}, {vector}, {vector})

define void @body(ptr %pointers, ptr %plan, i64 %chunk) {{
entry:
  %out = load ptr, ptr %pointers
  %in.at = getelementptr ptr, ptr %pointers, i64 1
  %in = load ptr, ptr %in.at
  %steps = load i64, ptr %plan
  %x = load {vector}, ptr %in, align 4
{loads}
  br label %loop
loop:
  %i = phi i64 [ 0, %entry ], [ %next, %loop ]
{phis}
{work}
  %next = add i64 %i, 1
  %more = icmp slt i64 %next, %steps
  br i1 %more, label %loop, label %done
done:
{sums}
  %place = getelementptr {vector}, ptr %out, i64 %chunk
  store {vector} %s{last}, ptr %place, align 4
  ret void
}}
"""


class Peaks(NamedTuple):
    """Peak rates of this machine.

    Attributes:
        threads: the number of threads that reach them together.
        float32: floating-point operations per second.
        float64: floating-point operations per second.
        bandwidth: pairs of a working set in bytes, and bytes per second.
    """

    threads: int
    float32: float
    float64: float
    bandwidth: tuple[tuple[int, float], ...]

    def rate(self, size: int) -> float:
        """Bytes per second for a working set of `size` bytes: the largest rate of this or a larger working set."""
        return max((rate for measured, rate in self.bandwidth if measured >= size), default=self.bandwidth[-1][1])

    def seconds(self, size: int, flops: int, wide: bool = False) -> float:
        """The roofline in seconds of a kernel that moves `size` bytes; `wide`: its arithmetic is on float64."""
        return max(size / self.rate(size), flops / (self.float64 if wide else self.float32))

    def merge(self, other: Peaks) -> Peaks:
        """The larger of each rate of two measurements: other load on the machine only makes it slower."""
        bandwidth = tuple((size, max(rate, again)) for (size, rate), (_, again) in
                          zip(self.bandwidth, other.bandwidth, strict=True))
        return Peaks(self.threads, max(self.float32, other.float32), max(self.float64, other.float64), bandwidth)

    def __str__(self) -> str:
        small, large = self.bandwidth[0], self.bandwidth[-1]
        return (f"{large[1] / 1e9:.3g} GB/s in {large[0] >> 20} MB, "
                f"{self.rate(small[0]) / 1e9:.3g} GB/s in {small[0] >> 10} KB, "
                f"{self.float32 / 1e9:.3g} Gflop/s in float32, {self.float64 / 1e9:.3g} in float64, "
                f"{self.threads} thread{'s' * (self.threads != 1)}")


def peaks(again: bool = False) -> Peaks:
    """The peaks for the current number of threads: from memory, from the persistent cache, or measured.

    Args:
        again: measure even if a measurement exists, and keep the larger rates.
    """
    threads = limits.count()
    best = _cached_peaks.get(threads)
    if best is None or again:
        name = MEASUREMENTS.key(_FORMAT, source_hash("runtime"), source_hash("codegen"), *map(str, target.host()),
                                str(threads))
        if best is None:
            payload = MEASUREMENTS.read(name)
            best = None if payload is None else _parse(payload)
        if best is None or again:
            measured = measure()
            best = measured if best is None else best.merge(measured)
            MEASUREMENTS.write(name, json.dumps(best._asdict()).encode())
        _cached_peaks[threads] = best
    return best


_cached_peaks: dict[int, Peaks] = {}


def _parse(payload: bytes) -> Peaks | None:
    try:
        fields = json.loads(payload)
        fields["bandwidth"] = tuple((int(size), float(rate)) for size, rate in fields["bandwidth"])
        return Peaks(**fields)
    except (ValueError, TypeError, KeyError):
        return None


def measure() -> Peaks:
    """Measure the peaks."""
    threads = limits.count()
    memory = np.ones(SIZES[-1] // 4, np.float32)  # not zeros, which processors write faster
    # the higher bandwidth of an addition of two arrays and of a sum
    bandwidth = tuple((size, max(_rate(kernels, memory[:size // 4]) for kernels in (_add_launches, _sum_launches)))
                      for size in SIZES)
    return Peaks(threads, _arithmetic("float", 32, threads), _arithmetic("double", 64, threads), bandwidth)


# ----- memory ----------------------------------------------------------------------------


#: launches and their arrays
_Work = tuple[list[Launch], list[np.ndarray]]


def _add_launches(memory: np.ndarray) -> _Work:
    """The launches that add two thirds of this memory into the last, and their arrays, output first."""
    part = len(memory) // 3
    arrays = [memory[i * part:(i + 1) * part] for i in range(3)]
    x, y = variable(0, np.float32), variable(1, np.float32)
    return elementwise.launches([x + y], [Spec.of(arrays[0])], [Spec.of(a) for a in arrays[1:]]), arrays


def _sum_launches(memory: np.ndarray) -> _Work:
    """The launches that sum this memory, and their arrays, output first."""
    out = np.zeros((), np.float32)
    return reduction.launches([("sum", variable(0, np.float32))], [Spec.of(out)], [Spec.of(memory)]), [out, memory]


def _rate(make_launches: Callable[[np.ndarray], _Work], memory: np.ndarray) -> float:
    """Bytes per second of these launches on this memory."""
    launches, arrays = make_launches(memory)
    times = max(1, _ROUND_BYTES // memory.nbytes)
    return memory.nbytes * times / _shortest(launches * times, arrays, _BANDWIDTH_SECONDS)


def _shortest(launches: list[Launch], arrays: list[np.ndarray], seconds: float) -> float:
    """The shortest time in seconds of at least `_ROUNDS` runs, which take at least `seconds` in all."""
    scratch = max((each.scratch for each in launches), default=0)
    owner, address = launch.allocate_aligned(scratch)
    pointers = [(i, 0) for i in range(len(arrays) + 1)]
    program = launch.Program([(each, pointers) for each in launches], len(arrays), len(pointers))
    record = program.record()
    for i, array in enumerate(arrays):
        record[launch.FIRST + i] = id(array)
    record[launch.FIRST + len(arrays)] = address
    program(record)
    times: list[float] = []
    while len(times) < _ROUNDS or sum(times) < seconds:
        start = perf_counter()
        program(record)
        times.append(perf_counter() - start)
    del owner
    return min(times)


# ----- arithmetic ------------------------------------------------------------------------


def _arithmetic(kind: str, bits: int, threads: int) -> float:
    """Floating-point operations per second of all threads, in registers."""
    lanes = target.host().vector_bits // bits
    chains = 12 if target.host().triple.startswith("x86") else 24  # hides latency, and fits the registers
    library = compilation.load(f"{_FORMAT} {kind} {lanes} {chains}", ("body",), lambda: _generate(kind, lanes, chains),
                               False)
    chunks = 4 * threads
    values = np.full((chains + 1) * lanes, 0.5, f"f{bits // 8}")
    out = np.zeros((chunks, lanes), values.dtype)
    work = [Launch(library, library.address("body"), chunks, (_ITERATIONS,))]
    return 2.0 * lanes * chains * _ITERATIONS * chunks / _shortest(work, [out, values], _ARITHMETIC_SECONDS)


def _generate(kind: str, lanes: int, chains: int) -> str:
    vector, suffix = f"<{lanes} x {kind}>", f"v{lanes}f{struct.calcsize(kind[0]) * 8}"
    size = struct.calcsize(kind[0]) * lanes
    loads, phis, work, sums = [], [], [], []
    for k in range(chains):
        loads += [f"  %at{k} = getelementptr i8, ptr %in, i64 {(k + 1) * size}",
                  f"  %first{k} = load {vector}, ptr %at{k}, align 4"]
        phis.append(f"  %a{k} = phi {vector} [ %first{k}, %entry ], [ %b{k}, %loop ]")
        work.append(f"  %b{k} = call {vector} @llvm.fmuladd.{suffix}({vector} %a{k}, {vector} %x, {vector} %x)")
        sums.append(f"  %s{k} = fadd {vector} %b{k}, " + (f"%s{k - 1}" if k else "%x"))
    return _IR.format(vector=vector, suffix=suffix, last=chains - 1,
                      **{name: "\n".join(each) for name, each in (("loads", loads), ("phis", phis), ("work", work),
                                                                  ("sums", sums))})


__all__ = ["SIZES", "Peaks", "measure", "peaks"]
