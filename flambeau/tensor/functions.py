"""Every function of tensors under PyTorch's name: the operators' namespace when values are tensors.

Operators come from their declarations; the files imported below add the functions whose
arguments no declaration can take, and take a declared name over where they dispatch to it.
"""

from __future__ import annotations

import sys
from typing import Any

from .. import ops
from ..autograd.node import layer
from ..ops.declare import REGISTRY
from .binding import functions_of

FAMILIES = ops.FAMILIES
_namespace = globals()
_internal = frozenset(_namespace)  # what this file works with: no names for users
for _key, _op in REGISTRY.items():
    _call = _namespace[_key] = functions_of(_op)
    for _other_name in _op.aliases:
        _namespace[_other_name] = _call

from .activation import *  # noqa: E402, F403
from .arithmetic import *  # noqa: E402, F403
from .attributes import *  # noqa: E402, F403
from .comparison import *  # noqa: E402, F403
from .complex import *  # noqa: E402, F403
from .constants import *  # noqa: E402, F403
from .contraction import *  # noqa: E402, F403
from .convolving import *  # noqa: E402, F403
from .copying import *  # noqa: E402, F403
from .creation import *  # noqa: E402, F403
from .decompositions import *  # noqa: E402, F403
from .distances import *  # noqa: E402, F403
from .indexing import *  # noqa: E402, F403
from .joining import *  # noqa: E402, F403
from .legacy import *  # noqa: E402, F403
from .losses import *  # noqa: E402, F403
from .memory import *  # noqa: E402, F403
from .neural import *  # noqa: E402, F403
from .normalizing import *  # noqa: E402, F403
from .norms import *  # noqa: E402, F403
from .ordering import *  # noqa: E402, F403
from .pooling import *  # noqa: E402, F403
from .products import *  # noqa: E402, F403
from .random import *  # noqa: E402, F403
from .reducing import *  # noqa: E402, F403
from .scanning import *  # noqa: E402, F403
from .scattering import *  # noqa: E402, F403
from .selection import *  # noqa: E402, F403
from .sequences import *  # noqa: E402, F403
from .shaping import *  # noqa: E402, F403
from .striding import *  # noqa: E402, F403

layer.functions = sys.modules[__name__]


def __getattr__(name: str) -> Any:
    """In-place forms as functions, `relu_(x)`: the method, or the declared operator's."""
    if name.endswith("_") and not name.startswith("_"):
        from .binding import in_place
        from .tensor import Tensor

        found = getattr(Tensor, name, None)
        if found is None and "inplace_function" in getattr(REGISTRY.get(name[:-1]), "expose", ()):
            found = in_place(REGISTRY[name[:-1]])
        if found is not None:
            _namespace[name] = found
            return found
    raise AttributeError(f"no operator named {name!r}")
