"""`torch.onnx.verification`: how far the values of an ONNX model are from those of its exported program."""

from __future__ import annotations

import dataclasses
import math
from typing import Any

import flambeau as torch

from ..export.graph_signature import InputKind
from ..fx.interpreter import Interpreter
from ..utils._pytree import tree_leaves

__all__ = ["VerificationInfo", "verify_onnx_program"]

_BINS = (0.0, 1e-6, 1e-5, 1e-4, 1e-3, 1e-2, 1e-1, 1.0, 10.0, 1000000.0)


@dataclasses.dataclass
class VerificationInfo:
    """How far a value is from what it should be.

    Attributes:
        name: the value's name in the model.
        max_abs_diff, max_rel_diff: the largest absolute and relative difference.
        abs_diff_hist, rel_diff_hist: histograms of the differences: counts, and the edges of the bins.
        expected_dtype, actual_dtype: the dtypes of both.
    """

    name: str
    max_abs_diff: float
    max_rel_diff: float
    abs_diff_hist: tuple[Any, Any]
    rel_diff_hist: tuple[Any, Any]
    expected_dtype: Any
    actual_dtype: Any

    @classmethod
    def from_tensors(cls, name: str, expected: Any, actual: Any) -> VerificationInfo:
        """Compare two tensors or numbers.

        >>> import flambeau as torch
        >>> from flambeau.onnx.verification import VerificationInfo
        >>> VerificationInfo.from_tensors("x", torch.ones(2), torch.tensor([1., 1.5])).max_abs_diff
        0.5
        """
        expected, actual = (x if isinstance(x, torch.Tensor) else torch.tensor(x) for x in (expected, actual))
        largest, relative, absolute_differences, relative_differences = _differences(expected, actual)
        bins = torch.tensor(_BINS, dtype=torch.float)
        return cls(name, largest, relative, tuple(torch.histogram(absolute_differences.float(), bins=bins)),
                   tuple(torch.histogram(relative_differences.float(), bins=bins)), expected.dtype, actual.dtype)

    def asdict(self) -> dict[str, Any]:
        """The fields as numbers, lists and strings."""
        return {"name": self.name, "max_abs_diff": self.max_abs_diff, "max_rel_diff": self.max_rel_diff,
                "abs_diff_hist": [each.tolist() for each in self.abs_diff_hist],
                "rel_diff_hist": [each.tolist() for each in self.rel_diff_hist],
                "expected_dtype": str(self.expected_dtype), "actual_dtype": str(self.actual_dtype)}


def _differences(expected: Any, actual: Any) -> tuple[float, float, Any, Any]:
    expected, actual = expected.detach().cpu(), actual.detach().cpu()
    if expected.numel() == 0 or actual.numel() == 0:
        return math.inf, math.inf, torch.tensor(math.inf), torch.tensor(math.inf)
    if expected.dtype == torch.bool:
        expected, actual = expected.float(), actual.float()
    if expected.is_complex():
        expected = torch.view_as_real(expected)
    absolute = (expected - actual).abs()
    relative = absolute / (expected.abs() + 1e-7)
    return absolute.max().item(), relative.max().item(), absolute, relative


def arguments_of(program: Any, args: Any, kwargs: Any) -> tuple[Any, Any]:
    """The arguments that a model is run with: those given, else those that it was exported with.

    Raises:
        ValueError: the model has no exported program, or there are no arguments.
    """
    exported = program.exported_program
    if exported is None:
        raise ValueError("The ONNX program does not contain an exported_program. Please provide an exported_program to "
                         "verify the ONNX program.")
    if args is None and kwargs is None:
        if exported.example_inputs is None:
            raise ValueError("No example inputs provided and the exported_program does not contain example inputs. "
                             "Please provide arguments to verify the ONNX program.")
        args, kwargs = exported.example_inputs
    return args or (), kwargs or {}


def verify_onnx_program(onnx_program: Any, args: tuple[Any, ...] | None = None, kwargs: dict[str, Any] | None = None,
                        compare_intermediates: bool = False) -> list[VerificationInfo]:
    """Compare the values of an ONNX model, run by onnxruntime, with those of its exported program.

    Args:
        onnx_program: the model.
        args, kwargs: the arguments; default: those that the program was exported with.
        compare_intermediates: whether values inside the model are compared, too.

    Returns:
        One `VerificationInfo` for each value.

    Raises:
        ValueError: the model has no exported program, or there are no arguments.

    Source: https://docs.pytorch.org/docs/stable/onnx_verification.html
    """
    args, kwargs = arguments_of(onnx_program, args, kwargs)
    inside = _intermediates(onnx_program, args, kwargs) if compare_intermediates else []
    expected = tree_leaves(onnx_program.exported_program.module()(*args, **kwargs))
    names = iter(each.name for each in onnx_program.model.graph.output)
    outputs = [VerificationInfo.from_tensors(next(names), value, result)
               for value, result in zip(expected, onnx_program(*args, **kwargs), strict=True)
               if isinstance(value, torch.Tensor)]
    known = {info.name for info in outputs}
    return [info for info in inside if info.name not in known] + outputs


class _Recorder(Interpreter):
    """Runs a program and keeps the value of each node."""

    def __init__(self, module: Any) -> None:
        super().__init__(module)
        self.recorded: dict[str, Any] = {}

    def run_node(self, n: Any) -> Any:
        result = self.recorded[n.name] = super().run_node(n)
        return result


def _intermediates(onnx_program: Any, args: Any, kwargs: Any) -> list[VerificationInfo]:
    if onnx_program._translated is None:
        raise ValueError("The ONNX program was not made by torch.onnx.export: which value of it is which of the "
                         "exported program is not known")
    core, values = onnx_program._translated
    given = iter(onnx_program._flat_arguments(args, kwargs))
    inputs = [next(given) if spec.kind == InputKind.USER_INPUT
              else core.state_dict.get(spec.target, core.constants.get(spec.target))
              for spec in core.graph_signature.input_specs]
    recorder = _Recorder(core.graph_module)
    recorder.run(*inputs, enable_io_processing=False)
    made = {name for node in onnx_program.model.graph.node for name in node.output}
    pairs = [(values[node], value) for node, value in recorder.recorded.items()
             if isinstance(value, torch.Tensor) and values.get(node) in made]
    results = onnx_program.compute_values([name for name, _ in pairs], args, kwargs)
    return [VerificationInfo.from_tensors(name, value, result)
            for (name, value), result in zip(pairs, results, strict=True)]
