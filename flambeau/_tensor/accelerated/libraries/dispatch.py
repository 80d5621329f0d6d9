"""Which operators NVIDIA's libraries compute: those whose declarations call primitives of the namespace here."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ....backends.cuda_devices import current_runtime
from ....backends.cuda_devices.array import DeviceArray
from ....ops.declare import Op
from ...tensor import Tensor
from ..operator_programs import refusals
from . import decompositions, factorizations, fourier, least_squares, solutions  # noqa: F401 - they register primitives
from .namespace import PRIMITIVES, Compute, DeviceNamespace

#: declarations whose primitives are functions of libraries
_DECLARATIONS = frozenset((
    "_fft_c2c", "_fft_r2c", "_fft_c2r", "_fft_r2c_adjoint", "_fft_c2r_adjoint",
    "cholesky", "linalg_cholesky_ex", "linalg_lu", "linalg_lu_factor_ex", "_lu_unpack", "linalg_lu_solve",
    "_linalg_lstsq", "linalg_inv_ex", "linalg_solve_ex", "linalg_solve_triangular", "_triangular_solve", "linalg_pinv",
    "cholesky_solve", "cholesky_inverse", "linalg_det", "_cofactors", "linalg_slogdet", "linalg_qr", "linalg_eigh",
    "linalg_svd", "linalg_matrix_exp", "geqrf", "linalg_householder_product", "ormqr"))
_DTYPES = "fdFD"


def run(op: Op, inputs: Sequence[Any], params: dict[str, Any], device: int, compute: Compute) -> Any:
    """The results of an operator, in a list; NotImplemented for other operators and dtypes.

    Args:
        compute: computes other operators on the device.

    Raises:
        RuntimeError, LinAlgError: as the operator does.
    """
    name = op.forward.__name__
    if name not in _DECLARATIONS:
        return NotImplemented
    arrays = [x._array if isinstance(x, Tensor) else x for x in inputs]
    if any(each.__class__ is not DeviceArray or (each.dtype.char not in _DTYPES and (each.dtype.char != "i" or i != 1))
           for i, each in enumerate(arrays)):
        return NotImplemented
    xp = DeviceNamespace(device, compute)
    given = {key: value._array if isinstance(value, Tensor) else value for key, value in params.items()}
    function = PRIMITIVES.get(name)
    try:
        if "fft" in name:
            current_runtime().fourier  # noqa: B018 - loads the library
        else:
            current_runtime().linear_algebra  # noqa: B018
    except OSError as error:
        refusals[op.name] = str(error)
        return NotImplemented
    if function is not None and name == "_cofactors":
        results = function(xp, *arrays)
    else:
        results = op.forward(xp, *arrays, **given)
    if results is NotImplemented:
        return NotImplemented
    return list(results) if isinstance(results, (list, tuple)) else [results]


__all__ = ["run"]
