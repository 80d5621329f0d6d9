"""`torch.onnx.export`: an exported program becomes an ONNX model."""

from __future__ import annotations

import inspect
import os
import threading
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import flambeau as torch

from ..export import ExportedProgram
from ..export import export as export_program
from ..export.decomposition import Functionalizer
from ..export.dynamic_shapes import Dim
from .errors import OnnxExporterError
from .exportable_module import ExportableModule
from .program import ONNXProgram
from .translation import bags, complex_numbers, neural, pointwise, reductions, shapes
from .translation.converter import Converter, translation_of

__all__ = ["export", "is_in_onnx_export"]

DEFAULT_OPSET = 18
_LOWEST, _active = 18, threading.local()


def is_in_onnx_export() -> bool:
    """Whether an export to ONNX is running.

    >>> import flambeau as torch
    >>> torch.onnx.is_in_onnx_export()
    False
    """
    return bool(getattr(_active, "value", False))


def export(model: Any, args: tuple[Any, ...] = (), f: str | os.PathLike[str] | None = None, *,
           kwargs: dict[str, Any] | None = None, verbose: bool | None = None,
           input_names: Sequence[str] | None = None, output_names: Sequence[str] | None = None,
           opset_version: int | None = None, dynamo: bool = True, external_data: bool = True,
           dynamic_shapes: Any = None, custom_translation_table: Mapping[Any, Callable[..., Any]] | None = None,
           report: bool = False, optimize: bool = True, verify: bool = False, profile: bool = False,
           dump_exported_program: bool = False, artifacts_dir: str | os.PathLike[str] = ".",
           export_params: bool = True, keep_initializers_as_inputs: bool = False,
           dynamic_axes: Mapping[str, Any] | None = None, training: Any = None, operator_export_type: Any = None,
           do_constant_folding: bool = True, custom_opsets: Mapping[str, int] | None = None,
           export_modules_as_functions: Any = False, autograd_inlining: bool = True,
           **others: Any) -> ONNXProgram | None:
    """Export a module to ONNX; needs the package `onnx` (`pip install flambeau[onnx]`).

    Args:
        model: a module, or an exported program; an `ExportableModule` has its own arguments, shapes and names.
        args, kwargs: example arguments.
        f: the path of a file that is written.
        input_names, output_names: the names of the model's inputs and outputs, in order.
        opset_version: the version of ONNX's operators, from 18 on.
        external_data: whether weights of 1 KB and more are in a file beside the model's.
        dynamic_shapes: as of `torch.export.export`.
        dynamic_axes: name of an input -> dimensions that are dynamic, a list or a dict with their names.
        custom_translation_table: overload -> function of the converter and the node's arguments, which returns the name
            of the result.
        verify: whether the model is run by onnxruntime, and its results are compared with the module's.
        export_params: whether weights are in the file.
        keep_initializers_as_inputs: whether weights are inputs too.
        dynamo: False returns None, as the older exporter does; the file is the same.
        optimize: accepted, without effect: call `ONNXProgram.optimize`.
        verbose: accepted, without effect; as are `report`, `profile`, `dump_exported_program`, `artifacts_dir`,
            `training`, `operator_export_type`, `do_constant_folding`, `custom_opsets`, `export_modules_as_functions`
            and `autograd_inlining`.

    Returns:
        The program; None where `dynamo` is false.

    Raises:
        OnnxExporterError: the package `onnx` is missing, or an operator has no counterpart in ONNX; the text has its
            name and the line that calls it.
        ValueError: the version is not supported.

    Source: https://docs.pytorch.org/docs/stable/onnx_export.html#torch.onnx.export

    >>> import flambeau as torch
    >>> program = torch.onnx.export(torch.nn.Sequential(torch.nn.Linear(2, 3), torch.nn.ReLU()), (torch.ones(1, 2),))
    >>> [node.op_type for node in program.model_proto.graph.node]
    ['Gemm', 'Relu']
    """
    try:
        import onnx
    except ImportError as error:
        raise OnnxExporterError("exports to ONNX need the package `onnx`: pip install flambeau[onnx]") from error
    opset = DEFAULT_OPSET if opset_version is None else opset_version
    newest = onnx.defs.onnx_opset_version()
    if not _LOWEST <= opset <= newest:
        raise ValueError(f"Unsupported ONNX opset version: {opset}; versions {_LOWEST} to {newest} are supported")
    if isinstance(model, ExportableModule):
        args, kwargs = model.example_arguments()
        dynamic_shapes = model.dynamic_shapes()
        input_names, output_names = model.input_names(), model.output_names()
    if isinstance(args, torch.Tensor):
        args = (args,)
    args = tuple(args)
    if not isinstance(model, ExportedProgram) and not kwargs and _takes_less(model, args):
        args, kwargs = args[:-1], args[-1]  # PyTorch's older form of arguments by name
    if dynamic_axes and dynamic_shapes is None and not isinstance(model, ExportedProgram):
        dynamic_shapes = _shapes_of(model, args, kwargs or {}, dynamic_axes, input_names)
    _active.value = True
    try:
        program = model if isinstance(model, ExportedProgram) else export_program(
            model, args, kwargs, dynamic_shapes=dynamic_shapes)
        table = dict(custom_translation_table or {})
        core = _prepared(program, table)
        names = {str(symbol): symbol.root for symbol in program.range_constraints
                 if not symbol.root.startswith("_auto_")}
        converter = Converter(core, opset, table, names)
        proto = converter.run(input_names, output_names, keep_initializers_as_inputs)
    finally:
        _active.value = False
    onnx.checker.check_model(proto, full_check=proto.ByteSize() < 1 << 30)
    result = ONNXProgram(proto, program)
    result._translated = core, {node.name: name for node, name in converter.values.items() if isinstance(name, str)}
    if f is not None:
        result.save(f, include_initializers=export_params, external_data=external_data and export_params and _is_large(
            proto))
    if verify:
        _verify(result, program, args, kwargs or {})
    return result if dynamo else None


def save_program(program: ExportedProgram, path: str | os.PathLike[str]) -> None:
    """Save an exported program as one ONNX file, with its weights.

    Raises:
        OnnxExporterError: the package `onnx` is missing, or an operator has no counterpart in ONNX.
    """
    export(program, f=path, external_data=False)


def _is_large(proto: Any) -> bool:
    return any(len(tensor.raw_data) >= 1024 for tensor in proto.graph.initializer)


def _takes_less(model: Any, args: tuple[Any, ...]) -> bool:
    """Whether the last positional argument, a dictionary, has the arguments by name."""
    if not args or not isinstance(args[-1], dict):
        return False
    try:
        parameters = list(inspect.signature(model.forward).parameters.values())
    except (TypeError, ValueError):
        return False
    positional = [p for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    if any(p.kind is p.VAR_POSITIONAL for p in parameters):
        return False
    names = {p.name for p in parameters}
    return len(args) > len(positional) or (bool(args[-1]) and set(args[-1]) <= names)


def _shapes_of(model: Any, args: Any, kwargs: Any, dynamic_axes: Mapping[str, Any],
               input_names: Sequence[str] | None) -> Any:
    """`dynamic_axes` as the argument `dynamic_shapes`."""
    from ..export.dynamic_shapes import combined_arguments

    bound = combined_arguments(model, args, kwargs)
    names = list(input_names or bound)
    dims: dict[str, Any] = {}
    found: dict[str, Any] = {}
    position = 0
    for key, value in bound.items():
        if not isinstance(value, torch.Tensor):
            found[key] = None
            continue
        name = names[position] if position < len(names) else key
        position += 1
        axes = dynamic_axes.get(name, dynamic_axes.get(key))
        if axes is None:
            found[key] = None
            continue
        items = axes.items() if isinstance(axes, Mapping) else [(axis, f"{name}_dim_{axis}") for axis in axes]
        found[key] = {axis % value.dim(): dims.setdefault(str(text), Dim(_identifier(str(text))))
                      for axis, text in items}
    return found


def _identifier(text: str) -> str:
    made = "".join(letter if letter.isalnum() or letter == "_" else "_" for letter in text)
    return made if made[:1].isalpha() or made[:1] == "_" else f"_{made}"


class _Prepared(Functionalizer):
    """Runs a program without writes; takes apart the operators that have no translation."""

    def __init__(self, program: Any, table: dict[Any, Any]) -> None:
        super().__init__(program, True, {})
        self.translated = table

    def call(self, overload: Any, args: Any, kwargs: Any) -> Any:
        self.decompose = overload not in self.translated and translation_of(overload) is None
        return super().call(overload, args, kwargs)


def _prepared(program: Any, table: dict[Any, Any]) -> Any:
    functionalizer = _Prepared(program, table)
    graph_module, signature = functionalizer.run()
    constants = {**program.constants, **functionalizer.builder.constants}
    return program._update(graph_module, signature, constants=constants)


def _verify(result: ONNXProgram, program: Any, args: Any, kwargs: Any) -> None:
    """Compare the model's results with the module's.

    Raises:
        AssertionError: they differ.
    """
    from ..utils._pytree import tree_leaves

    expected = tree_leaves(program.module()(*args, **kwargs))
    for got, value in zip(result(*args, **kwargs), expected, strict=True):
        if isinstance(value, torch.Tensor):
            torch.testing.assert_close(got, value.detach(), rtol=1e-4, atol=1e-5)


_ = (bags, complex_numbers, neural, pointwise, reductions, shapes)
