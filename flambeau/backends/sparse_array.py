"""Sparse arrays: the `_array` of a sparse tensor, components and metadata without strided memory.

Dense kernels cannot read one: whatever touches elements raises `SparseAccess`. The dispatcher catches it and runs the
sparse implementation of the operator, so that dense operators do not test for sparse operands. The dtype of float32
and float64 sparse arrays is equal, but not identical, to NumPy's: fast paths, which test the identity, leave sparse
tensors to the dispatcher.
"""

from __future__ import annotations

from collections.abc import Callable
from math import prod
from typing import Any, NoReturn

import numpy as np

from ..devices import sparse_bsc, sparse_bsr, sparse_coo, sparse_csc, sparse_csr
from .elementless_array import ElementlessArray

_F32, _F64 = np.dtype(np.float32), np.dtype(np.float64)
_MARKED = {kind: np.dtype(kind, metadata={"layout": "sparse"}) for kind in (_F32, _F64)}

#: layout -> its name in PyTorch's error messages
LAYOUT_NAMES = {sparse_coo: "Sparse", sparse_csr: "SparseCsr", sparse_csc: "SparseCsc", sparse_bsr: "SparseBsr",
                sparse_bsc: "SparseBsc"}

_NOT_IMPLEMENTED = (
    "Could not run 'aten::{}' with arguments from the '{}CPU' backend. This could be because the operator doesn't "
    "exist for this backend, or was omitted during the selective/custom build process (if using custom build).")


def format_name(array: Any) -> str:
    """The abbreviated name of a format: COO, CSR, CSC, BSR or BSC."""
    return array.layout.name.removeprefix("sparse_").upper()


class SparseAccess(NotImplementedError):
    """A dense kernel tried to read a sparse array; where nothing computes the result, programs see PyTorch's class."""


SparseAccess.__name__ = SparseAccess.__qualname__ = "NotImplementedError"
SparseAccess.__module__ = "builtins"


def _backend(layout: Any) -> str:
    """The prefix of a backend's name: all compressed layouts have one backend."""
    return "Sparse" if layout is sparse_coo else "SparseCsr" if layout in LAYOUT_NAMES else ""


def not_implemented(operator: str, layout: Any) -> NotImplementedError:
    """The error of an operator that has no implementation for a layout."""
    return NotImplementedError(_NOT_IMPLEMENTED.format(operator, _backend(layout)))


def _operator(name: str, reflected: bool = False) -> Any:
    """A Python operator of a sparse array: the operator of tensors on it."""
    def method(self: SparseArray, other: Any) -> Any:
        first, second = (other, self) if reflected else (self, other)
        return SparseArray.operate(name, first, second)

    method.__name__ = method.__qualname__ = name
    return method


class _Flags:
    """The flags of an array without strided memory: it is in no layout, so that views are left to the dispatcher."""

    c_contiguous = f_contiguous = False

    def __getattr__(self, name: str) -> Any:
        raise SparseAccess("Cannot access data pointer of Tensor that doesn't have storage")


class SparseArray:
    """A sparse array of any layout: subclasses have the components.

    Attributes:
        layout: `sparse_coo` or a compressed layout.
        shape: the logical shape.
        dtype: that of the values.
        values: the elements that are stored.
    """

    __slots__ = ("dtype", "layout", "shape", "values")
    layout: Any
    shape: tuple[int, ...]
    dtype: np.dtype
    values: np.ndarray
    #: runs a binary operator of tensors on arrays, without recording it; set by `_tensor.sparse`
    operate: Callable[..., Any]
    base = torch_device = None
    flags = _Flags()

    def __init__(self, layout: Any, shape: tuple[int, ...], values: np.ndarray) -> None:
        self.layout, self.shape, self.values = layout, shape, values
        self.dtype = _MARKED.get(values.dtype, values.dtype)

    @property
    def ndim(self) -> int:
        """The number of dimensions."""
        return len(self.shape)

    @property
    def size(self) -> int:
        """The number of elements, zeros included."""
        return prod(self.shape)

    @property
    def itemsize(self) -> int:
        """The size of an element in bytes."""
        return self.dtype.itemsize

    def item(self) -> Any:
        """The only element."""
        if self.size != 1:
            raise RuntimeError(f"a Tensor with {self.size} elements cannot be converted to Scalar")
        return self.values.sum().item() if self.values.size else self.dtype.type(0).item()

    def __bool__(self) -> bool:
        return bool(self.item())

    def __len__(self) -> int:
        return self.shape[0]

    def _refuse(self, what: str) -> NoReturn:
        raise SparseAccess(_NOT_IMPLEMENTED.format(what, _backend(self.layout)))

    def __getattr__(self, name: str) -> Any:
        if name[0] == "_":
            raise AttributeError(name)
        self._refuse("as_strided" if name in ("nbytes", "squeeze", "strides") else name)

    def __array__(self, *args: Any, **kwargs: Any) -> Any:
        self._refuse("numpy")

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, out: Any = None, **kwargs: Any) -> Any:
        if ufunc is np.add and out is not None and out[0] is inputs[0] and out[0].__class__ is np.ndarray:
            out[0][...] = SparseArray.operate("add", inputs[0], self)  # a sum of gradients, which is dense
            return out[0]
        raise SparseAccess(_NOT_IMPLEMENTED.format(ufunc.__name__, _backend(self.layout)))

    def __array_function__(self, function: Any, *args: Any, **kwargs: Any) -> Any:
        self._refuse(function.__name__)

    def __getitem__(self, key: Any) -> Any:
        self._refuse("index.Tensor")

    def __setitem__(self, key: Any, value: Any) -> None:
        self._refuse("index_put_")

    def __iter__(self) -> Any:
        self._refuse("unbind")

    __add__, __radd__ = _operator("add"), _operator("add", True)
    __sub__, __rsub__ = _operator("sub"), _operator("sub", True)
    __mul__, __rmul__ = _operator("mul"), _operator("mul", True)
    __truediv__ = _operator("div")

    def _compare(self, other: Any) -> NoReturn:
        self._refuse("comparison")

    __lt__ = __le__ = __gt__ = __ge__ = _compare
    __eq__ = __ne__ = _compare
    __hash__ = object.__hash__

    def __neg__(self) -> Any:
        return SparseArray.operate("mul", self, -1)


class CooArray(SparseArray):
    """A sparse array in coordinate format: element `values[k]` (of the dense dimensions) stands at `indices[:, k]`.

    Attributes:
        indices: int64, (sparse dimensions, number of elements).
        coalesced: whether indices are sorted and distinct.
    """

    __slots__ = ("coalesced", "indices")

    def __init__(self, indices: np.ndarray, values: np.ndarray, shape: tuple[int, ...], coalesced: bool) -> None:
        super().__init__(sparse_coo, shape, values)
        self.indices, self.coalesced = indices, coalesced

    @property
    def sparse_dim(self) -> int:
        """The number of sparse dimensions."""
        return self.indices.shape[0]

    @property
    def dense_dim(self) -> int:
        """The number of dense dimensions."""
        return self.values.ndim - 1

    @property
    def nnz(self) -> int:
        """The number of stored elements."""
        return self.values.shape[0]

    def with_values(self, values: np.ndarray) -> CooArray:
        """Other values at the same places."""
        return CooArray(self.indices, values, self.shape, self.coalesced)

    def copy(self) -> CooArray:
        """A copy with its own memory."""
        return CooArray(self.indices.copy(), np.array(self.values, order="C"), self.shape, self.coalesced)


class CompressedArray(SparseArray):
    """A sparse array in a compressed row or column format, of elements or blocks, possibly in batches.

    Attributes:
        compressed: (*batch, rows + 1), where each row (column) begins among the plain indices.
        plain: (*batch, number of elements), the column (row) of each.
    """

    __slots__ = ("compressed", "plain")

    def __init__(self, layout: Any, compressed: np.ndarray, plain: np.ndarray, values: np.ndarray,
                 shape: Any) -> None:
        super().__init__(layout, shape, values)
        self.compressed, self.plain = compressed, plain

    @property
    def by_row(self) -> bool:
        """Whether rows are compressed."""
        return self.layout is sparse_csr or self.layout is sparse_bsr

    @property
    def has_blocks(self) -> bool:
        """Whether its values are blocks."""
        return self.layout is sparse_bsr or self.layout is sparse_bsc

    @property
    def batch_dim(self) -> int:
        """The number of batch dimensions."""
        return self.compressed.ndim - 1

    @property
    def block_shape(self) -> tuple[int, int]:
        """The shape of its blocks."""
        start = self.batch_dim + 1
        return self.values.shape[start: start + 2] if self.has_blocks else (1, 1)

    sparse_dim = property(lambda self: 2, doc="The number of sparse dimensions.")
    dense_dim = property(lambda self: self.ndim - self.batch_dim - 2, doc="The number of dense dimensions.")
    nnz = property(lambda self: self.plain.shape[-1], doc="The number of stored elements or blocks of each batch.")

    def with_values(self, values: np.ndarray) -> CompressedArray:
        """Other values at the same places."""
        return CompressedArray(self.layout, self.compressed, self.plain, values, self.shape)

    def copy(self) -> CompressedArray:
        """A copy with its own memory."""
        return CompressedArray(self.layout, self.compressed.copy(), self.plain.copy(), np.array(self.values, order="C"),
                               self.shape)


def check_same_storage(array: Any, other: Any) -> None:
    """Check that both arrays are dense, or sparse in formats with the same components.

    Raises:
        RuntimeError: they are not (PyTorch's text).
    """
    kinds = [x.__class__ if isinstance(x, (SparseArray, ElementlessArray)) else None for x in (array, other)]
    if kinds[0] is not kinds[1]:
        raise RuntimeError("Attempted to call `variable.set_data(tensor)`, but `variable` and `tensor` have "
                           "incompatible tensor type.")


def as_array(value: Any) -> Any:
    """A NumPy array of a value; a sparse array as it is."""
    return value if isinstance(value, SparseArray) else np.asarray(value)


def has_sparse(values: Any) -> bool:
    """Whether one of the values is a tensor with a sparse array."""
    return any(isinstance(getattr(x, "_array", None), SparseArray) for x in values)


def size_in_bytes(array: Any) -> int:
    """The size of all elements of an array, zeros included.

    Raises:
        RuntimeError: a COO array (PyTorch's text).
    """
    if isinstance(array, CooArray):
        raise RuntimeError("nbytes is not defined for sparse tensors.  If you want the size of the constituent "
                           "tensors, add the nbytes of the indices and values.  If you want the size of the  "
                           "equivalent dense tensor, multiply numel() by element_size()")
    return int(array.size * array.dtype.itemsize)


__all__ = ["LAYOUT_NAMES", "CompressedArray", "CooArray", "SparseAccess", "SparseArray", "as_array",
           "check_same_storage", "format_name", "has_sparse", "not_implemented", "size_in_bytes"]
