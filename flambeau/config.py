"""Process-wide settings that change how things are shown, never what they are."""

from __future__ import annotations

# `flambeau.float32` prints with this prefix; the `torch` alias sets it to "torch".
module_name = "flambeau"
