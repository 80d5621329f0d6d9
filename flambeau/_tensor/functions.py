"""The functions of tensors under PyTorch's names: the namespace `xp` of operator declarations on tensors.

Declared operators come from the registry. The modules imported below add functions whose arguments a declaration cannot
express; where one has the name of an operator, it replaces the generated function and dispatches to the operator.
"""

from __future__ import annotations

import sys
from types import FunctionType
from typing import Any

from ..engine.tensor_interface import layer
from ..ops.declare import REGISTRY
from .argument_errors import guards
from .dispatch.binding import public_function
from .overriding.entry_points import another_function
from .overriding.other_objects import reports_other_objects

_namespace = globals()
_internal = frozenset(_namespace)  # names of this module that are no functions of tensors
for _key, _op in REGISTRY.items():
    _call = _namespace[_key] = public_function(_op)
    _call.__module__ = __name__  # pickles refer to a function by its module and name
    for _other_name in _op.aliases:
        _namespace[_other_name] = another_function(_call, _other_name, _other_name)

from .aten_functions import *  # noqa: E402, F403
from .attributes import *  # noqa: E402, F403
from .creation.constants import *  # noqa: E402, F403
from .creation.from_data import *  # noqa: E402, F403
from .creation.random import *  # noqa: E402, F403
from .creation.sequences import *  # noqa: E402, F403
from .creation.typed_constructors import *  # noqa: E402, F403
from .dlpack import *  # noqa: E402, F403
from .linalg.contractions import *  # noqa: E402, F403
from .linalg.decompositions import *  # noqa: E402, F403
from .linalg.distances import *  # noqa: E402, F403
from .linalg.einsum import *  # noqa: E402, F403
from .linalg.factorizations import *  # noqa: E402, F403
from .linalg.linear import *  # noqa: E402, F403
from .linalg.lowrank import *  # noqa: E402, F403
from .linalg.matmul import *  # noqa: E402, F403
from .linalg.norms import *  # noqa: E402, F403
from .linalg.removed import *  # noqa: E402, F403
from .memory import *  # noqa: E402, F403
from .neural.activation import *  # noqa: E402, F403
from .neural.convolution import *  # noqa: E402, F403
from .neural.embedding_bag import *  # noqa: E402, F403
from .neural.grid_sampling import *  # noqa: E402, F403
from .neural.layers import *  # noqa: E402, F403
from .neural.losses import *  # noqa: E402, F403
from .neural.normalization import *  # noqa: E402, F403
from .neural.pooling import *  # noqa: E402, F403
from .pointwise.arithmetic import *  # noqa: E402, F403
from .pointwise.comparison import *  # noqa: E402, F403
from .pointwise.complex import *  # noqa: E402, F403
from .pointwise.complex import _computed_conj  # noqa: E402

conj = _computed_conj  # of derivatives; `torch.conj` is a view
from .pointwise.selection import *  # noqa: E402, F403
from .reduction.finite_differences import *  # noqa: E402, F403
from .reduction.ordering import *  # noqa: E402, F403
from .reduction.reductions import *  # noqa: E402, F403
from .reduction.scans import *  # noqa: E402, F403
from .reduction.segments import *  # noqa: E402, F403
from .shape.copying import *  # noqa: E402, F403
from .shape.indexing import *  # noqa: E402, F403
from .shape.joining import *  # noqa: E402, F403
from .shape.reshaping import *  # noqa: E402, F403
from .shape.scattering import *  # noqa: E402, F403
from .shape.strides import *  # noqa: E402, F403
from .spectral.fourier import *  # noqa: E402, F403
from .spectral.frequencies import *  # noqa: E402, F403
from .spectral.stft import *  # noqa: E402, F403
from .spectral.windows import *  # noqa: E402, F403

#: functions that read attributes of their arguments before anything checks them; those that are called most report
#: other objects than tensors themselves
_READ_ATTRIBUTES = """
    adaptive_avg_pool1d adaptive_max_pool1d adjoint alpha_dropout alpha_dropout_ atleast_1d atleast_2d
    atleast_3d avg_pool1d bilinear binomial broadcast_tensors broadcast_to cartesian_prod cdist chain_matmul
    cholesky chunk combinations conj conv_tbc cross detach_copy diag diagflat dropout dropout_ embedding
    feature_alpha_dropout feature_alpha_dropout_ feature_dropout feature_dropout_ full_like ger group_norm
    hash_tensor imag inner inverse is_conj is_inference is_neg is_same_size is_signed istft kron logdet lu
    lu_unpack matrix_power max_pool1d max_pool1d_with_indices max_pool2d max_pool3d meshgrid multinomial nanmean
    nansum native_dropout norm_except_dim outer pdist pinverse poisson qr ravel real resize_as_ resolve_conj
    resolve_neg rrelu rrelu_ segment_reduce select slice_inverse svd take_along_dim tile to_dlpack
    triangular_solve unflatten unique unique_consecutive unsafe_chunk vander zero_
""".split()  # noqa: SIM905
for _key in _READ_ATTRIBUTES:
    _namespace[_key] = _call = reports_other_objects(_namespace[_key], _key)
    _call.__module__, _call.__name__, _call.__qualname__ = __name__, _key, _key  # for pickles
for _key, _call in list(_namespace.items()):  # other names of a function are functions of their own
    if _call.__class__ is FunctionType and _call.__name__ != _key and _namespace.get(_call.__name__) is _call:
        _namespace[_key] = _call = another_function(_call, _key)
        _call.__module__ = __name__
for _key in guards.GUARDED_FUNCTIONS:
    guards.guard(_namespace[_key], "torch", _key)

layer.functions = sys.modules[__name__]


def __getattr__(name: str) -> Any:
    """In-place operators as functions, `relu_(x)`."""
    if name.endswith("_") and not name.startswith("_"):
        from .dispatch.binding import inplace_function
        from .overriding.entry_points import another_function
        from .tensor import Tensor

        result = getattr(Tensor, name, None)
        if result is not None:
            result = another_function(result, name)
        elif "inplace_function" in getattr(REGISTRY.get(name[:-1]), "expose", ()):
            result = inplace_function(REGISTRY[name[:-1]])
        if result is not None:
            _namespace[name] = result
            return result
    raise AttributeError(f"no operator named {name!r}")
