"""The manual: Markdown by MyST, mermaid diagrams, furo's looks. `make docs` builds it."""

import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

version_text = (ROOT / "flambeau" / "version.py").read_text(encoding="utf-8")

project = "flambeau"
author = copyright = "The flambeau authors"
release = version = version_text.split('"')[-2]

extensions = ["myst_parser", "sphinxcontrib.mermaid"]
exclude_patterns = ["_build"]
myst_enable_extensions = ["colon_fence", "deflist", "dollarmath"]
myst_heading_anchors = 3
html_theme = "furo"
html_title = f"flambeau {release}"
