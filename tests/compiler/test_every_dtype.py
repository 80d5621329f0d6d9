"""Every operator's first sample, compiled, in every dtype and with zeros, infinities and NaN, equals eager."""

from __future__ import annotations

import numpy as np
import pytest

import flambeau as torch
from flambeau import codegen
from tests.backends.compiled.test_every_dtype import DTYPES, RECORDS, outcome, same, samples_of
from tests.compiler.test_operators import DTYPES as ELSEWHERE
from tests.ops.spec import public
from tests.ops.test_generic import tensors_in, with_tensors

pytestmark = [
    pytest.mark.skipif(not codegen.available(), reason="llvmlite is not installed, or FLAMBEAU_JIT is 0"),
    pytest.mark.slow, pytest.mark.filterwarnings("ignore"), pytest.mark.usefixtures("nothing_is_stored")]

NUMBERS = np.array([0, -0.0, 1, -1, 2, 0.5, np.inf, -np.inf, np.nan, 0, 3, -2, 88, -104], np.float32)
#: records whose results such numbers leave open, and why
OPEN = {"linalg.det": "of a singular matrix",
        "prod": "a product of others is no quotient where there is NaN",
        "masked.prod": "depends on the order where there are NaN, infinity and zero"}


@pytest.mark.parametrize("name", RECORDS)
def test_dtypes(name):
    function = public(torch, name)
    for dtype in (each for each in DTYPES if each not in ELSEWHERE):  # there the same samples, with their gradients
        for sample in samples_of(name, dtype)[:1]:
            expected = outcome(name, sample)
            if isinstance(expected, str):
                continue
            compiled = torch.compile(lambda *args, **kwargs: function(*args, **kwargs))
            for _ in range(3):
                torch.manual_seed(0)
                found = compiled(*sample.args, **sample.kwargs)
            found = list(found) if isinstance(found, (list, tuple)) else [found]
            for a, b in zip(expected, found, strict=True):
                same(a, b)


def special(x, turn):
    """A tensor of the same shape of special numbers; those that are no float32 as they are."""
    if x.dtype is not torch.float32:
        return x.detach().clone()
    return torch.from_numpy(np.array(np.resize(np.roll(NUMBERS, 5 * turn), x.shape))).requires_grad_()


@pytest.mark.parametrize("name", [name for name in RECORDS if name not in OPEN])
def test_special_numbers(name):
    for sample in samples_of(name, torch.float32)[:2]:
        given = tensors_in(sample.args) + tensors_in(tuple(sample.kwargs.values()))

        def run(*tensors, sample=sample):
            each = iter(tensors)
            again = with_tensors(sample, lambda _: next(each))
            torch.manual_seed(0)
            found = public(torch, name)(*again.args, **again.kwargs)
            found = [x for x in (found if isinstance(found, (list, tuple)) else [found])
                     if isinstance(x, torch.Tensor)]
            ends = [x for x in found if x.requires_grad and not x.is_complex()]
            leaves = [x for x in tensors if x.requires_grad]
            slopes = torch.autograd.grad([x.sum() for x in ends], leaves, allow_unused=True) if ends else []
            return [*(x.detach() for x in found), *(x for x in slopes if x is not None)]

        compiled = torch.compile(run)
        for turn, calls in enumerate((2, 1)):  # of the first, the program is made
            tensors = [special(x, i + turn) for i, x in enumerate(given)]
            try:
                expected = run(*tensors)
            except (RuntimeError, ValueError, IndexError, torch.linalg.LinAlgError):
                continue  # not with such numbers
            for _ in range(calls):
                found = compiled(*[x.detach().clone().requires_grad_(x.requires_grad) for x in tensors])
            for a, b in zip(expected, found, strict=True):
                np.testing.assert_allclose(a.numpy(force=True), b.numpy(force=True), rtol=2e-4, atol=1e-5)
