"""Samples of operators' records, called again and again on the runtime on CuPy, each time with other values.

`python -m tests._tensor.accelerated.repeated [PART PARTS]` goes through all records; with FLAMBEAU_TEST_CUDA=1 on
a GPU.
"""

from __future__ import annotations

import sys
import warnings
from typing import Any

import flambeau as torch
from flambeau._tensor.accelerated import operator_programs
from tests._tensor.accelerated.test_operators import RECORDS, moved, tensors
from tests.backends.cuda_devices.on_fake_cupy import cupy_devices
from tests.ops.spec import Make, load, public

#: what another solver may return in another layout; what a record draws
_OTHER_STRIDES = ("linalg.lstsq",)
TIMES = 4


def changed(x: Any, number: int) -> Any:
    """A value with other elements in floating-point tensors, of the same layout."""
    if isinstance(x, torch.Tensor):
        if not x.is_floating_point():
            return x
        y = torch.empty_like(x).copy_(x.detach()) if x.detach().is_contiguous() else x.detach()
        if y is not x and y.is_contiguous():
            y.mul_(1 - number / 64)
        return y.requires_grad_() if x.requires_grad else y
    if type(x) in (list, tuple):
        return type(x)(changed(each, number) for each in x)
    return {name: changed(value, number) for name, value in x.items()} if isinstance(x, dict) else x


def compare(name: str, sample: Any) -> bool:
    """Compare calls of one sample with the CPU's results and gradients; False where the CPU refuses it.

    Raises:
        AssertionError: they differ.
    """
    function = public(torch, name)
    for number in range(TIMES):
        args, kwargs = changed(list(sample.args), number), changed(dict(sample.kwargs), number)
        try:
            here = tensors(function(*args, **kwargs))
        except (RuntimeError, TypeError, ValueError, IndexError, NotImplementedError):
            return False
        device_args, device_kwargs = moved(args), moved(kwargs)
        there = tensors(function(*device_args, **device_kwargs))
        assert len(here) == len(there)
        for a, b in zip(here, there, strict=True):
            assert (a.shape, a.dtype, a.requires_grad) == (b.shape, b.dtype, b.requires_grad), number
            assert (a.grad_fn is None) == (b.grad_fn is None), number
            assert a.grad_fn is None or a.grad_fn.name() == b.grad_fn.name(), number
            assert a.stride() == b.stride() or name in _OTHER_STRIDES, number
            torch.testing.assert_close(b.detach().cpu(), a.detach(), rtol=1e-3, atol=1e-4, equal_nan=True)
        leaves, on_device = ([x for x in tensors([list(a), k]) if x.requires_grad]
                             for a, k in ((args, kwargs), (device_args, device_kwargs)))
        outs, device_outs = ([x for x in each if x.requires_grad] for each in (here, there))
        if leaves and outs:
            for a, b in zip(*(torch.autograd.grad(each, of, [torch.ones_like(x) for x in each], allow_unused=True)
                              for each, of in ((outs, leaves), (device_outs, on_device))), strict=True):
                assert (a is None) == (b is None)
                if a is not None:
                    torch.testing.assert_close(b.cpu(), a, rtol=1e-2, atol=1e-3, equal_nan=True)
    return True


def differences(names: list[str]) -> list[str]:
    """The records that differ, with the error."""
    found = []
    for name in names:
        record = load()[name]
        try:
            samples = list(record.samples(Make(torch, torch.float32 if record.floats else torch.int64,
                                               record.differentiable)))[:2]
        except (RuntimeError, TypeError, NotImplementedError):
            continue
        for sample in samples:
            try:
                compare(name, sample)
            except Exception as error:
                found.append(f"{name}: {type(error).__name__}: {str(error)[:300]}".replace("\n", " "))
    return found


def main() -> None:
    """Go through records."""
    warnings.simplefilter("ignore")
    part, parts = (int(each) for each in sys.argv[1:3]) if len(sys.argv) > 2 else (0, 1)
    with cupy_devices():
        found = differences(RECORDS[part::parts])
    print(*found, sep="\n")
    print(len(RECORDS[part::parts]), "records,", len(found), "differ;", len(operator_programs._programs), "programs")
    sys.exit(bool(found))


if __name__ == "__main__":
    main()
