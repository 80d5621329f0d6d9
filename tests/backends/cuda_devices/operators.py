"""The samples of all operators' records on the runtime on CuPy, against the CPU.

`python -m tests.backends.cuda_devices.operators [DTYPE] [NAME ...]` goes through all, and prints which operators the
host computes on copies, and why; with FLAMBEAU_TEST_CUDA=1 on a GPU.
"""

from __future__ import annotations

import argparse
import sys
import warnings
from collections import Counter
from typing import Any

import flambeau as torch
from flambeau._tensor.accelerated import host_copies, operator_programs
from tests._tensor.accelerated.test_operators import RECORDS, keywords, moved, tensors
from tests.backends.cuda_devices.on_fake_cupy import cupy_devices
from tests.ops.spec import Make, load, public

#: relative and absolute tolerances of results, by the bytes of an element
_TOLERANCES = {2: (2e-2, 2e-2), 4: (1e-3, 1e-4), 8: (1e-3, 1e-4), 16: (1e-7, 1e-7)}
#: whose vectors another solver may return with other signs
_FREE_SIGNS = ("linalg.eigh", "linalg.svd")


def compare(name: str, sample: Any, dtype: Any) -> bool:
    """Compare a sample's results and gradients; False where the CPU refuses it.

    Raises:
        AssertionError: they differ.
    """
    function = public(torch, name)
    try:
        here = tensors(function(*sample.args, **keywords(name, sample)))
    except (RuntimeError, TypeError, ValueError, IndexError, NotImplementedError):
        return False
    rtol, atol = _TOLERANCES[dtype.itemsize]
    args, kwargs = moved(sample.args), moved(keywords(name, sample))
    there = tensors(function(*args, **kwargs))
    assert len(here) == len(there)
    for a, b in zip(here, there, strict=True):
        assert (a.shape, a.dtype) == (b.shape, b.dtype)
        assert a.stride() == b.stride()
        found, expected = b.detach().cpu(), a.detach()
        if name in _FREE_SIGNS:
            found, expected = found.abs(), expected.abs()
        torch.testing.assert_close(found, expected, rtol=rtol, atol=atol, equal_nan=True)
    if name in _FREE_SIGNS:
        return True
    leaves, on_device = ([x for x in tensors([list(a), k]) if x.requires_grad]
                         for a, k in ((sample.args, sample.kwargs), (args, kwargs)))
    outs, device_outs = ([x for x in each if x.requires_grad] for each in (here, there))
    if leaves and outs:
        for a, b in zip(*(torch.autograd.grad(each, of, [torch.ones_like(x) for x in each], allow_unused=True)
                          for each, of in ((outs, leaves), (device_outs, on_device))), strict=True):
            assert (a is None) == (b is None)
            if a is not None:
                torch.testing.assert_close(b.cpu(), a, rtol=10 * rtol, atol=10 * atol, equal_nan=True)
    return True


def main() -> None:
    """Go through records."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("dtype", nargs="?", default="float32")
    parser.add_argument("names", nargs="*", help="records; all, if none is named")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    count: Counter[str] = Counter()
    dtype = getattr(torch, options.dtype)
    with cupy_devices():
        for name in options.names or RECORDS:
            record = load()[name]
            if dtype.is_complex and not record.complex:
                continue
            own = dtype if record.floats else torch.int64
            try:
                samples = list(record.samples(Make(torch, own, record.differentiable)))[:2]
            except (RuntimeError, TypeError, NotImplementedError):
                continue
            for sample in samples:
                try:
                    count["agree" if compare(name, sample, dtype) else "refused by the CPU"] += 1
                except Exception as error:
                    count["differ"] += 1
                    print(name, type(error).__name__, str(error)[:200].replace("\n", " "))
    for name, times in sorted(host_copies.computed.items()):
        print(f"host: {name} {times} ({operator_programs.refusals.get(name.rstrip('_'), 'no elements')})")
    print(dict(count), len(host_copies.computed), "operators on copies of the host")
    sys.exit(bool(count["differ"]))


if __name__ == "__main__":
    main()
