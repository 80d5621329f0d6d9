"""`torch.export`: modules as programs of operators, without Python, to be saved, changed and run elsewhere.

    program = torch.export.export(module, (x,), dynamic_shapes={"x": {0: torch.export.Dim("batch")}})
    program.graph_module.code       # the operators
    program.module()(x)             # what it computes
    torch.export.save(program, "module.pt2")
"""

from __future__ import annotations

import importlib
from typing import Any

from ..utils import _pytree
from . import _trace, exported_program, graph_signature
from . import dynamic_shapes as dynamic_shapes_module
from .decomposition import CustomDecompTable, default_decompositions
from .dynamic_shapes import AdditionalInputs, Constraint, Dim, ShapesCollection, dims
from .exported_program import ExportedProgram, ModuleCallEntry, ModuleCallSignature
from .graph_signature import ExportBackwardSignature, ExportGraphSignature
from .saving import load, save
from .unflatten import FlatArgsAdapter, UnflattenedModule, unflatten

__all__ = ["AdditionalInputs", "Constraint", "CustomDecompTable", "Dim", "ExportBackwardSignature",
           "ExportGraphSignature", "ExportedProgram", "FlatArgsAdapter", "ModuleCallEntry", "ModuleCallSignature",
           "ShapesCollection", "UnflattenedModule", "default_decompositions", "dims", "draft_export", "export", "load",
           "register_dataclass", "save", "unflatten"]


def export(mod: Any, args: tuple[Any, ...], kwargs: dict[str, Any] | None = None, *, dynamic_shapes: Any = None,
           strict: bool = False, preserve_module_call_signature: tuple[str, ...] = (),
           prefer_deferred_runtime_asserts: bool = False, **settings: Any) -> ExportedProgram:
    """The program of operators that a module runs.

    Args:
        mod: the module.
        args, kwargs: example arguments; their shapes and dtypes matter, not their elements.
        dynamic_shapes: which sizes may differ from those of the example: for each argument, by name or in order, a
            dict of dimension -> `Dim` or a sequence of them.
        strict: kept for callers: Python is run in either case.
        preserve_module_call_signature: names of modules whose signatures are kept; kept for callers.
        prefer_deferred_runtime_asserts: kept for callers.

    Raises:
        ValueError: `mod` is no module.
        UserError: the arguments contradict `dynamic_shapes`, or the program depends on a dynamic size in Python.
        GuardOnDataDependentSymNode: the program decides in Python by elements of a tensor.

    Source: https://docs.pytorch.org/docs/stable/export.html#torch.export.export

    >>> import flambeau as torch
    >>> program = torch.export.export(torch.nn.Linear(2, 1), (torch.ones(3, 2),))
    >>> print(program.graph_module.code.strip())
    def forward(self, p_weight, p_bias, input):
        input_1 = input
        linear = torch.ops.aten.linear.default(input_1, p_weight, p_bias);  input_1 = p_weight = p_bias = None
        return (linear,)
    """
    return _trace.export_module(mod, args, kwargs, dynamic_shapes=dynamic_shapes, strict=strict, **settings)


def draft_export(mod: Any, args: tuple[Any, ...], kwargs: dict[str, Any] | None = None, *, dynamic_shapes: Any = None,
                 preserve_module_call_signature: tuple[str, ...] = (), strict: bool = False,
                 prefer_deferred_runtime_asserts_over_guards: bool = False) -> ExportedProgram:
    """`export`, in which sizes that turn out to be constants are not an error.

    Raises:
        GuardOnDataDependentSymNode: the program decides in Python by elements of a tensor.

    >>> import flambeau as torch
    >>> sizes = ({0: torch.export.Dim("n")},)
    >>> program = torch.export.draft_export(torch.nn.ReLU(), (torch.ones(2),), dynamic_shapes=sizes)
    >>> program.module()(torch.tensor([-1., 1., 2.]))
    tensor([0., 1., 2.])
    """
    try:
        return export(mod, args, kwargs, dynamic_shapes=dynamic_shapes)
    except dynamic_shapes_module.UserError:
        return export(mod, args, kwargs)


def register_dataclass(cls: type, *, serialized_type_name: str | None = None) -> None:
    """Register a dataclass as a container, so that arguments and results of programs may be of it.

    Args:
        cls: the class.
        serialized_type_name: its name in saved programs.

    Source: https://docs.pytorch.org/docs/stable/export.html#torch.export.register_dataclass

    >>> from dataclasses import dataclass
    >>> import flambeau as torch
    >>> @dataclass
    ... class Pair:
    ...     x: torch.Tensor
    ...     y: torch.Tensor
    >>> torch.export.register_dataclass(Pair)
    >>> class Sum(torch.nn.Module):
    ...     def forward(self, pair):
    ...         return pair.x + pair.y
    >>> torch.export.export(Sum(), (Pair(torch.ones(2), torch.ones(2)),)).graph_signature.user_inputs
    ('pair_x', 'pair_y')
    """
    _pytree.register_dataclass(cls, serialized_type_name=serialized_type_name or f"{cls.__module__}.{cls.__qualname__}")


_ = (exported_program, graph_signature)

#: modules that are imported when they are first looked up
_MODULES = ("config", "custom_ops", "decomp_utils", "utils", "wrappers")


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return importlib.import_module(f"{__name__}.{name}")
    raise AttributeError(f"module '{__name__}' has no attribute '{name}'")
