"""`torch.onnx.errors`: what exports to ONNX raise."""

from __future__ import annotations

__all__ = ["OnnxExporterError", "OnnxExporterWarning", "SymbolicValueError", "UnsupportedOperatorError"]


class OnnxExporterWarning(UserWarning):
    """A warning of an export to ONNX."""


class OnnxExporterError(RuntimeError):
    """A program cannot be exported to ONNX.

    >>> import flambeau as torch
    >>> issubclass(torch.onnx.errors.UnsupportedOperatorError, torch.onnx.OnnxExporterError)
    True
    """


class UnsupportedOperatorError(OnnxExporterError):
    """An operator, or some arguments of it, has no counterpart in ONNX.

    Args:
        name: the operator.
        reason: what is missing.
        where: the program's lines that call it.
    """

    def __init__(self, name: str, reason: str = "", where: str = "") -> None:
        text = f"Exporting the operator '{name}' to ONNX is not supported" + (f": {reason}." if reason else ".")
        super().__init__(text + (f"\n\nThe following call uses it:\n{where}" if where else ""))
        self.operator = name


class SymbolicValueError(OnnxExporterError):
    """Kept for callers: errors of TorchScript's symbolic functions, which are not there."""
