"""Pairs: comparisons of two values as classes, which test suites derive from to compare values of their own."""

from __future__ import annotations

import abc
import cmath
import contextlib
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, ClassVar, NoReturn

import numpy as np

from .. import dtypes
from .._tensor import Tensor
from .._tensor import functions as fn
from ..backends.sparse_array import has_sparse
from ..dtypes import dtype
from .comparisons import Closeness, compare_attributes, compare_dense, compare_sparse, equalized
from .mismatch import Message, Mismatch, item_path, scalar_message
from .tolerances import TOLERANCES, max_tolerances


class ErrorMeta(Exception):
    """A failed comparison, which is turned into the exception that the user gets.

    Args:
        type: the class of that exception.
        msg: its message.
        id: indices and keys of the values in their containers.

    >>> ErrorMeta(AssertionError, "1 is not 2", id=("a", 0)).to_error(str.upper)
    AssertionError("1 IS NOT 2\\n\\nTHE FAILURE OCCURRED FOR ITEM ['A'][0]")
    """

    def __init__(self, type: type[Exception], msg: str, *, id: tuple[Any, ...] = ()) -> None:
        super().__init__(f"{type.__name__}: {msg} (raise `to_error()` for users)")
        self.type, self.msg, self.id = type, msg, id

    def to_error(self, msg: Message = None) -> Exception:
        """The exception that the user gets.

        Args:
            msg: its message, or a function of the default one that returns it.
        """
        return Mismatch(self.msg, self.id, self.type).to_error(msg)


class UnsupportedInputs(Exception):
    """A pair does not compare such values: the next class is tried."""


def tolerances_of(*inputs: Tensor | dtype, rtol: float | None, atol: float | None,
                  id: tuple[Any, ...] = ()) -> tuple[float, float]:
    """The tolerances that were passed, or those of the inputs.

    Raises:
        ErrorMeta: only one of `rtol` and `atol` was passed.
    """
    if (rtol is None) != (atol is None):
        raise ErrorMeta(ValueError, "Both 'rtol' and 'atol' must be either specified or omitted, but got no "
                        f"{'rtol' if rtol is None else 'atol'}.", id=id)
    if rtol is not None and atol is not None:
        return rtol, atol
    return max_tolerances(*(x.dtype if isinstance(x, Tensor) else x for x in inputs), table=TOLERANCES)


class Pair(abc.ABC):
    """Two values that are compared. A derived class defines `compare`.

    Args:
        actual: the value.
        expected: what it should be.
        id: indices and keys of the values in their containers.
        unknown_parameters: options of other classes.

    >>> class Parity(Pair):
    ...     def compare(self):
    ...         if (self.actual - self.expected) % 2:
    ...             self._fail(AssertionError, f"{self.actual} and {self.expected} have other parities")
    >>> not_close_error_metas([1, 2], [3, 5], pair_types=(Parity,))[0].to_error()
    AssertionError('2 and 5 have other parities\\n\\nThe failure occurred for item [1]')
    """

    def __init__(self, actual: Any, expected: Any, *, id: tuple[Any, ...] = (), **unknown_parameters: Any) -> None:
        self.actual, self.expected, self.id = actual, expected, id
        self._unknown_parameters = unknown_parameters

    @staticmethod
    def _inputs_not_supported() -> NoReturn:
        raise UnsupportedInputs

    @staticmethod
    def _check_inputs_isinstance(*inputs: Any, cls: type | tuple[type, ...]) -> None:
        if not all(isinstance(each, cls) for each in inputs):
            Pair._inputs_not_supported()

    def _fail(self, type: type[Exception], msg: str, *, id: tuple[Any, ...] = ()) -> NoReturn:
        raise ErrorMeta(type, msg, id=id or getattr(self, "id", ()))

    @contextlib.contextmanager
    def _mismatches(self) -> Iterator[None]:
        """Mismatches of the functions of `comparisons` as those of this pair."""
        try:
            yield
        except Mismatch as mismatch:
            error = ErrorMeta(mismatch.kind, mismatch.text, id=self.id)
        else:
            return
        raise error

    @abc.abstractmethod
    def compare(self) -> None:
        """Compare the values.

        Raises:
            ErrorMeta: they differ.
        """

    def extra_repr(self) -> Sequence[str | tuple[str, Any]]:
        """Names of attributes, or pairs of a name and a value, that `repr` shows."""
        return []

    def __repr__(self) -> str:
        shown = [(each, getattr(self, each)) if isinstance(each, str) else each for each in self.extra_repr()]
        lines = [("id", self.id), ("actual", self.actual), ("expected", self.expected), *shown]
        return "\n".join([f"{type(self).__name__}(", *(f"    {name}={value!s}," for name, value in lines), ")"])


class ObjectPair(Pair):
    """Values of any class, compared by `==`.

    >>> ObjectPair(1, 1).compare()
    """

    def compare(self) -> None:
        """Raise `ErrorMeta` unless the values are equal."""
        try:
            equal = self.actual == self.expected
        except Exception as error:
            raise ErrorMeta(ValueError, f"{self.actual} == {self.expected} failed with:\n{error}.",
                            id=self.id) from error
        if not equal:
            self._fail(AssertionError, f"{self.actual} != {self.expected}")


class NonePair(Pair):
    """Values one of which is None; the other one must be None, too."""

    def __init__(self, actual: Any, expected: Any, **other_parameters: Any) -> None:
        if actual is not None and expected is not None:
            self._inputs_not_supported()
        super().__init__(actual, expected, **other_parameters)

    def compare(self) -> None:
        """Raise `ErrorMeta` unless both are None."""
        if self.actual is not self.expected:
            self._fail(AssertionError, f"None mismatch: {self.actual} is not {self.expected}")


class BooleanPair(Pair):
    """Booleans of Python and NumPy."""

    def __init__(self, actual: Any, expected: Any, *, id: tuple[Any, ...], **other_parameters: Any) -> None:
        actual, expected = self._process_inputs(actual, expected, id=id)
        super().__init__(actual, expected, **other_parameters)

    @property
    def _supported_types(self) -> tuple[type, ...]:
        return bool, np.bool_

    def _process_inputs(self, actual: Any, expected: Any, *, id: tuple[Any, ...]) -> tuple[bool, bool]:
        self._check_inputs_isinstance(actual, expected, cls=self._supported_types)
        return self._to_bool(actual, id=id), self._to_bool(expected, id=id)

    def _to_bool(self, bool_like: Any, *, id: tuple[Any, ...]) -> bool:
        if not isinstance(bool_like, (bool, np.bool_)):
            raise ErrorMeta(TypeError, f"Unknown boolean type {type(bool_like)}.", id=id)
        return bool(bool_like)

    def compare(self) -> None:
        """Raise `ErrorMeta` unless they are equal."""
        if self.actual is not self.expected:
            self._fail(AssertionError, f"Booleans mismatch: {self.actual} is not {self.expected}")


class NumberPair(Pair):
    """Numbers of Python and NumPy.

    Args:
        actual, expected, id: as for `Pair`.
        rtol: relative tolerance; requires `atol`. Default: that of int64, float64 or complex128.
        atol: absolute tolerance; requires `rtol`.
        equal_nan: NaN equals NaN.
        check_dtype: the classes must be the same.
    """

    _TYPE_TO_DTYPE: ClassVar[dict[type, dtype]] = {
        int: dtypes.int64, float: dtypes.float64, complex: dtypes.complex128}
    _NUMBER_TYPES: ClassVar[tuple[type, ...]] = tuple(_TYPE_TO_DTYPE)

    def __init__(self, actual: Any, expected: Any, *, id: tuple[Any, ...] = (), rtol: float | None = None,
                 atol: float | None = None, equal_nan: bool = False, check_dtype: bool = False,
                 **other_parameters: Any) -> None:
        actual, expected = self._process_inputs(actual, expected, id=id)
        super().__init__(actual, expected, id=id, **other_parameters)
        kinds = [self._TYPE_TO_DTYPE[type(x)] for x in (actual, expected)]
        self.rtol, self.atol = tolerances_of(*kinds, rtol=rtol, atol=atol, id=id)
        self.equal_nan, self.check_dtype = equal_nan, check_dtype

    @property
    def _supported_types(self) -> tuple[type, ...]:
        return *self._NUMBER_TYPES, np.number

    def _process_inputs(self, actual: Any, expected: Any, *, id: tuple[Any, ...]) -> tuple[Any, Any]:
        self._check_inputs_isinstance(actual, expected, cls=self._supported_types)
        return self._to_number(actual, id=id), self._to_number(expected, id=id)

    def _to_number(self, number_like: Any, *, id: tuple[Any, ...]) -> Any:
        if isinstance(number_like, np.number):
            return number_like.item()
        if not isinstance(number_like, self._NUMBER_TYPES):
            raise ErrorMeta(TypeError, f"Unknown number type {type(number_like)}.", id=id)
        return number_like

    def compare(self) -> None:
        """Raise `ErrorMeta` unless the numbers are close."""
        a, b = self.actual, self.expected
        if self.check_dtype and type(a) is not type(b):
            self._fail(AssertionError, f"The (d)types do not match: {type(a)} != {type(b)}.")
        if a == b or (self.equal_nan and cmath.isnan(a) and cmath.isnan(b)):
            return
        difference = abs(a - b)
        if not (cmath.isfinite(difference) and difference <= self.atol + self.rtol * abs(b)):
            self._fail(AssertionError, scalar_message(a, b, self.rtol, self.atol))

    def extra_repr(self) -> Sequence[str]:
        """The names of the options."""
        return "rtol", "atol", "equal_nan", "check_dtype"


class TensorLikePair(Pair):
    """Tensors, and arguments of `as_tensor`, one of whose classes is derived from the other.

    Args:
        actual, expected, id: as for `Pair`.
        allow_subclasses: allow different classes if one is a subclass of the other.
        rtol: relative tolerance; requires `atol`. Default: the larger one of the two dtypes.
        atol: absolute tolerance; requires `rtol`. Default: the larger one of the two dtypes.
        equal_nan: NaN equals NaN.
        check_device, check_dtype, check_layout, check_stride: what must be the same.

    >>> import flambeau as torch
    >>> TensorLikePair(torch.ones(2), torch.ones(2), equal_nan=True).compare()
    """

    def __init__(self, actual: Any, expected: Any, *, id: tuple[Any, ...] = (), allow_subclasses: bool = True,
                 rtol: float | None = None, atol: float | None = None, equal_nan: bool = False,
                 check_device: bool = True, check_dtype: bool = True, check_layout: bool = True,
                 check_stride: bool = False, **other_parameters: Any) -> None:
        actual, expected = self._process_inputs(actual, expected, id=id, allow_subclasses=allow_subclasses)
        super().__init__(actual, expected, id=id, **other_parameters)
        self.rtol, self.atol = tolerances_of(actual, expected, rtol=rtol, atol=atol, id=id)
        self.equal_nan, self.check_device, self.check_dtype = equal_nan, check_device, check_dtype
        self.check_layout, self.check_stride = check_layout, check_stride

    def _process_inputs(self, actual: Any, expected: Any, *, id: tuple[Any, ...],
                        allow_subclasses: bool) -> tuple[Tensor, Tensor]:
        related = isinstance(actual, type(expected)) or isinstance(expected, type(actual))
        if not related or (not allow_subclasses and type(actual) is not type(expected)):
            self._inputs_not_supported()
        a, b = self._to_tensor(actual), self._to_tensor(expected)
        for tensor in (a, b):
            self._check_supported(tensor, id=id)
        return a, b

    def _to_tensor(self, tensor_like: Any) -> Tensor:
        if isinstance(tensor_like, Tensor):
            return tensor_like
        try:
            result: Tensor = fn.as_tensor(tensor_like)
        except Exception:
            self._inputs_not_supported()
        return result

    def _check_supported(self, tensor: Tensor, *, id: tuple[Any, ...]) -> None:
        """A hook of derived classes; all layouts are compared."""

    def compare(self) -> None:
        """Raise `ErrorMeta` unless the tensors are close and their attributes are the same."""
        actual, expected = self.actual, self.expected
        self._compare_attributes(actual, expected)
        if actual.is_meta or expected.is_meta:
            return
        self._compare_values(*self._equalize_attributes(actual, expected))

    def _closeness(self) -> Closeness:
        return Closeness(True, self.rtol, self.atol, self.equal_nan, self.check_device, self.check_dtype,
                         self.check_layout, self.check_stride)

    def _compare_attributes(self, actual: Tensor, expected: Tensor) -> None:
        with self._mismatches():
            compare_attributes(actual, expected, self.id, self._closeness())

    def _equalize_attributes(self, actual: Tensor, expected: Tensor) -> tuple[Tensor, Tensor]:
        return equalized(actual, expected)

    def _compare_values(self, actual: Tensor, expected: Tensor) -> None:
        if has_sparse((actual, expected)):
            with self._mismatches():
                compare_sparse(actual, expected, self.id, self.equal_nan, self.rtol, self.atol)
        else:
            self._compare_regular_values_close(actual, expected, rtol=self.rtol, atol=self.atol,
                                               equal_nan=self.equal_nan)

    def _compare_regular_values_equal(self, actual: Tensor, expected: Tensor, *, equal_nan: bool = False,
                                      identifier: Message = None) -> None:
        self._compare_regular_values_close(actual, expected, rtol=0, atol=0, equal_nan=equal_nan,
                                           identifier=identifier)

    def _compare_regular_values_close(self, actual: Tensor, expected: Tensor, *, rtol: float, atol: float,
                                      equal_nan: bool, identifier: Message = None) -> None:
        subject = identifier("Tensor-likes" if actual.dim() else "Scalars") if callable(identifier) else identifier
        with self._mismatches():
            compare_dense(actual, expected, self.id, equal_nan, rtol, atol, subject)

    def extra_repr(self) -> Sequence[str]:
        """The names of the options."""
        return "rtol", "atol", "equal_nan", "check_device", "check_dtype", "check_layout", "check_stride"


def originate_pairs(actual: Any, expected: Any, *, pair_types: Sequence[type[Pair]],
                    sequence_types: tuple[type, ...] = (Sequence,), mapping_types: tuple[type, ...] = (Mapping,),
                    id: tuple[Any, ...] = (), **options: Any) -> list[Pair]:
    """The pairs of the values in two containers of one structure.

    Args:
        actual: the value or container.
        expected: what it should be.
        pair_types: classes of pairs; the first one that supports two values is taken.
        sequence_types: classes whose elements are compared.
        mapping_types: classes whose values are compared, key by key.
        id: indices and keys of the containers in others.
        options: options of the pairs.

    Raises:
        ErrorMeta: the structures differ, or no class supports two values.

    >>> [pair.id for pair in originate_pairs({"a": [1, 2]}, {"a": [1, 3]}, pair_types=(NumberPair,))]
    [('a', 0), ('a', 1)]
    """
    def inner(key: Any) -> list[Pair]:
        return originate_pairs(actual[key], expected[key], pair_types=pair_types, sequence_types=sequence_types,
                               mapping_types=mapping_types, id=(*id, key), **options)

    if all(isinstance(x, sequence_types) and not isinstance(x, str) for x in (actual, expected)):
        if len(actual) != len(expected):
            raise ErrorMeta(AssertionError,
                            f"The length of the sequences mismatch: {len(actual)} != {len(expected)}", id=id)
        return [pair for index in range(len(actual)) for pair in inner(index)]
    if isinstance(actual, mapping_types) and isinstance(expected, mapping_types):
        return [pair for key in _common_keys(actual, expected, id) for pair in inner(key)]
    return [_new_pair(actual, expected, pair_types, id, options)]


def _common_keys(actual: Any, expected: Any, id: tuple[Any, ...]) -> list[Any]:
    here, there = set(actual.keys()), set(expected.keys())
    if here != there:
        raise ErrorMeta(AssertionError, "The keys of the mappings do not match:\n"
                        f"Missing keys in the actual mapping: {sorted(there - here)}\n"
                        f"Additional keys in the actual mapping: {sorted(here - there)}", id=id)
    keys = list(here)
    with contextlib.suppress(Exception):  # keys without an order are compared in that of the set
        keys.sort()
    return keys


def _new_pair(actual: Any, expected: Any, pair_types: Sequence[type[Pair]], id: tuple[Any, ...],
              options: dict[str, Any]) -> Pair:
    for pair_type in pair_types:
        try:
            return pair_type(actual, expected, id=id, **options)
        except UnsupportedInputs:
            continue
        except ErrorMeta:
            raise
        except Exception as error:
            raise RuntimeError(f"Originating a {pair_type.__name__}() at item {item_path(id)} with\n\n"
                               f"{type(actual).__name__}(): {actual}\n\nand\n\n"
                               f"{type(expected).__name__}(): {expected}\n\n"
                               "resulted in the unexpected exception above.") from error
    raise ErrorMeta(TypeError, "No comparison pair was able to handle inputs of type "
                    f"{type(actual)} and {type(expected)}.", id=id)


def not_close_error_metas(actual: Any, expected: Any, *, pair_types: Sequence[type[Pair]] = (ObjectPair,),
                          sequence_types: tuple[type, ...] = (Sequence,),
                          mapping_types: tuple[type, ...] = (Mapping,), **options: Any) -> list[ErrorMeta]:
    """What differs in two containers of one structure: an error for each pair.

    Args:
        actual, expected, pair_types, sequence_types, mapping_types, options: as for `originate_pairs`.

    Raises:
        AssertionError: the structures differ.
        TypeError: no class supports two values.

    >>> [error.msg for error in not_close_error_metas([1, 2, 3], [1, 0, 0])]
    ['2 != 0', '3 != 0']
    """
    __tracebackhide__ = True
    try:
        pairs = originate_pairs(actual, expected, pair_types=pair_types, sequence_types=sequence_types,
                                mapping_types=mapping_types, **options)
    except ErrorMeta as error:
        raise error.to_error() from None
    errors = []
    for pair in pairs:
        try:
            pair.compare()
        except ErrorMeta as error:
            errors.append(error)
        except Exception as error:
            raise RuntimeError(f"Comparing\n\n{pair}\n\nresulted in the unexpected exception above.") from error
    return errors


__all__ = ["BooleanPair", "ErrorMeta", "NonePair", "NumberPair", "ObjectPair", "Pair", "TensorLikePair",
           "UnsupportedInputs", "not_close_error_metas", "originate_pairs", "tolerances_of"]
