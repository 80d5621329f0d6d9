"""The module name in printed dtypes, shapes and errors."""

from __future__ import annotations

# The prefix of `flambeau.float32`; the `torch` alias sets it to "torch".
module_name = "flambeau"
