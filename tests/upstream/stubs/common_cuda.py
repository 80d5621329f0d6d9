"""Stub for PyTorch's module on CUDA: there is none."""

from __future__ import annotations

from typing import Any

TEST_CUDA = TEST_MULTIGPU = TEST_CUDNN = False
SM53OrLater = SM60OrLater = SM70OrLater = SM75OrLater = SM80OrLater = SM90OrLater = False


def tf32_on_and_off(*args: Any, **kwargs: Any) -> Any:
    """The CPU has no TF32."""
    return lambda function: function


def with_tf32_off(function: Any) -> Any:
    """The CPU has no TF32."""
    return function
