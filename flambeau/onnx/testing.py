"""`torch.onnx.testing`: assertions about exported models."""

from __future__ import annotations

from typing import Any

import flambeau as torch

from ..utils._pytree import tree_leaves
from .verification import arguments_of

__all__ = ["assert_onnx_program"]


def assert_onnx_program(program: Any, *, rtol: float | None = None, atol: float | None = None,
                        args: tuple[Any, ...] | None = None, kwargs: dict[str, Any] | None = None,
                        strategy: str | None = "TorchExportNonStrictStrategy", backend: str = "onnxruntime") -> None:
    """Assert that an ONNX model computes what the program computes that it was made of.

    Args:
        program: the `ONNXProgram`.
        rtol, atol: tolerances of `torch.testing.assert_close`.
        args, kwargs: the arguments; default: those that the program was exported with.
        strategy: how the program was traced; here there is one way, that of the default.
        backend: "onnxruntime", or "reference" for the NumPy implementation of the package `onnx`.

    Raises:
        AssertionError: they differ.
        ValueError: an unknown backend or another strategy, or the model has no exported program or no arguments.

    >>> import flambeau as torch
    >>> from flambeau.onnx.testing import assert_onnx_program
    >>> assert_onnx_program(torch.onnx.export(torch.nn.ReLU(), (torch.ones(2),)), backend="reference")
    """
    if strategy not in (None, "TorchExportNonStrictStrategy"):
        raise ValueError(f"Expected strategy '{strategy}' is used to capture the exported program, but got "
                         "'TorchExportNonStrictStrategy'.")
    args, kwargs = arguments_of(program, args, kwargs)
    expected = []
    for value in tree_leaves(program.exported_program.module()(*args, **kwargs)):
        if value is not None:
            value = value if isinstance(value, torch.Tensor) else torch.tensor(value)
            expected.append(torch.view_as_real(value) if value.is_complex() else value)
    if backend == "onnxruntime":
        results = program(*args, **kwargs)
    elif backend == "reference":
        results = program.call_reference(*args, **kwargs)
    else:
        raise ValueError(f"Unsupported backend '{backend}'. Supported backends are 'onnxruntime' and 'reference'.")
    torch.testing.assert_close(tuple(x for x in results if x is not None), tuple(expected), rtol=rtol, atol=atol,
                               equal_nan=True, check_device=False)
