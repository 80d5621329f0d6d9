"""`torch._export.config`: settings of PyTorch's exporter, stored without effect."""

from __future__ import annotations

import sys

from ..settings import Settings

_VALUES = {"detect_non_strict_fake_tensor_leaks": False, "enable_auto_functionalized_v2_for_export": True,
           "error_on_lifted_constant_tensors": True, "use_legacy_dynamo_graph_capture": True,
           "use_new_tracer_experimental": True}

config = Settings("torch._export.config", _VALUES)
config.__spec__ = __spec__
sys.modules[__name__] = config
