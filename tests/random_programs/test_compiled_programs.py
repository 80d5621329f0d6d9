"""A fixed range of seeds compiled, on every run; thousands more are a command away (see `compiled`)."""

from __future__ import annotations

import pytest

from flambeau import codegen

from .compiled import checked, explained

pytestmark = pytest.mark.skipif(not codegen.available(), reason="llvmlite is not installed, or FLAMBEAU_JIT is 0")

_EACH = 15


@pytest.mark.parametrize("first", range(0, 4 * _EACH, _EACH))
def test_random_programs_do_compiled_what_they_do_eagerly(first):
    compiled = 0
    for seed in range(first, first + _EACH):
        program, found, programs = checked(seed)
        assert found is None, "\n" + explained(seed, program, found)
        compiled += bool(programs)
    assert compiled >= _EACH // 3, "most programs were not compiled: nothing was compared"
