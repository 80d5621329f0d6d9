"""What this machine can do at most, measured by small kernels of ours: arithmetic, and moving bytes.

Both are of as many threads as operators may use. How quickly bytes move depends on how many there are, since caches
are quicker than memory: it is measured for working sets of several sizes. A measurement takes a fraction of a second,
once; it is kept beside the object code, for this processor, number of threads, and version of the kernels.

The *roofline* of a kernel is the time that it would take at these rates: that of its arithmetic or that of its bytes,
whichever is longer.
"""

from __future__ import annotations

import json
import struct
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

#: bytes of the working sets that are measured
SIZES = tuple(1 << n for n in (14, 16, 18, 20, 22, 24, 26))
#: a round moves at least so many bytes, by repetition
_ROUND = 1 << 22
#: each measurement is the best of several rounds, at least so many: of bytes for so many seconds, of arithmetic for so
#: many, as all threads have to be at it at once
_ROUNDS, _MOVING, _COMPUTING = 3, 0.005, 0.025
_STEPS = 4000
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
    """Rates that kernels cannot exceed.

    Attributes:
        threads: how many reach them together.
        float32, float64: additions and multiplications in a second.
        bandwidth: for each working set, its bytes and the bytes that move in a second.
    """

    threads: int
    float32: float
    float64: float
    bandwidth: tuple[tuple[int, float], ...]

    def rate(self, size: int) -> float:
        """Bytes that move in a second where `size` of them are worked on: as many as with any larger set at least."""
        return max((rate for measured, rate in self.bandwidth if measured >= size), default=self.bandwidth[-1][1])

    def seconds(self, size: int, flops: int, wide: bool = False) -> float:
        """The roofline: the least time for moving `size` bytes and for so much arithmetic, on float64 if `wide`."""
        return max(size / self.rate(size), flops / (self.float64 if wide else self.float32))

    def or_better(self, other: Peaks) -> Peaks:
        """The better of two measurements for each rate: a machine that is busy with other things only seems slower."""
        moved = tuple((size, max(rate, again)) for (size, rate), (_, again) in
                      zip(self.bandwidth, other.bandwidth, strict=True))
        return Peaks(self.threads, max(self.float32, other.float32), max(self.float64, other.float64), moved)

    def __str__(self) -> str:
        small, large = self.bandwidth[0], self.bandwidth[-1]
        return (f"{large[1] / 1e9:.3g} GB/s in {large[0] >> 20} MB, "
                f"{self.rate(small[0]) / 1e9:.3g} GB/s in {small[0] >> 10} KB, "
                f"{self.float32 / 1e9:.3g} Gflop/s in float32, {self.float64 / 1e9:.3g} in float64, "
                f"{self.threads} thread{'s' * (self.threads != 1)}")


def peaks(again: bool = False) -> Peaks:
    """This machine's peaks for as many threads as operators may use now: known, kept on disk, or measured.

    Args:
        again: measure them whatever is known, as after a measurement on a busy machine; the better rates are kept.
    """
    threads = limits.count()
    found = _known.get(threads)
    if found is None or again:
        name = MEASUREMENTS.key(_FORMAT, source_hash("runtime"), source_hash("codegen"), *map(str, target.host()),
                                str(threads))
        if found is None:
            payload = MEASUREMENTS.read(name)
            found = None if payload is None else _loaded(payload)
        if found is None or again:
            measured = measure()
            found = measured if found is None else found.or_better(measured)
            MEASUREMENTS.write(name, json.dumps(found._asdict()).encode())
        _known[threads] = found
    return found


_known: dict[int, Peaks] = {}


def _loaded(payload: bytes) -> Peaks | None:
    try:
        fields = json.loads(payload)
        fields["bandwidth"] = tuple((int(size), float(rate)) for size, rate in fields["bandwidth"])
        return Peaks(**fields)
    except (ValueError, TypeError, KeyError):
        return None


def measure() -> Peaks:
    """Measure the peaks."""
    threads = limits.count()
    memory = np.ones(SIZES[-1] // 4, np.float32)  # zeros are written more quickly than other numbers
    # the most that moves in a second, by adding two arrays up into a third or by adding up one
    moved = tuple((size, max(_rate(_added, memory[:size // 4]), _rate(_summed, memory[:size // 4]))) for size in SIZES)
    return Peaks(threads, _arithmetic("float", 32, threads), _arithmetic("double", 64, threads), moved)


# ----- bytes -----------------------------------------------------------------------------


def _added(memory: np.ndarray) -> tuple[list[Launch], list[np.ndarray]]:
    """Kernels that add two arrays, which lie in this memory with their sum, and these arrays, the sum first."""
    part = len(memory) // 3
    arrays = [memory[i * part:(i + 1) * part] for i in range(3)]
    x, y = variable(0, np.float32), variable(1, np.float32)
    return elementwise.launches([x + y], [Spec.of(arrays[0])], [Spec.of(a) for a in arrays[1:]]), arrays


def _summed(memory: np.ndarray) -> tuple[list[Launch], list[np.ndarray]]:
    """Kernels that add up what lies in this memory, and their arrays, the sum first."""
    out = np.zeros((), np.float32)
    return reduction.launches([("sum", variable(0, np.float32))], [Spec.of(out)], [Spec.of(memory)]), [out, memory]


def _rate(kind: object, memory: np.ndarray) -> float:
    made, arrays = kind(memory)  # type: ignore[operator]
    times = max(1, _ROUND // memory.nbytes)
    return memory.nbytes * times / _least(made * times, arrays, _MOVING)


def _least(launches: list[Launch], arrays: list[np.ndarray], seconds: float) -> float:
    """The shortest time, in seconds, of the runs that fit into so many."""
    scratch = max((each.scratch for each in launches), default=0)
    kept, address = launch.allocate_aligned(scratch)
    pointers = [(i, 0) for i in range(len(arrays) + 1)]
    program = launch.Program([(each, pointers) for each in launches], len(arrays), len(pointers))
    record = program.record()
    for i, array in enumerate(arrays):
        record[launch.FIRST + i] = id(array)
    record[launch.FIRST + len(arrays)] = address
    program(record)
    found: list[float] = []
    while len(found) < _ROUNDS or sum(found) < seconds:
        start = perf_counter()
        program(record)
        found.append(perf_counter() - start)
    del kept
    return min(found)


# ----- arithmetic ------------------------------------------------------------------------


def _arithmetic(kind: str, bits: int, threads: int) -> float:
    """Additions and multiplications of all threads in a second, in registers."""
    lanes = target.host().vector_bits // bits
    chains = 12 if target.host().triple.startswith("x86") else 24  # enough to hide the latency, few enough to fit
    library = compilation.load(f"{_FORMAT} {kind} {lanes} {chains}", ("body",), lambda: _generate(kind, lanes, chains),
                            False)
    chunks = 4 * threads
    numbers = np.full((chains + 1) * lanes, 0.5, f"f{bits // 8}")
    out = np.zeros((chunks, lanes), numbers.dtype)
    work = [Launch(library, library.address("body"), chunks, (_STEPS,))]
    return 2.0 * lanes * chains * _STEPS * chunks / _least(work, [out, numbers], _COMPUTING)


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
