"""`torch.onnx`: modules as ONNX models, which other runtimes run.

    program = torch.onnx.export(module, (x,), "module.onnx", dynamic_shapes={"x": {0: torch.export.Dim("batch")}})
    program(x)      # computed by onnxruntime
"""

from __future__ import annotations

import enum
from typing import Any

from . import (
    _internal,
    errors,
    operators,
    symbolic_helper,
    symbolic_opset9,
    symbolic_opset11,
    symbolic_opset12,
    utils,
)
from .errors import OnnxExporterError
from .exportable_module import ExportableModule
from .exporting import export, is_in_onnx_export
from .left_out_names import refusing
from .program import ONNXProgram

globals().update(refusing("", "dynamo_export"))
__all__ = ["ExportableModule", "ONNXProgram", "OnnxExporterError", "errors", "export", "is_in_onnx_export"]

producer_name, producer_version = "pytorch", "2.13.0"


class TrainingMode(enum.Enum):
    """Kept for callers: a module is exported in the mode that it is in."""

    EVAL = 0
    PRESERVE = 1
    TRAINING = 2


class OperatorExportTypes(enum.Enum):
    """Kept for callers: operators are those of ONNX."""

    ONNX = 0
    ONNX_ATEN = 1
    ONNX_ATEN_FALLBACK = 2
    ONNX_FALLTHROUGH = 3


class TensorProtoDataType(enum.Enum):
    """ONNX's numbers of dtypes."""

    UNDEFINED = 0
    FLOAT = 1
    UINT8 = 2
    INT8 = 3
    UINT16 = 4
    INT16 = 5
    INT32 = 6
    INT64 = 7
    STRING = 8
    BOOL = 9
    FLOAT16 = 10
    DOUBLE = 11
    UINT32 = 12
    UINT64 = 13
    COMPLEX64 = 14
    COMPLEX128 = 15
    BFLOAT16 = 16


def register_custom_op_symbolic(symbolic_name: str, symbolic_fn: Any, opset_version: int) -> None:
    """Nothing: functions of TorchScript's exporter are not used; see `custom_translation_table` of `export`."""


def unregister_custom_op_symbolic(symbolic_name: str, opset_version: int) -> None:
    """Nothing: there are none."""


def is_onnxrt_backend_supported() -> bool:
    """Whether `torch.compile` has a backend of onnxruntime: no.

    >>> import flambeau as torch
    >>> torch.onnx.is_onnxrt_backend_supported()
    False
    """
    return False


_ = (_internal, operators, symbolic_helper, symbolic_opset9, symbolic_opset11, symbolic_opset12, utils)
