"""Errors that CUDA devices report: launches that failed, and memory that is full."""

from __future__ import annotations


class AcceleratorError(RuntimeError):
    """An error that an accelerator reports.

    >>> import flambeau as torch
    >>> issubclass(torch.AcceleratorError, RuntimeError)
    True
    """

    __module__ = "torch"


class OutOfMemoryError(RuntimeError):
    """The error of an accelerator whose memory is full.

    >>> import flambeau as torch
    >>> issubclass(torch.OutOfMemoryError, RuntimeError)
    True
    """

    __module__ = "torch"


class StreamRaceError(RuntimeError):
    """Two streams use the same memory, one of them writes, and neither waits for the other (fake device only)."""


def device_error(text: str) -> AcceleratorError:
    """The error of a launch, as PyTorch words it when a later call finds it."""
    return AcceleratorError(
        f"CUDA error: {text}\nCUDA kernel errors might be asynchronously reported at some other API call, so the "
        "stacktrace below might be incorrect.\nFor debugging consider passing CUDA_LAUNCH_BLOCKING=1\nCompile with "
        "`TORCH_USE_CUDA_DSA` to enable device-side assertions.\n")


__all__ = ["AcceleratorError", "OutOfMemoryError", "StreamRaceError", "device_error"]
