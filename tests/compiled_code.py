"""The fixture `compiled_code` for tests of generated code: an empty cache; skips without code generation."""

from __future__ import annotations

from pathlib import Path

import pytest

from flambeau import codegen


def cache_files(folder: Path) -> list[Path]:
    """The entries of the persistent cache in a folder, of all kinds."""
    return sorted(file for file in folder.glob("*/*") if file.is_file() and not file.name.startswith("."))


@pytest.fixture(autouse=True, scope="package")
def compiled_code(tmp_path_factory):
    """An empty code cache; tests are skipped if code generation is not available."""
    if not codegen.available():
        pytest.skip("llvmlite is not installed, or FLAMBEAU_JIT is 0")
    patch = pytest.MonkeyPatch()
    patch.setenv("FLAMBEAU_CACHE_DIR", str(tmp_path_factory.mktemp("cache")))
    yield
    patch.undo()
