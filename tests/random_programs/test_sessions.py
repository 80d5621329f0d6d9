"""Some of the random sessions of training; `python -m tests.random_programs.sessions` runs as many as you like."""

from __future__ import annotations

import pytest

from flambeau import codegen
from tests.random_programs.sessions import disagreement

pytestmark = [pytest.mark.skipif(not codegen.available(), reason="llvmlite is not installed, or FLAMBEAU_JIT is 0"),
              pytest.mark.filterwarnings("ignore")]


@pytest.mark.parametrize("first", range(0, 40, 5))
def test_compiled_sessions_do_what_eager_ones_do(first):
    for seed in range(first, first + 5):
        assert disagreement(seed) is None
