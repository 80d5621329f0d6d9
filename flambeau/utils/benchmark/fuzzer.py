"""`Fuzzer`: draws sizes, and tensors of these sizes and of random layouts, as arguments of a benchmark."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import chain
from typing import Any

import numpy as np

from ... import dtypes
from ..._tensor import functions as fn
from ..._tensor.creation.generators import manual_seed
from ..._tensor.sparse.constructors import sparse_coo_tensor
from ...shapes import Size


class FuzzedParameter:
    """A number, or another value, that is drawn.

    Args:
        name: the name, for sizes of tensors and constraints.
        minval, maxval: the bounds, both included.
        distribution: "uniform", of ints if both bounds are ints; "loguniform"; or values -> probabilities.
        strict: keep the value while others are drawn again, because the values were refused.

    Raises:
        AssertionError: no such distribution.

    >>> import numpy as np
    >>> from flambeau.utils.benchmark import FuzzedParameter
    >>> FuzzedParameter("n", 3, 3, "uniform").sample(np.random.RandomState(0))
    3
    """

    def __init__(self, name: str, minval: float | None = None, maxval: float | None = None,
                 distribution: str | dict[Any, float] | None = None, strict: bool = False) -> None:
        self._name, self._minval, self._maxval, self.strict = name, minval, maxval, strict
        if not isinstance(distribution, dict):
            if distribution not in ("loguniform", "uniform"):
                raise AssertionError(f"Unknown distribution: {distribution}")
        else:
            if any(probability < 0 for probability in distribution.values()):
                raise AssertionError("Probabilities cannot be negative")
            if abs(sum(distribution.values()) - 1) > 1e-5:
                raise AssertionError("Distribution is not normalized")
            for bound, value in (("minval", minval), ("maxval", maxval)):
                if value is not None:
                    raise AssertionError(f"When passing a custom distribution, '{bound}' must be None")
        self._distribution = distribution

    @property
    def name(self) -> str:
        """The name."""
        return self._name

    def sample(self, state: np.random.RandomState) -> Any:
        """Draw a value."""
        low, high = self._minval, self._maxval
        if isinstance(self._distribution, dict):
            index = state.choice(np.arange(len(self._distribution)), p=tuple(self._distribution.values()))
            return list(self._distribution)[index]
        assert low is not None
        assert high is not None
        if self._distribution == "loguniform":
            return min(max(int(2 ** state.uniform(low=np.log2(low), high=np.log2(high))), low), high)
        if isinstance(low, int) and isinstance(high, int):
            return int(state.randint(low=low, high=high + 1))
        return state.uniform(low=low, high=high)


class ParameterAlias:
    """A value of a parameter that stands for the value of another one.

    Args:
        alias_to: the name of the other one.

    >>> from flambeau.utils.benchmark import ParameterAlias
    >>> ParameterAlias("n")
    ParameterAlias[alias_to: n]
    """

    def __init__(self, alias_to: str) -> None:
        self.alias_to = alias_to

    def __repr__(self) -> str:
        return f"ParameterAlias[alias_to: {self.alias_to}]"


def dtype_size(dtype: dtypes.dtype) -> int:
    """The bytes of an element."""
    return dtype.itemsize


def _at_most(least: float | None, most: float | None) -> bool:
    return least is None or most is None or least <= most


class FuzzedTensor:
    """A tensor whose sizes are parameters.

    Args:
        name: the name.
        size: ints, or names of parameters.
        steps: the tensor is each such element of a larger one: ints, or names of parameters.
        probability_contiguous: how often its dimensions are in the order of memory.
        min_elements, max_elements, max_allocation_bytes: sizes outside of these are drawn again.
        dim_parameter: the parameter that is the number of dimensions; later sizes are dropped.
        roll_parameter: no effect.
        dtype: the dtype.
        cuda: whether it is on a GPU.
        tensor_constructor: makes the larger tensor: called with `size`, `dtype` and all parameters by name.

    >>> from flambeau.utils.benchmark import FuzzedTensor
    >>> FuzzedTensor("x", ("n", 3), max_elements=9).satisfies_constraints({"n": 4})
    False
    """

    def __init__(self, name: str, size: tuple[str | int, ...], steps: tuple[str | int, ...] | None = None,
                 probability_contiguous: float = 0.5, min_elements: int | None = None, max_elements: int | None = None,
                 max_allocation_bytes: int | None = None, dim_parameter: str | None = None,
                 roll_parameter: str | None = None, dtype: dtypes.dtype = dtypes.float32, cuda: bool = False,
                 tensor_constructor: Callable[..., Any] | None = None) -> None:
        self._name, self._size, self._steps = name, size, steps
        self._probability_contiguous = probability_contiguous
        self._min_elements, self._max_elements = min_elements, max_elements
        self._max_allocation_bytes, self._dim_parameter = max_allocation_bytes, dim_parameter
        self._dtype, self._cuda, self._tensor_constructor = dtype, cuda, tensor_constructor

    @property
    def name(self) -> str:
        """The name."""
        return self._name

    @staticmethod
    def default_tensor_constructor(size: tuple[int, ...], dtype: dtypes.dtype, **kwargs: Any) -> Any:
        """Random numbers: from 0 to 1, or ints from 1 to 126."""
        if dtype.is_floating_point or dtype.is_complex:
            return fn.rand(size=size, dtype=dtype)
        return fn.randint(1, 127, size=size, dtype=dtype)

    def _make_tensor(self, params: Mapping[str, Any], state: np.random.RandomState) -> tuple[Any, dict[str, Any]]:
        size, steps, allocated = self._get_size_and_steps(params)
        make = self._tensor_constructor or self.default_tensor_constructor
        whole = make(size=allocated, dtype=self._dtype, **params)
        whole = whole.cuda() if self._cuda else whole
        order = np.arange(len(size))
        if state.rand() > self._probability_contiguous:
            while len(size) > 1 and np.all(order == np.arange(len(size))):
                order = state.permutation(whole.dim())
            whole = whole.permute(tuple(order.tolist())).contiguous().permute(tuple(np.argsort(order).tolist()))
        tensor = whole[tuple([slice(0, n * step, step) for n, step in zip(size, steps, strict=True)])]
        return tensor, {"numel": int(tensor.numel()), "order": order, "steps": steps,
                        "is_contiguous": tensor.is_contiguous(), "dtype": str(self._dtype)}

    def _get_size_and_steps(self, params: Mapping[str, Any]) -> tuple[tuple[int, ...], ...]:
        dim = len(self._size) if self._dim_parameter is None else params[self._dim_parameter]

        def resolved(values: tuple[Any, ...]) -> tuple[int, ...]:
            return (*(params.get(value, value) for value in values), *(1 for _ in range(dim)))[:max(dim, 0)]

        size, steps = resolved(self._size), resolved(self._steps or ())
        return size, steps, tuple([n * step for n, step in zip(size, steps, strict=True)])

    def satisfies_constraints(self, params: Mapping[str, Any]) -> bool:
        """Whether the sizes are within the bounds."""
        size, _, allocated = self._get_size_and_steps(params)
        elements = math.prod(int(n) for n in size)
        if elements < 0:
            raise AssertionError("Computed number of elements is negative")
        allocation = math.prod((int(n) for n in allocated), start=dtype_size(self._dtype))
        return (_at_most(elements, self._max_elements) and _at_most(self._min_elements, elements)
                and _at_most(allocation, self._max_allocation_bytes))


class FuzzedSparseTensor(FuzzedTensor):
    """A sparse tensor (COO) whose sizes, number of sparse dimensions, density and coalescence are parameters.

    Args:
        name: the name.
        size: ints, or names of parameters.
        min_elements, max_elements: sizes outside of these are drawn again.
        dim_parameter: the parameter that is the number of dimensions.
        sparse_dim: the parameter that is the number of sparse dimensions; None: all are.
        nnz, density, coalesced: no effect; the parameters of the names "density" and "coalesced" are used.
        dtype: the dtype.
        cuda: whether it is on a GPU.

    >>> from flambeau.utils.benchmark import FuzzedSparseTensor
    >>> FuzzedSparseTensor("x", ("n",), min_elements=2).satisfies_constraints({"n": 4})
    True
    """

    def __init__(self, name: str, size: tuple[str | int, ...], min_elements: int | None = None,
                 max_elements: int | None = None, dim_parameter: str | None = None, sparse_dim: str | None = None,
                 nnz: str | None = None, density: str | None = None, coalesced: str | None = None,
                 dtype: dtypes.dtype = dtypes.float32, cuda: bool = False) -> None:
        super().__init__(name=name, size=size, min_elements=min_elements, max_elements=max_elements,
                         dim_parameter=dim_parameter, dtype=dtype, cuda=cuda)
        self._density, self._coalesced, self._sparse_dim = density, coalesced, sparse_dim

    @staticmethod
    def sparse_tensor_constructor(size: Any, dtype: dtypes.dtype, sparse_dim: int, nnz: int, is_coalesced: bool) -> Any:
        """A tensor with `nnz` random elements; one that is not coalesced has each index twice."""
        size = [size] * sparse_dim if isinstance(size, (int, float)) else size
        if all(n <= 0 for n in size[:sparse_dim]) and nnz != 0:
            raise AssertionError("invalid arguments")
        values = FuzzedTensor.default_tensor_constructor((nnz, *size[sparse_dim:]), dtype)
        indices = fn.rand(sparse_dim, nnz)
        indices.mul_(fn.tensor(size[:sparse_dim]).unsqueeze(1).to(indices))
        indices = indices.to(dtypes.int64)
        if not is_coalesced:
            values, indices = fn.cat([values, fn.randn_like(values)], 0), fn.cat([indices, indices], 1)
        result = sparse_coo_tensor(indices, values, Size(size))
        return result.coalesce() if is_coalesced else result

    def _make_tensor(self, params: Mapping[str, Any], state: np.random.RandomState) -> tuple[Any, dict[str, Any]]:
        size, _, _ = self._get_size_and_steps(params)
        density = params["density"]
        nnz = math.ceil(sum(size) * density)
        if nnz > sum(size):
            raise AssertionError("nnz cannot exceed total number of elements")
        sparse_dim = min(params["sparse_dim"] if self._sparse_dim else len(size), len(size))
        tensor = self.sparse_tensor_constructor(size, self._dtype, sparse_dim, nnz, params["coalesced"])
        tensor = tensor.cuda() if self._cuda else tensor
        return tensor, {
            "numel": int(tensor.numel()), "shape": tensor.size(), "is_coalesced": tensor.is_coalesced(),
            "density": density, "sparsity": 1.0 - density, "sparse_dim": tensor.sparse_dim(),
            "dense_dim": tensor.dense_dim(), "is_hybrid": len(size[tensor.sparse_dim():]) > 0,
            "dtype": str(self._dtype)}


class Fuzzer:
    """Draws parameters and makes tensors of them.

    Args:
        parameters: parameters, or lists of them.
        tensors: tensors, or lists of them.
        constraints: functions of the parameters, by name; where one is False, they are drawn again.
        seed: of the random numbers, those of the tensors included.

    Raises:
        ValueError: a parameter and a tensor have the same name.

    >>> from flambeau.utils.benchmark import FuzzedParameter, FuzzedTensor, Fuzzer
    >>> fuzzer = Fuzzer([FuzzedParameter("n", 2, 4, "uniform")], [FuzzedTensor("x", ("n", 3))], seed=0)
    >>> [tuple(tensors["x"].shape) == (params["n"], 3) for tensors, _, params in fuzzer.take(2)]
    [True, True]
    """

    def __init__(self, parameters: Iterable[Any], tensors: Iterable[Any],
                 constraints: Iterable[Callable[..., bool]] | None = None, seed: int | None = None) -> None:
        self._seed = int(np.random.RandomState().randint(0, 2**32 - 1, dtype=np.int64)) if seed is None else seed
        self._parameters: tuple[FuzzedParameter, ...] = _flat(parameters, FuzzedParameter)
        self._tensors: tuple[FuzzedTensor, ...] = _flat(tensors, FuzzedTensor)
        self._constraints = tuple(constraints or ())
        both = {each.name for each in self._parameters} & {each.name for each in self._tensors}
        if both:
            raise ValueError(f"Duplicate names in parameters and tensors: {both}")
        self._rejections = self._total_generated = 0

    def take(self, n: int) -> Iterator[tuple[dict[str, Any], dict[str, dict[str, Any]], dict[str, Any]]]:
        """Draw `n` times: tensors by name, their properties by name, and the parameters."""
        state = np.random.RandomState(self._seed)
        manual_seed(int(state.randint(low=0, high=2**63, dtype=np.int64)))
        for _ in range(n):
            params = self._generate(state)
            made = {each.name: each._make_tensor(params, state) for each in self._tensors}
            yield ({name: tensor for name, (tensor, _) in made.items()},
                   {name: properties for name, (_, properties) in made.items()}, params)

    @property
    def rejection_rate(self) -> float:
        """How many of the drawn parameters were refused."""
        return self._rejections / self._total_generated if self._total_generated else 0.0

    def _generate(self, state: np.random.RandomState) -> dict[str, Any]:
        strict: dict[str, Any] = {}
        for _ in range(1000):
            candidate: dict[str, Any] = {}
            for each in self._parameters:
                candidate[each.name] = strict[each.name] if each.name in strict else each.sample(state)
                if each.strict:
                    strict[each.name] = candidate[each.name]
            candidate = _without_aliases(candidate)
            self._total_generated += 1
            if all(allowed(candidate) for allowed in self._constraints) and all(
                    each.satisfies_constraints(candidate) for each in self._tensors):
                return candidate
            self._rejections += 1
        raise ValueError("Failed to generate a set of valid parameters.")


def _flat(values: Iterable[Any], cls: type) -> tuple[Any, ...]:
    return tuple(chain.from_iterable([each] if isinstance(each, cls) else each for each in values))


def _without_aliases(params: dict[str, Any]) -> dict[str, Any]:
    """Parameters with the values that aliases stand for.

    Raises:
        ValueError: aliases stand for each other.
    """
    for _ in range(len(params) + 1):
        if not any(isinstance(value, ParameterAlias) for value in params.values()):
            return params
        params = {name: params[value.alias_to] if isinstance(value, ParameterAlias) else value
                  for name, value in params.items()}
    raise ValueError(f"ParameterAlias cycle detected\n{params}")


__all__ = ["FuzzedParameter", "FuzzedSparseTensor", "FuzzedTensor", "Fuzzer", "ParameterAlias"]
