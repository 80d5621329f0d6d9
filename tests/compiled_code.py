"""A fixture for tests of generated code: an empty code cache, and a skip where nothing can be compiled."""

from __future__ import annotations

import pytest

from flambeau import codegen


@pytest.fixture(autouse=True, scope="package")
def compiled_code(tmp_path_factory):
    """An empty code cache; tests are skipped where nothing can be compiled."""
    if not codegen.available():
        pytest.skip("llvmlite is not installed, or FLAMBEAU_JIT is 0")
    patch = pytest.MonkeyPatch()
    patch.setenv("FLAMBEAU_CACHE_DIR", str(tmp_path_factory.mktemp("cache")))
    yield
    patch.undo()
