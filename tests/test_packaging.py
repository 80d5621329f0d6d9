"""Version, changelog and package metadata are consistent with the code."""

from __future__ import annotations

import importlib.util
import os
import re
from pathlib import Path

import pytest

import flambeau
from flambeau.version import __version__

ROOT = Path(__file__).resolve().parent.parent


@pytest.mark.smoke
def test_package_version_equals_version_module():
    assert flambeau.__version__ == __version__


def test_the_changelog_has_the_version():
    assert re.search(rf"^## \[{re.escape(__version__)}\]", (ROOT / "CHANGELOG.md").read_text(), re.M)


def test_the_package_is_typed():
    assert (ROOT / "flambeau" / "py.typed").is_file()


@pytest.mark.skipif("FLAMBEAU_REQUIRE_TORCH" not in os.environ, reason="PyTorch is not required here")
def test_parity_is_with_pytorch_2_13():
    assert importlib.util.find_spec("torch") is not None, "PyTorch is required, and is not installed"
    import torch
    assert torch.__version__.startswith("2.13.")
