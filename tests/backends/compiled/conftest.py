from __future__ import annotations

import pytest

from flambeau import codegen
from flambeau.backends.compiled import thresholds


@pytest.fixture(autouse=True, scope="package")
def compiled_code(tmp_path_factory):
    """A cache folder of the tests' own; skipped where nothing can be compiled."""
    if not codegen.available():
        pytest.skip("llvmlite is not installed, or FLAMBEAU_JIT is 0")
    patch = pytest.MonkeyPatch()
    patch.setenv("FLAMBEAU_CACHE_DIR", str(tmp_path_factory.mktemp("cache")))
    yield
    patch.undo()


@pytest.fixture
def everything_large():
    """Arrays of any size run on kernels."""
    before = thresholds.set_thresholds(0)
    yield
    thresholds.restore_thresholds(before)


class Implementations:
    """Runs a function on NumPy, on compiled kernels, or on both."""

    @staticmethod
    def _run(elements, function):
        before = thresholds.set_thresholds(elements)
        try:
            return function()
        finally:
            thresholds.restore_thresholds(before)

    def numpy(self, function):
        return self._run(1 << 60, function)

    def kernels(self, function):
        return self._run(0, function)

    def both(self, function):
        return self.numpy(function), self.kernels(function)


@pytest.fixture
def impls():
    return Implementations()
