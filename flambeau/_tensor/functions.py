"""Every function of tensors under PyTorch's name: the operators' namespace when values are tensors.

Operators come from their declarations; the files imported below add the functions whose
arguments no declaration can take, and take a declared name over where they dispatch to it.
"""

from __future__ import annotations

import sys
from typing import Any

from ..engine.tensor_interface import layer
from ..ops.declare import REGISTRY
from .dispatch.binding import functions_of

_namespace = globals()
_internal = frozenset(_namespace)  # what this file works with: no names for users
for _key, _op in REGISTRY.items():
    _call = _namespace[_key] = functions_of(_op)
    for _other_name in _op.aliases:
        _namespace[_other_name] = _call

from .attributes import *  # noqa: E402, F403
from .creation.constants import *  # noqa: E402, F403
from .creation.from_data import *  # noqa: E402, F403
from .creation.random import *  # noqa: E402, F403
from .creation.sequences import *  # noqa: E402, F403
from .creation.typed_constructors import *  # noqa: E402, F403
from .linalg.decompositions import *  # noqa: E402, F403
from .linalg.distances import *  # noqa: E402, F403
from .linalg.einsum import *  # noqa: E402, F403
from .linalg.matmul import *  # noqa: E402, F403
from .linalg.norms import *  # noqa: E402, F403
from .memory import *  # noqa: E402, F403
from .neural.activation import *  # noqa: E402, F403
from .neural.convolution import *  # noqa: E402, F403
from .neural.layers import *  # noqa: E402, F403
from .neural.losses import *  # noqa: E402, F403
from .neural.normalization import *  # noqa: E402, F403
from .neural.pooling import *  # noqa: E402, F403
from .pointwise.arithmetic import *  # noqa: E402, F403
from .pointwise.comparison import *  # noqa: E402, F403
from .pointwise.complex import *  # noqa: E402, F403
from .pointwise.selection import *  # noqa: E402, F403
from .reduction.ordering import *  # noqa: E402, F403
from .reduction.reductions import *  # noqa: E402, F403
from .reduction.scans import *  # noqa: E402, F403
from .shape.copying import *  # noqa: E402, F403
from .shape.indexing import *  # noqa: E402, F403
from .shape.joining import *  # noqa: E402, F403
from .shape.reshaping import *  # noqa: E402, F403
from .shape.scattering import *  # noqa: E402, F403
from .shape.strides import *  # noqa: E402, F403

layer.functions = sys.modules[__name__]


def __getattr__(name: str) -> Any:
    """In-place forms as functions, `relu_(x)`: the method, or the declared operator's."""
    if name.endswith("_") and not name.startswith("_"):
        from .dispatch.binding import in_place
        from .tensor import Tensor

        found = getattr(Tensor, name, None)
        if found is None and "inplace_function" in getattr(REGISTRY.get(name[:-1]), "expose", ()):
            found = in_place(REGISTRY[name[:-1]])
        if found is not None:
            _namespace[name] = found
            return found
    raise AttributeError(f"no operator named {name!r}")
