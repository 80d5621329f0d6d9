"""The API reference: one page for each public namespace, written from the package itself when the manual is built.

`python docs/reference_pages.py` lists the public names that have no docstring or no example.
"""

from __future__ import annotations

import importlib
import inspect
import re
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import flambeau
from flambeau.ops.declare import REGISTRY

if TYPE_CHECKING:
    from sphinx.application import Sphinx

FOLDER = Path(__file__).resolve().parent / "reference"


@dataclass(frozen=True)
class Namespace:
    """A public module, or the class Tensor: its name below `flambeau` and the sentence that opens its page."""

    name: str
    summary: str

    @property
    def path(self) -> str:
        """The dotted name that users import."""
        return f"flambeau.{self.name}".rstrip(".")

    @property
    def page(self) -> str:
        """The name of its page, without a suffix."""
        return self.name.lower() or "torch"

    @property
    def object(self) -> Any:
        """The module or class."""
        if self.name == "Tensor":
            return flambeau.Tensor
        try:
            return importlib.import_module(self.path)
        except ModuleNotFoundError:  # a namespace that is an attribute
            found: Any = flambeau
            for part in self.name.split("."):
                found = getattr(found, part)
            return found


NAMESPACES = (
    Namespace("", "Tensors, operators, gradient modes, dtypes and settings: PyTorch's `torch`."),
    Namespace("Tensor", "The methods and attributes of a tensor."),
    Namespace("fx", "Functions and modules as graphs, which are changed and become code again."),
    Namespace("export", "Modules as programs of operators: dynamic sizes, decompositions, files."),
    Namespace("export.aot", "Programs as shared libraries and WebAssembly modules. PyTorch has no counterpart."),
    Namespace("onnx", "Programs as ONNX models, which other runtimes run."),
    Namespace("autograd", "Gradients, user-defined functions, and checks of derivatives."),
    Namespace("autograd.graph", "Nodes, gradient edges, and hooks on saved tensors."),
    Namespace("autograd.functional", "Jacobians, Hessians and products with them."),
    Namespace("autograd.forward_ad", "Dual tensors: forward-mode differentiation."),
    Namespace("autograd.profiler", "Timings of operators and graph nodes."),
    Namespace("func", "Function transforms: `grad`, `vjp`, `jvp`, `jacrev`, `hessian`, `vmap`."),
    Namespace("nn", "Modules: layers, containers and losses."),
    Namespace("nn.functional", "The functions behind the modules."),
    Namespace("nn.init", "Initialization of parameters."),
    Namespace("nn.utils", "Gradient clipping, and parameters as one vector."),
    Namespace("nn.utils.rnn", "Sequences of different lengths: packing and padding."),
    Namespace("nn.utils.parametrize", "Parameters that are functions of others."),
    Namespace("nn.utils.parametrizations", "Orthogonal matrices, weight and spectral normalization."),
    Namespace("nn.utils.prune", "Pruning: masks of parameters."),
    Namespace("nn.attention", "Which kernel computes attention."),
    Namespace("nn.attention.flex_attention", "Attention with functions that change scores, and masks in blocks."),
    Namespace("nn.attention.bias", "Causal biases of attention."),
    Namespace("distributions", "Probability distributions: samples, densities, divergences, pathwise gradients."),
    Namespace("distributions.constraints", "Sets of values: what parameters and samples may be."),
    Namespace("distributions.utils", "Broadcasting of parameters, probabilities and logits."),
    Namespace("optim", "Optimizers."),
    Namespace("optim.lr_scheduler", "Learning-rate schedulers."),
    Namespace("optim.swa_utils", "Averages of models over training."),
    Namespace("amp", "Automatic mixed precision."),
    Namespace("linalg", "Dense linear algebra."),
    Namespace("special", "Special functions."),
    Namespace("fft", "Discrete Fourier transforms."),
    Namespace("signal.windows", "Window functions."),
    Namespace("sparse", "Sparse tensors: products, sums, softmax."),
    Namespace("masked", "Masked tensors; reductions and normalizations of the elements that a mask selects."),
    Namespace("nested", "Batches of tensors that differ in one dimension, without padding."),
    Namespace("random", "Random number generators and their states."),
    Namespace("quasirandom", "Sobol' sequences."),
    Namespace("compiler", "Compilation of functions and modules: stances, exclusions, graph breaks."),
    Namespace("overrides", "Functions that `__torch_function__` overrides, and modes."),
    Namespace("library", "Operators of one's own: kernels, gradients, shapes, batching rules."),
    Namespace("_higher_order_ops", "Control flow as operators: branches, loops and scans."),
    Namespace("profiler", "Profiles of whole programs."),
    Namespace("serialization", "Saving and loading, and what may be loaded."),
    Namespace("testing", "Comparison of tensors, and tensors for tests."),
    Namespace("utils.data", "Datasets, samplers, and loaders with worker processes."),
    Namespace("multiprocessing", "Processes that share tensors."),
    Namespace("utils.checkpoint", "Activation checkpointing: recomputation instead of storage."),
    Namespace("utils.benchmark", "Timing of statements."),
    Namespace("utils.flop_counter", "Counting of floating-point operations."),
    Namespace("utils.dlpack", "Tensors and arrays that share memory."),
    Namespace("utils.tensorboard", "Logs for TensorBoard."),
    Namespace("hub", "Models of local repositories, and downloads."),
    Namespace("futures", "Results that are there later."),
    Namespace("monitor", "Statistics and events of a program."),
    Namespace("cpu", "The CPU as a device: streams and events."),
    Namespace("interop.array_api", "The Python array API standard. PyTorch has no counterpart."),
    Namespace("interop.array_api.linalg", "The standard's linear algebra."),
    Namespace("interop.array_api.fft", "The standard's Fourier transforms."),
    Namespace("interop.scipy", "SciPy's optimizers on gradients of the graph. PyTorch has no counterpart."),
    Namespace("viz", "Drawings, tables and the explorer of a graph. PyTorch has no counterpart."),
)

#: what a group of the page `torch` holds -> prefixes of the modules that define its functions
GROUPS = {
    "Tensors and types": ("flambeau", "flambeau.dtypes", "flambeau.devices", "flambeau._tensor.memory.access",
                          "flambeau._tensor.methods.attributes", "flambeau._tensor.memory.pickling"),
    "Creation": ("flambeau._tensor.creation",),
    "Random numbers": ("flambeau._tensor.creation.random", "flambeau._tensor.creation.distributions",
                       "flambeau._tensor.creation.generators", "flambeau._tensor.creation.random_fills",
                       "flambeau.random"),
    "Pointwise operators": ("flambeau.ops.pointwise", "flambeau._tensor.pointwise"),
    "Reductions, scans and sorting": ("flambeau.ops.reduction", "flambeau._tensor.reduction"),
    "Shapes, views, indexing and joining": ("flambeau.ops.shape", "flambeau._tensor.shape"),
    "Linear algebra": ("flambeau.ops.linalg", "flambeau._tensor.linalg"),
    "Neural networks": ("flambeau.ops.neural", "flambeau._tensor.neural"),
    "Gradient modes": ("flambeau.engine", "flambeau.modes", "flambeau.autograd"),
    "Transforms and compilation": ("flambeau.func", "flambeau.compiler"),
    "Saving": ("flambeau.serialization", "flambeau.storage"),
    "Settings": ("flambeau.switches", "flambeau._tensor.printing", "flambeau.config"),
}

_ADDRESS = re.compile(r"<object object at 0x[0-9a-f]+>")


def members(namespace: Namespace) -> Iterator[tuple[str, Any]]:
    """The public names of a namespace that are functions, classes, methods or attributes of flambeau's own."""
    place = namespace.object
    for name in sorted(set(getattr(place, "__all__", None) or dir(place))):
        if name.startswith("_"):
            continue
        value = inspect.getattr_static(place, name, None) if inspect.isclass(place) else getattr(place, name)
        value = value.__func__ if isinstance(value, (classmethod, staticmethod)) else value
        if inspect.ismodule(value) or not (callable(value) or isinstance(value, property)):
            continue
        if inspect.isclass(place) or (getattr(value, "__module__", None) or "").startswith(("flambeau", "torch")):
            yield name, value


def docstring(value: Any) -> str:
    """The docstring of a public object, without its indentation."""
    return inspect.cleandoc(value.__doc__ or "")


def signature(value: Any, *, method: bool = False) -> str:
    """The signature as users read it: names, defaults, no annotations; empty for an attribute."""
    try:
        found = inspect.signature(value)
    except (TypeError, ValueError):
        return "" if isinstance(value, property) else "(*args, **kwargs)"
    parameters = [p.replace(annotation=p.empty) for p in found.parameters.values() if not p.name.startswith("_")]
    text = str(found.replace(parameters=parameters[1:] if method else parameters,
                             return_annotation=inspect.Signature.empty))
    return _ADDRESS.sub("...", text)


def group_of(name: str, value: Any) -> str:
    """The group of the page `torch` in which a function is listed."""
    name = name.removesuffix("_")
    operator = REGISTRY.get(name) or next((op for op in REGISTRY.values() if name in op.aliases), None)
    module = operator.forward.__module__ if operator is not None else value.__module__
    found, length = "Tensors and types", 0
    for group, prefixes in GROUPS.items():
        for prefix in prefixes:
            if (module == prefix or module.startswith(f"{prefix}.")) and len(prefix) > length:
                found, length = group, len(prefix)
    return found


def entries(namespace: Namespace) -> Iterator[str]:
    """The page of a namespace, name by name, as directives of autodoc."""
    top = dict(members(NAMESPACES[0]))
    if namespace.name == "":
        grouped: dict[str, list[tuple[str, Any]]] = {group: [] for group in GROUPS}
        for name, value in top.items():
            grouped[group_of(name, value)].append((name, value))
        for group, found in grouped.items():
            yield f"{group}\n{'-' * len(group)}\n"
            yield links(namespace, [name for name, _ in found])
            yield from (entry(namespace, name, value) for name, value in found)
        return
    yield links(namespace, [name for name, _ in members(namespace)])
    for name, value in members(namespace):
        if namespace.name != "Tensor":
            yield entry(namespace, name, value)
        elif isinstance(value, property):
            yield f".. autoattribute:: {namespace.path}.{name}\n"
        else:
            plain = name.rstrip("_") if name.endswith("_") else name
            text = docstring(value)
            if plain in top and (not text or text == docstring(top[plain])):
                what = "In place: see" if plain != name else "See"
                yield (f".. py:method:: {namespace.path}.{name}{signature(value, method=True)}\n\n"
                       f"   {what} :func:`flambeau.{plain}`.\n")
            else:
                yield f".. automethod:: {namespace.path}.{name}{signature(value, method=True)}\n"


def links(namespace: Namespace, names: list[str]) -> str:
    """The names of a page in one paragraph, each a link to its entry.

    Sphinx could list them at each page's side (`toc_object_entries`): that takes a third of the time of the manual.
    """
    return " · ".join(f":py:obj:`{name} <{namespace.path}.{name}>`" for name in names) + "\n"


def entry(namespace: Namespace, name: str, value: Any) -> str:
    """One name of a module. A class that an earlier page describes is a reference to that page."""
    if inspect.isclass(value):
        for earlier in NAMESPACES[:NAMESPACES.index(namespace)]:
            if earlier.name != "Tensor" and getattr(earlier.object, name, None) is value:
                return (f".. py:class:: {namespace.path}.{name}{signature(value)}\n\n"
                        f"   See :class:`{earlier.path}.{name}`.\n")
        return f".. autoclass:: {namespace.path}.{name}{signature(value)}\n"
    if is_in_place(namespace, name):
        return (f".. py:function:: {namespace.path}.{name}{signature(value)}\n\n"
                f"   In place: see :func:`{namespace.path}.{name[:-1]}`.\n")
    return f".. autofunction:: {namespace.path}.{name}{signature(value)}\n"


def is_in_place(namespace: Namespace, name: str) -> bool:
    """Whether a function is the in-place form of another one of its module, which its entry refers to."""
    return name.endswith("_") and hasattr(namespace.object, name[:-1])


def write_pages() -> None:
    """Write a page for each namespace, unless it is there already as it would be written."""
    for namespace in NAMESPACES:
        title = namespace.path
        text = f"{title}\n{'=' * len(title)}\n\n{namespace.summary}\n\n" + "\n".join(entries(namespace))
        path = FOLDER / f"{namespace.page}.rst"
        if not path.exists() or path.read_text(encoding="utf-8") != text:
            path.write_text(text, encoding="utf-8")


def _outside_code(text: str, change: Callable[[str], str]) -> str:
    """`text` with `change` applied to what is not between backquotes."""
    pieces = re.split(r"(``[^`]*``|:\w+:`[^`]*`|`[^`]*`)", text)
    return "".join(piece if at % 2 else change(piece) for at, piece in enumerate(pieces))


def escape(lines: list[str]) -> None:
    """Escape, in place, what reStructuredText would read as markup in a docstring: formulas have `*`, `|` and `_`."""
    session = False
    for at, line in enumerate(lines):
        session = line.lstrip().startswith(">>>") or (session and bool(line.strip()))
        if not session:
            marker = re.match(r"\s*(\* )?", line).end()  # of a list's item, which stays
            lines[at] = line[:marker] + _outside_code(
                line[marker:], lambda piece: re.sub(r"([*|\\]|_(?!\w))", r"\\\1", piece))


def setup(app: Sphinx) -> None:
    """Called by conf.py: pages are written before they are read, docstrings escaped before napoleon sees them."""
    app.connect("builder-inited", lambda _: write_pages())
    app.connect("autodoc-process-docstring", lambda _app, _what, _name, _object, _options, lines: escape(lines),
                priority=100)


def incomplete() -> Iterator[str]:
    """The public names without a docstring, or without an example."""
    for namespace in NAMESPACES:
        for name, value in members(namespace):
            text = docstring(value)
            if text.startswith("Left out: "):
                continue
            if not text:
                yield f"{namespace.path}.{name}: no docstring"
            elif ">>>" not in text and not is_in_place(namespace, name):
                yield f"{namespace.path}.{name}: no example"


if __name__ == "__main__":
    missing = list(incomplete())
    print("\n".join(missing))
    sys.exit(bool(missing))
