"""Private names of `nn.utils.clip_grad` that training programs import."""

from __future__ import annotations

import inspect
import typing

import pytest

import flambeau


def observations(torch):
    clip_grad = torch.nn.utils.clip_grad

    @clip_grad._no_grad
    def scaled(parameters: clip_grad._tensor_or_tensors, by: float = 2.0):
        """Scale."""
        return parameters * by, torch.is_grad_enabled()

    result, enabled = scaled(torch.ones(2, requires_grad=True), by=3.0)
    kinds = [getattr(kind, "__name__", str(kind)) for kind in typing.get_args(clip_grad._tensor_or_tensors)]
    return (result.tolist(), result.requires_grad, enabled, torch.is_grad_enabled(), scaled.__name__, scaled.__doc__,
            list(inspect.signature(scaled).parameters), kinds)


@pytest.mark.parity
def test_a_function_without_recording():
    import torch

    assert observations(flambeau) == observations(torch)
