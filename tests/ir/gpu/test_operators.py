"""A part of the operators' records as GPU programs, each in one dtype; `python -m tests.ir.gpu.operators` does all."""

from __future__ import annotations

import pytest

from flambeau import codegen
from flambeau.ir.graph.value import Unsupported
from tests.codegen.gpu.assembling import assemble
from tests.ir.gpu.operators import DTYPES, RECORDS, compare, device_program

pytestmark = [pytest.mark.skipif(not codegen.available(), reason="llvmlite is not installed, or FLAMBEAU_JIT is 0"),
              pytest.mark.filterwarnings("ignore")]
#: of how many records and kernels one is tried
PART, ASSEMBLED = 4, 5


def test_records_agree_and_are_assembled():
    kernels, agree = [], 0
    for number, record in enumerate(list(RECORDS.values())[::PART]):
        try:
            made = device_program(record, DTYPES[number % len(DTYPES)])
            if made is not None:
                agree += compare(made)
                kernels += made.kernels
        except Unsupported:
            continue
    assert agree > 35
    assemble(kernels[::ASSEMBLED])
