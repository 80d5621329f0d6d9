"""Input checks of products of matrices and vectors, with PyTorch's errors."""

from __future__ import annotations

from typing import Any

from ... import dtypes
from ...shapes import broadcast_shapes


def check_mm(input: Any, mat2: Any) -> None:
    """Raise PyTorch's error unless the inputs of `mm` have the right dimensions, sizes and dtypes."""
    for name, x in (("self", input), ("mat2", mat2)):
        if len(x.shape) != 2:
            raise RuntimeError(f"{name} must be a matrix")
    (n, m), (k, p) = input.shape, mat2.shape
    if m != k:
        raise RuntimeError(f"mat1 and mat2 shapes cannot be multiplied ({n}x{m} and {k}x{p})")
    if input.dtype is not mat2.dtype:
        raise RuntimeError("expected m1 and m2 to have the same dtype, but got: "
                           f"{dtypes.C_NAMES[input.dtype.name]} != {dtypes.C_NAMES[mat2.dtype.name]}")


def check_bmm(batch1: Any, batch2: Any, kernel: str = "bmm") -> None:
    """Raise PyTorch's error unless the inputs of `bmm` have the right dimensions, sizes and dtypes."""
    for name, x in (("batch1", batch1), ("batch2", batch2)):
        if len(x.shape) != 3:
            raise RuntimeError(f"{name} must be a 3D tensor")
    expected = [batch1.shape[0], batch1.shape[2]]
    if list(batch2.shape[:2]) != expected:
        raise RuntimeError(f"Expected size for first two dimensions of batch2 tensor to be: {expected} but got: "
                           f"{list(batch2.shape[:2])}.")
    if batch1.dtype is dtypes.bool_ and batch2.dtype is not dtypes.bool_ and 0 not in batch1.shape:
        # the kernel is chosen by the first, which is then compared with the second
        raise NotImplementedError(f"\"{kernel}\" not implemented for 'Bool'")
    _same_scalar_type(batch1, batch2)


def _same_scalar_type(x: Any, y: Any) -> None:
    if x.dtype is not y.dtype:
        raise RuntimeError(f"expected scalar type {x.dtype.scalar_name} but found {y.dtype.scalar_name}")


def check_mv(input: Any, vec: Any) -> None:
    """Raise PyTorch's error unless the inputs of `mv` have the right dimensions, sizes and dtypes."""
    if not len(input.shape):
        raise IndexError("Dimension specified as 0 but tensor has no dimensions")
    check_addmv(vec, input, vec, without_input=True)


def check_addmv(input: Any, mat: Any, vec: Any, without_input: bool = False) -> None:
    """Raise PyTorch's error unless the inputs of `addmv` have the right dimensions, sizes and dtypes."""
    n = 1 if without_input else len(input.shape)
    if len(mat.shape) != 2 or len(vec.shape) != 1 or n > 1:
        raise RuntimeError(f"vector + matrix @ vector expected, got {n}, {len(mat.shape)}, {len(vec.shape)}")
    rows, columns = mat.shape
    have = rows if without_input or n == 0 else input.shape[0]
    if columns != vec.shape[0] or have not in (1, rows):
        raise RuntimeError(f"size mismatch, got input ({have}), mat ({rows}x{columns}), vec ({vec.shape[0]})")
    if not input.dtype is mat.dtype is vec.dtype:
        raise RuntimeError("addmv input tensors must have the same dtype, but got "
                           f"{input.dtype.scalar_name}, {mat.dtype.scalar_name}, and {vec.dtype.scalar_name}")


def check_dot(input: Any, tensor: Any) -> None:
    """Raise PyTorch's error unless the inputs of `dot` have the right dimensions, sizes and dtypes."""
    if len(input.shape) != 1 or len(tensor.shape) != 1:
        raise RuntimeError(f"1D tensors expected, but got {len(input.shape)}D and {len(tensor.shape)}D tensors")
    if input.dtype is not tensor.dtype:
        raise RuntimeError("dot : expected both vectors to have same dtype, but found "
                           f"{input.dtype.scalar_name} and {tensor.dtype.scalar_name}")
    n, m = input.shape[0], tensor.shape[0]
    if n != m:
        raise RuntimeError(f"inconsistent tensor size, expected tensor [{n}] and src [{m}] to have the same number of "
                           f"elements, but got {n} and {m} elements respectively")


def _check_expands(input: Any, size: tuple[int, ...]) -> None:
    shape = tuple(input.shape)
    lead = len(size) - len(shape)
    if lead < 0:
        raise RuntimeError(f"expand({dtypes.stream_type_name(input.dtype)}{{{list(shape)}}}, size={list(size)}): the "
                           f"number of sizes provided ({len(size)}) must be greater or equal to the number of "
                           f"dimensions in the tensor ({len(shape)})")
    for i in range(len(shape) - 1, -1, -1):
        if shape[i] not in (1, size[i + lead]):
            raise RuntimeError(f"The expanded size of the tensor ({size[i + lead]}) must match the existing size "
                               f"({shape[i]}) at non-singleton dimension {i + lead}.  Target sizes: {list(size)}.  "
                               f"Tensor sizes: {list(shape)}")


def check_addmm(input: Any, mat1: Any, mat2: Any) -> None:
    """Raise PyTorch's error unless the inputs of `addmm` have the right dimensions, sizes and dtypes."""
    for name, x, y in (("self and mat2", input, mat2), ("mat1 and mat2", mat1, mat2)):
        if x.dtype is not y.dtype:
            raise RuntimeError(f"{name} must have the same dtype, but got {x.dtype.scalar_name} and "
                               f"{y.dtype.scalar_name}")
    for name, x in (("mat1", mat1), ("mat2", mat2)):
        if len(x.shape) != 2:
            raise RuntimeError(f"{name} must be a matrix, got {len(x.shape)}-D tensor")
    (n, m), (k, p) = mat1.shape, mat2.shape
    if m == k:
        _check_expands(input, (n, p))
    else:
        raise RuntimeError(f"mat1 and mat2 shapes cannot be multiplied ({n}x{m} and {k}x{p})")


def _check_last_sizes(batch1: Any, batch2: Any) -> None:
    """Raise for batches of less than three dimensions: their sizes are read before anything else is checked."""
    for x, dim in ((batch1, 1), (batch2, 2)):
        n = len(x.shape)
        if n <= dim:
            raise IndexError(f"Dimension out of range (expected to be in range of [{-n}, {n - 1}], but got {dim})"
                             if n else f"Dimension specified as {dim} but tensor has no dimensions")


def check_baddbmm(input: Any, batch1: Any, batch2: Any) -> None:
    """Raise PyTorch's error unless the inputs of `baddbmm` have the right dimensions, sizes and dtypes."""
    if not batch1.shape:
        raise IndexError("Dimension specified as 0 but tensor has no dimensions")
    _check_last_sizes(batch1, batch2)
    _check_expands(input, (batch1.shape[0], batch1.shape[1], batch2.shape[2]))
    check_bmm(batch1, batch2, "baddbmm")
    if input.dtype is not batch1.dtype:
        raise RuntimeError("Input dtypes must be the same, got: input "
                           f"{dtypes.C_NAMES[input.dtype.name]}, batch1: {dtypes.C_NAMES[batch1.dtype.name]}, batch2: "
                           f"{dtypes.C_NAMES[batch2.dtype.name]}")


def check_addbmm(input: Any, batch1: Any, batch2: Any) -> None:
    """Raise PyTorch's error unless the inputs of `addbmm` have the right dimensions, sizes and dtypes."""
    if not batch1.shape:
        raise IndexError("Dimension specified as 1 but tensor has no dimensions")
    _check_last_sizes(batch1, batch2)
    _check_expands(input, (batch1.shape[1], batch2.shape[2]))
    for name, x in (("batch1", batch1), ("batch2", batch2)):
        if len(x.shape) != 3:
            raise RuntimeError(f"{name} must be a 3D tensor")
    b, n, m = batch1.shape
    c, k, p = batch2.shape
    if b != c:
        raise RuntimeError(f"batch1 and batch2 must have same number of batches, got {b} and {c}")
    if m != k:
        raise RuntimeError(f"Incompatible matrix sizes for bmm ({n}x{m} and {k}x{p})")
    if not input.dtype is batch1.dtype is batch2.dtype:
        x = batch1 if batch1.dtype is not input.dtype else batch2
        raise RuntimeError(f"expected m1 and m2 to have the same dtype, but got: "
                           f"{dtypes.C_NAMES[input.dtype.name]} != {dtypes.C_NAMES[x.dtype.name]}")


def _check_vector(function: str, name: str, x: Any) -> None:
    if len(x.shape) != 1:
        raise RuntimeError(f"{function}: Expected 1-D argument {name}, but got {len(x.shape)}-D")


def check_addr(input: Any, vec1: Any, vec2: Any) -> None:
    """Raise PyTorch's error unless the inputs of `addr` have the right dimensions, sizes and dtypes."""
    _check_vector("addr", "vec1", vec1)
    _check_vector("addr", "vec2", vec2)
    _check_expands(input, (vec1.shape[0], vec2.shape[0]))


def check_cross(input: Any, other: Any) -> None:
    """Raise PyTorch's error unless the inputs of `cross` have the right dimensions, sizes and dtypes."""
    if len(input.shape) != len(other.shape):
        raise RuntimeError("linalg.cross: inputs must have the same number of dimensions.")
    if input.dtype is not other.dtype and 3 in input.shape and 3 in other.shape:
        try:
            broadcast_shapes(input.shape, other.shape)
        except RuntimeError:
            return  # the forward raises
        raise RuntimeError(f"expected scalar type {input.dtype.scalar_name} but found {other.dtype.scalar_name}")
