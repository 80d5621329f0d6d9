"""Building a file: captures of a program for all sizes are laid out, compiled for each variant, and linked."""

from __future__ import annotations

import hashlib
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from ... import codegen
from ...runtime import object_emission
from ...runtime import target as compilation_target
from .capture import Capture, Memory, fallback_kernels
from .errors import ExportError
from .header import header
from .interface import DerivedSize, Extent, Interface, Operand, Setting, distinct, identifier
from .interface_ir import ALIGNMENT, interface_assembly, interface_module
from .jobs import KernelReport, SizedJob, VariantCode, VariantJob
from .linking import link
from .program_ir import Place
from .sizes.templates import Template
from .targets import NAMES, Target
from .variants import compile_variants
from .web.memory import SharedMemory, imported_pages, most_bytes
from .weights import StoredWeights, store

#: bytes of weights up to which several variants of the code have packed copies of their own
MANY_WEIGHTS = 1 << 20
#: told what is being done: the stage, how many of its parts are done, and of how many
Progress = Callable[[str, int, int], None]


def silent(stage: str, done: int, total: int) -> None:
    """Report no progress."""


class Source(NamedTuple):
    """What is built.

    Attributes:
        name: the prefix of the functions.
        size_names: the names of dynamic sizes.
        captures: for some combinations of sizes.
        templates: graphs for all combinations.
        input_names, output_names: of the operands.
        input_shapes: of the inputs.
        output_shapes: of the results.
        derived: numbers in the shapes of results that follow from the sizes.
    """

    name: str
    size_names: tuple[str, ...]
    captures: list[tuple[tuple[int, ...], Capture]]
    templates: list[Template]
    input_names: list[str]
    output_names: list[str]
    input_shapes: list[tuple[Extent, ...]]
    output_shapes: list[tuple[Extent, ...]]
    derived: list[DerivedSize]


class Report(NamedTuple):
    """What was built.

    Attributes:
        files: the files and their sizes in bytes.
        interface: the C interface.
        weights, state: bytes.
        arenas: for each combination of sizes, the bytes of intermediate values, the most of all variants.
        kernels: of the plan for the last combination of sizes.

    >>> from flambeau.export import aot
    >>> aot.Report._fields
    ('files', 'interface', 'weights', 'state', 'arenas', 'kernels')
    """

    files: dict[Path, int]
    interface: Interface
    weights: int
    state: int
    arenas: dict[tuple[int, ...], int]
    kernels: list[KernelReport]

    def __str__(self) -> str:
        """The report as a table."""
        sizes = ", ".join(self.interface.sizes)
        lines = [f"{path}: {count:,} bytes" for path, count in self.files.items()]
        lines.append(f"weights {self.weights:,} bytes, state {self.state:,} bytes")
        peak = max(self.arenas, key=lambda key: self.arenas[key])
        at = f" at {sizes} = {', '.join(map(str, peak))}" if sizes else ""
        lines.append(f"intermediate values: {self.arenas[peak]:,} bytes{at}")
        moved, work = sum(each.bytes for each in self.kernels), sum(each.operations for each in self.kernels)
        at = f" at {sizes} = {', '.join(map(str, [*self.arenas][-1]))}" if sizes else ""
        lines.append(f"{len(self.kernels)} kernels, {work:,} operations, {moved:,} bytes moved{at}")
        if self.interface.threads > 1:
            lines.append(f"planned for {self.interface.threads} threads")
        return "\n".join(lines)


class _Layout:
    """The places of the model's memory in its weights and its state.

    Args:
        source: what is built.
        dtype: in which large weights are stored.
        beside: whether the weights are in a file of their own.
        dropped: identities of weights that nothing reads.
    """

    def __init__(
        self, source: Source, dtype: str | None, beside: bool, dropped: frozenset[int] = frozenset()
    ) -> None:
        everything: dict[int, Memory] = {}
        written: set[int] = set()
        for _, captured in source.captures:
            for number, memory in captured.memory.items():
                everything.setdefault(id(memory.array), memory)
                if number in captured.written:
                    written.add(id(memory.array))
        self.places: dict[int, tuple[bool, int]] = {}  # by identity: whether it is state, and its offset
        self.sizes: dict[int, int] = {}  # bytes of weights by identity
        self.settings: list[tuple[str, int, np.ndarray]] = []
        state = bytearray()
        weights: dict[tuple[bytes, str], tuple[str, np.ndarray, list[int]]] = {}  # by contents: owners' identities
        for key, memory in everything.items():
            array = np.ascontiguousarray(_in_memory_order(memory.initial))
            if key not in written and not memory.settable:
                digest = hashlib.sha256(array.tobytes()).digest(), str(array.dtype)
                if key in dropped:
                    self.places[key] = False, 0
                    continue
                weights.setdefault(digest, (memory.name, array, []))[2].append(key)
                self.sizes[key] = array.nbytes
                continue
            state += bytes(-len(state) % ALIGNMENT)
            self.places[key] = True, len(state)
            if memory.settable:
                self.settings.append((memory.name, len(state), memory.initial))
            state += array.tobytes()
        self.state = np.frombuffer(bytes(state), np.uint8)
        names = [name or f"constant_{i}" for i, (name, _, _) in enumerate(weights.values())]
        names = [name if names.index(name) == i else f"{name}_{i}" for i, name in enumerate(names)]
        self.weights = store(names, [array for _, array, _ in weights.values()], dtype, beside)
        for (_, _, owners), offset in zip(weights.values(), self.weights.offsets, strict=True):
            self.places |= dict.fromkeys(owners, (False, offset))


def _in_memory_order(a: np.ndarray) -> np.ndarray:
    order = sorted(range(a.ndim), key=lambda d: (a.shape[d] != 1, -a.strides[d]))
    return a.transpose(order)


def build(
    source: Source,
    path: Path,
    target: Target,
    progress: Progress = silent,
    weight_dtype: str | None = None,
    beside: bool = False,
    threads: int = 1,
    packs: bool | None = None,
) -> Report:
    """Build a shared library, an object file or a WebAssembly module, and its header or loader.

    Args:
        source: what is built.
        path: the file.
        target: what it is compiled for.
        progress: told what is being done.
        weight_dtype: in which large weights are stored: None, "bfloat16" or "int8".
        beside: whether the weights are in a file of their own.
        threads: how many threads a run is planned for.
        packs: whether weights are packed ahead of time; None: where the file does not become much larger.

    Raises:
        ExportError: the program cannot be compiled.
    """
    if not codegen.available():
        raise ExportError(
            "kernels are compiled by llvmlite, which is not installed here or switched off (FLAMBEAU_JIT=0)"
        )
    for _, each in source.captures:
        for kernel in fallback_kernels([t.value for t in each.targets]):
            raise ExportError(f"{kernel!r} has no compiled kernel: {kernel.why or 'it runs in NumPy'}")
    layout = _Layout(source, weight_dtype, beside)
    if packs is None:
        packs = len(target.variants) == 1 or layout.weights.memory <= MANY_WEIGHTS
    if packs and len(layout.weights.stored) and not layout.weights.is_parameter:
        layout, codes = _compiled_with_packed_weights(source, layout, target, progress, threads)
    else:
        codes = _compiled(source, layout, target, progress, threads)
    weights, state = layout.weights, layout.state
    interface, _ = _interface(source, layout, target, threads)
    objects = _unique(codes)
    objects.append(_interface_object(interface, target, weights))
    data = {f"{interface.name}_weights": weights.stored} if len(weights.stored) and not beside else {}
    data |= {
        f"{interface.name}_{variant.name}_packed": code.packed
        for variant, code in zip(target.variants, codes, strict=True)
        if len(code.packed)
    }
    if len(state):
        data[f"{interface.name}_initial"] = state
    progress("linking", 0, 1)
    path.parent.mkdir(parents=True, exist_ok=True)
    assembly = interface_assembly(interface, target.variants)
    link(path, target, objects, data, exported_functions(interface, target), assembly)
    progress("linking", 1, 1)
    arenas = {sizes: max(code.arenas[sizes] for code in codes) for sizes in interface.supported}
    files = [path]
    if target.is_wasm:
        from .web.javascript import loader

        memory = None
        if target.shares_memory:
            most = most_bytes(interface, arenas, max(code.tables for code in codes))
            memory = SharedMemory(imported_pages(path.read_bytes()), most)
        files.append(path.with_suffix(".mjs"))
        files[-1].write_text(loader(interface, path.name, memory), encoding="utf-8")
    else:
        files.append(path.with_suffix(".h"))
        files[-1].write_text(header(interface), encoding="utf-8")
    if beside:
        files.append(path.with_suffix(".safetensors"))
        files[-1].write_bytes(weights.file)
    held = weights.memory + max(len(code.packed) for code in codes)
    sizes_of_files = {each: each.stat().st_size for each in files}
    return Report(sizes_of_files, interface, held, len(state), arenas, codes[0].kernels)


def _compiled(
    source: Source,
    layout: _Layout,
    target: Target,
    progress: Progress,
    threads: int,
    packable: _Layout | None = None,
    weights: str = "",
) -> list[VariantCode]:
    """Compile all variants.

    Args:
        packable: the places of the weights in the file that `weights` names, of those that may be packed.
        weights: that file.
    """
    interface, guards = _interface(source, layout, target, threads)
    first_output = len(interface.inputs)
    state_base = first_output + len(interface.outputs)
    sized = [_sized(each, layout, guards, state_base, packable) for each in source.templates]
    names = [f"{interface.name}_{each.name}" for each in target.variants]
    jobs = [VariantJob(name, sized, first_output, state_base + 2, threads, weights) for name in names]
    return compile_variants(target.variants, jobs, lambda done: progress("compiling", done, len(jobs)))


def _compiled_with_packed_weights(
    source: Source, layout: _Layout, target: Target, progress: Progress, threads: int
) -> tuple[_Layout, list[VariantCode]]:
    """Compile all variants, and once more without the weights of which only packed copies are read."""
    with tempfile.TemporaryDirectory(prefix="flambeau-export-") as folder:
        file = str(Path(folder) / "weights.npy")
        np.save(file, layout.weights.stored)
        codes = _compiled(source, layout, target, progress, threads, layout, file)
        read = set()
        for code in codes:
            for numbers, each in zip(code.read, source.templates, strict=True):
                memory = each.example.memory
                read |= {id(memory[number].array) for number in numbers if number in memory}
        dropped = frozenset(layout.sizes.keys() - read)
        if not dropped:
            return layout, codes
        smaller = _Layout(source, None, False, dropped)
        return smaller, _compiled(source, smaller, target, progress, threads, layout, file)


def exported_functions(interface: Interface, target: Target) -> list[str]:
    """The names of the functions of an interface."""
    names = ["arena_size", "run", "error_text"]
    if interface.passes_weights:
        names += ["weights_size", "weights_init"] if interface.decodes_weights else ["weights_open"]
    if interface.threads > 1:
        names += ["pool_start", "pool_stop"]
        names += ["pool_work", "pool_failure"] if target.is_wasm else ["pool_size"]
    if interface.state:
        names += ["state_size", "state_init", *(f"set_{each.name}" for each in interface.settings)]
    return [f"{interface.name}_{each}" for each in names]


def _unique(codes: Sequence[VariantCode]) -> list[bytes]:
    return list(dict.fromkeys(code for each in codes for code in each.objects))


def _interface_object(interface: Interface, target: Target, weights: StoredWeights) -> bytes:
    """The object file of the C functions, for the least of the variants."""
    least = target.variants[-1]
    source = interface_module(interface, target.variants, 32 if target.is_wasm else 64, weights)
    if least.host == compilation_target.host():
        return object_emission.emit_object(source, "few")
    return object_emission.emit_for(least.host, source)


def _sized(
    template: Template,
    layout: _Layout,
    guards: dict[str, int],
    state: int,
    packable: _Layout | None,
) -> SizedJob:
    each = template.example
    inputs: dict[int, Place] = {number: (position, 0) for number, position in each.arguments.items()}
    for number, memory in each.memory.items():
        is_state, offset = layout.places[id(memory.array)]
        inputs[number] = (state if is_state else state + 1, offset)
    targets = [
        (t.value.number, None if t.overwrites is None else t.overwrites.number, region)
        for t, region in zip(each.targets, template.regions, strict=True)
    ]
    found = [(guard.value.number, guard.outcome, guards[guard.where]) for guard in each.guards]
    constants = {}
    if packable is not None:
        for number, memory in each.memory.items():
            key = id(memory.array)
            if key in packable.sizes:
                constants[number] = packable.places[key][1], packable.sizes[key]
    return SizedJob(template.combinations, template.values, targets, found, inputs, constants, template.derived)


def _interface(
    source: Source, layout: _Layout, target: Target, threads: int
) -> tuple[Interface, dict[str, int]]:
    guards: dict[str, int] = {}
    for _, each in source.captures:
        for guard in each.guards:
            guards.setdefault(guard.where, len(guards))
    _, first = source.captures[-1]
    numbers = [*source.size_names, *(each.name for each in source.derived)]
    names = distinct([*numbers, *source.input_names, *source.output_names])
    sizes, rest = names[: len(source.size_names)], names[len(numbers) :]
    dtypes = {
        position: next(v for v in first.graph.values if v.op == "input" and v.attrs == number).dtype
        for number, position in first.arguments.items()
    }
    written = {first.arguments[number] for number in first.written if number in first.arguments}
    renamed = dict(zip(numbers, names, strict=False))
    inputs = [
        Operand(name, dtypes[i], tuple(_renamed(e, renamed) for e in shape), i in written)
        for i, (name, shape) in enumerate(zip(rest, source.input_shapes, strict=False))
    ]
    outputs = [
        Operand(name, dtype, tuple(_renamed(e, renamed) for e in shape), True)
        for name, (_, dtype), shape in zip(rest[len(inputs) :], first.results, source.output_shapes, strict=True)
    ]
    settings = [
        Setting(name, offset, value.item(), value.dtype == np.int64)
        for name, (_, offset, value) in zip(
            distinct([name for name, _, _ in layout.settings]), layout.settings, strict=True
        )
    ]
    texts = [
        f"a condition on the elements of inputs, such as the range of indices, does not hold: {_short(where)}"
        for where in guards
    ]
    return Interface(
        identifier(source.name),
        tuple(sizes),
        sorted(sizes for each in source.templates for sizes in each.combinations),
        inputs,
        outputs,
        len(layout.state),
        settings,
        texts,
        layout.weights.memory,
        layout.weights.is_parameter,
        bool(layout.weights.segments),
        bool(layout.weights.header),
        NAMES[target.name] + " and threads" * target.shares_memory,
        threads,
        tuple(
            DerivedSize(renamed[each.name], tuple(_renamed(e, renamed) for e in each.terms), each.divisor)
            for each in source.derived
        ),
    ), guards


def _renamed(extent: Extent, names: dict[str, str]) -> Extent:
    if extent.size is None:
        return extent
    return extent._replace(size="*".join(names[each] for each in extent.size.split("*")))


def _short(where: str) -> str:
    """A place without its folders, which mean nothing on another machine, and without what would end a comment."""
    file, separator, rest = where.partition(":")
    return (Path(file).name + separator + rest).replace("*/", "* /")


__all__ = ["Progress", "Report", "Source", "build", "exported_functions", "silent"]
