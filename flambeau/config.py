"""The module name in printed dtypes, shapes and errors."""

from __future__ import annotations

from collections.abc import Callable

# The prefix of `flambeau.float32`; the `torch` alias sets it to "torch".
module_name = "flambeau"

# What processes that do not inherit this process's modules call first; set by the `torch` alias.
prepare_child: Callable[[], None] | None = None
