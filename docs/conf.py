"""The manual: Markdown by MyST, executed notebooks, an API reference by autodoc. `make docs` builds it."""

import sys
from pathlib import Path

from sphinx.application import Sphinx

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "docs")]

version_text = (ROOT / "flambeau" / "version.py").read_text(encoding="utf-8")

project = "flambeau"
author = copyright = "The flambeau authors"
release = version = version_text.split('"')[-2]

extensions = ["myst_nb", "sphinx.ext.autodoc", "sphinx.ext.napoleon", "sphinxcontrib.mermaid"]
exclude_patterns = ["_build"]
myst_enable_extensions = ["colon_fence", "deflist", "dollarmath"]
myst_heading_anchors = 3
html_theme = "furo"
html_title = f"flambeau {release}"

nb_execution_mode = "force"
nb_execution_raise_on_error = True
nb_execution_timeout = 120
nb_merge_streams = True

# single backquotes are code in docstrings, and a link where they name something public
default_role = "py:obj"
autodoc_typehints = "none"
napoleon_use_rtype = False
python_use_unqualified_type_names = True
toc_object_entries = False  # each page of the reference begins with links to its names
suppress_warnings = ["ref.python"]  # `grad` is a function of two namespaces and an attribute: the first is linked


def setup(app: Sphinx) -> None:
    """Generate the pages of the reference."""
    import reference_pages

    reference_pages.setup(app)
