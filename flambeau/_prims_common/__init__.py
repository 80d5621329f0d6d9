"""`torch._prims_common`: rules of dtypes, shapes and strides, as functions that programs over operators ask."""

from __future__ import annotations

from .dimensions import *  # noqa: F403
from .dimensions import __all__ as _dimensions
from .dtype_rules import *  # noqa: F403
from .dtype_rules import __all__ as _dtype_rules
from .layouts import *  # noqa: F403
from .layouts import __all__ as _layouts
from .promotion import *  # noqa: F403
from .promotion import __all__ as _promotion
from .same_metadata import *  # noqa: F403
from .same_metadata import __all__ as _same_metadata

__all__ = [*_dimensions, *_dtype_rules, *_layouts, *_promotion, *_same_metadata]  # noqa: PLE0604
