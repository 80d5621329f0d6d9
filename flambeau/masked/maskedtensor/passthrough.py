"""Operators that rearrange elements: they apply to data and mask alike."""

from __future__ import annotations

from typing import Any

from .core import DERIVATIVES, OPERATORS, mapped, wrap_result

PASSTHROUGH_NAMES = [
    "select", "transpose", "split", "t", "slice", "slice_backward", "select_backward", "index", "expand", "view",
    "_unsafe_view", "_reshape_alias", "cat", "unsqueeze", "unfold", "unfold_backward", "im2col", "col2im", "stack",
]


def _apply_pass_through_fn(packet: Any, *args: Any, **kwargs: Any) -> Any:
    data, mask = (packet(*mapped(args, part), **{name: mapped(value, part) for name, value in kwargs.items()})
                  for part in (lambda x: x.get_data(), lambda x: x.get_mask()))
    return wrap_result(data, mask)


#: operators of derivatives of `PASSTHROUGH_NAMES`
_INTERNAL_NAMES = ("_embed", "split_with_sizes", "folded")

DERIVATIVES.update(dict.fromkeys(_INTERNAL_NAMES, _apply_pass_through_fn))
OPERATORS.update(dict.fromkeys(PASSTHROUGH_NAMES, _apply_pass_through_fn))

__all__ = ["PASSTHROUGH_NAMES"]
