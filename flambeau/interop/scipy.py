"""SciPy's optimizers driven by gradients of recorded operators."""

from __future__ import annotations

import builtins
import inspect
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from .. import dtypes
from .._tensor import Tensor, functions
from ..autograd import grad as _grad
from ..engine.grad_mode import enable_grad, no_grad
from ..trees import is_container, tree_flatten, tree_unflatten

__all__ = ["minimize"]

_WITHOUT_GRADIENT = ("nelder-mead", "powell", "cobyla", "cobyqa")
_WITH_HESSIAN_PRODUCT = ("newton-cg", "trust-ncg", "trust-krylov", "trust-constr")
_WITH_HESSIAN = ("dogleg", "trust-exact")


class _Vector:
    """Tensors in a pytree as one vector of float64, SciPy's form of the variables."""

    def __init__(self, x0: Any) -> None:
        leaves, self.spec = tree_flatten(x0)
        self.leaves: list[Tensor] = []
        for leaf in leaves:
            tensor = leaf if isinstance(leaf, Tensor) else functions.as_tensor(leaf)
            if tensor.dtype.is_complex:
                raise TypeError(f"x0 has a tensor of dtype {tensor.dtype}; variables must be real")
            if not tensor.dtype.is_floating_point:
                tensor = tensor.to(dtypes.get_default_dtype())
            self.leaves.append(tensor.detach())
        self.sizes = [leaf.numel() for leaf in self.leaves]
        self.n = builtins.sum(self.sizes)

    def pack(self, tree: Any) -> np.ndarray:
        """The elements of a tree of this structure in order."""
        leaves, spec = tree_flatten(tree)
        if spec != self.spec:
            raise ValueError(f"expected tensors in the structure {self.spec}, as in x0, got {spec}")
        return self.pack_leaves(leaves)

    def pack_leaves(self, leaves: Sequence[Any]) -> np.ndarray:
        """The elements of tensors, or zeros for None, in order."""
        parts = []
        for leaf, template in zip(leaves, self.leaves, strict=True):
            if leaf is None:
                parts.append(np.zeros(template.numel()))
                continue
            array = leaf.detach() if isinstance(leaf, Tensor) else functions.as_tensor(leaf)
            if array.numel() != template.numel():
                raise ValueError(f"expected a tensor of shape {tuple(template.shape)}, got {tuple(array.shape)}")
            parts.append(array.to(dtypes.float64).reshape(-1).numpy())
        return np.concatenate(parts) if parts else np.zeros(0)

    def unpack_leaves(self, vector: np.ndarray, requires_grad: bool = False) -> list[Tensor]:
        """New tensors of the elements of a vector, with the shapes and dtypes of x0."""
        out, at = [], 0
        for template, size in zip(self.leaves, self.sizes, strict=True):
            part = functions.tensor(np.asarray(vector[at:at + size], np.float64))
            part = part.reshape(template.shape).to(template.dtype)
            out.append(part.requires_grad_() if requires_grad else part)
            at += size
        return out

    def unpack(self, vector: np.ndarray) -> Any:
        """A tree of the elements of a vector."""
        return tree_unflatten(self.unpack_leaves(vector), self.spec)


def _scalar(value: Any, what: str) -> Tensor:
    if not isinstance(value, Tensor):
        return functions.as_tensor(value)
    if value.numel() != 1:
        raise ValueError(f"{what} must return a tensor of one element, got shape {tuple(value.shape)}")
    return value.reshape(())


def _check_recorded(value: Tensor, what: str) -> None:
    if not value.requires_grad:
        raise RuntimeError(f"{what} returned a tensor that does not depend on the variables through recorded "
                           "operators; pass jac='2-point' for finite differences")


class _Objective:
    """The objective, its gradient, Hessian and Hessian-vector products, of vectors."""

    def __init__(self, fun: Callable[..., Any], args: tuple[Any, ...], variables: _Vector) -> None:
        self.fun, self.args, self.variables = fun, args, variables

    def _record(self, vector: np.ndarray) -> tuple[list[Tensor], Tensor]:
        leaves = self.variables.unpack_leaves(vector, requires_grad=True)
        with enable_grad():
            value = _scalar(self.fun(tree_unflatten(leaves, self.variables.spec), *self.args), "fun")
        _check_recorded(value, "fun")
        return leaves, value

    def value(self, vector: np.ndarray) -> float:
        with no_grad():
            value = self.fun(self.variables.unpack(vector), *self.args)
            return float(_scalar(value, "fun")) if isinstance(value, Tensor) else float(value)

    def value_and_gradient(self, vector: np.ndarray) -> tuple[float, np.ndarray]:
        leaves, value = self._record(vector)
        gradients = _grad(value, leaves, allow_unused=True)
        return float(value.detach()), self.variables.pack_leaves(gradients)

    def value_and_given_gradient(self, vector: np.ndarray) -> tuple[float, np.ndarray]:
        value, gradient = self.fun(self.variables.unpack(vector), *self.args)
        return float(_scalar(value, "fun").detach()), self.variables.pack(gradient)

    def _first_order(self, vector: np.ndarray) -> tuple[list[Tensor], list[Tensor]]:
        leaves, value = self._record(vector)
        with enable_grad():
            gradients = _grad(value, leaves, create_graph=True, materialize_grads=True)
        return leaves, list(gradients)

    def product(self, vector: np.ndarray, direction: np.ndarray) -> np.ndarray:
        leaves, gradients = self._first_order(vector)
        directions = self.variables.unpack_leaves(direction)
        recorded = [(g, d) for g, d in zip(gradients, directions, strict=True) if g.requires_grad]
        if not recorded:  # linear
            return np.zeros(self.variables.n)
        found = _grad([g for g, _ in recorded], leaves, [d for _, d in recorded], allow_unused=True)
        return self.variables.pack_leaves(found)

    def hessian(self, vector: np.ndarray) -> np.ndarray:
        leaves, gradients = self._first_order(vector)
        return _rows(functions.cat([g.reshape(-1) for g in gradients]) if gradients else None, leaves, self.variables)


def _rows(values: Tensor | None, leaves: list[Tensor], variables: _Vector) -> np.ndarray:
    """The derivatives of each element of a vector, one row each."""
    if values is None or not values.requires_grad:
        return np.zeros((0 if values is None else values.numel(), variables.n))
    out = np.empty((values.numel(), variables.n))
    for row in range(len(out)):
        found = _grad(values[row], leaves, retain_graph=True, allow_unused=True)
        out[row] = variables.pack_leaves(found)
    return out


class _Constraint:
    """A constraint function and its Jacobian, of vectors."""

    def __init__(self, fun: Callable[..., Any], variables: _Vector) -> None:
        self.fun, self.variables = fun, variables

    def value(self, vector: np.ndarray, *args: Any) -> np.ndarray:
        with no_grad():
            out = functions.as_tensor(self.fun(self.variables.unpack(vector), *args))
        return out.to(dtypes.float64).reshape(-1).numpy()

    def jacobian(self, vector: np.ndarray, *args: Any) -> np.ndarray:
        leaves = self.variables.unpack_leaves(vector, requires_grad=True)
        with enable_grad():
            values = functions.as_tensor(self.fun(tree_unflatten(leaves, self.variables.spec), *args)).reshape(-1)
        _check_recorded(values, "a constraint")
        return _rows(values, leaves, self.variables)


def _constraints(given: Any, variables: _Vector, optimize: Any) -> Any:
    """The constraints as SciPy takes them, with Jacobians."""
    single = isinstance(given, (dict, optimize.LinearConstraint, optimize.NonlinearConstraint))
    out: list[Any] = []
    for each in [given] if single else given:
        if isinstance(each, optimize.LinearConstraint):
            out.append(each)
        elif isinstance(each, optimize.NonlinearConstraint):
            wrapped = _Constraint(each.fun, variables)
            jac = _tree_function(each.jac, variables, matrix=True) if callable(each.jac) else wrapped.jacobian
            out.append(optimize.NonlinearConstraint(wrapped.value, each.lb, each.ub, jac, each.hess,
                                                    each.keep_feasible))
        else:
            wrapped = _Constraint(each["fun"], variables)
            jac = each.get("jac")
            out.append({**each, "fun": wrapped.value,
                        "jac": _tree_function(jac, variables, matrix=True) if callable(jac) else wrapped.jacobian})
    return out


def _tree_function(function: Callable[..., Any], variables: _Vector, matrix: bool = False) -> Callable[..., Any]:
    """A user's derivative, which takes x0's structure, as a function of vectors."""
    def of_vector(vector: np.ndarray, *args: Any) -> np.ndarray:
        out = function(variables.unpack(vector), *args)
        if matrix:
            return np.asarray(out.detach() if isinstance(out, Tensor) else out, np.float64)
        return variables.pack(out)

    return of_vector


def _bounds(given: Any, variables: _Vector, x0: Any, optimize: Any) -> Any:
    """Bounds as SciPy takes them: one pair for each element."""
    if given is None or isinstance(given, optimize.Bounds) or not is_container(x0):
        return given
    leaves, spec = tree_flatten(given, is_leaf=lambda x: isinstance(x, tuple) and len(x) == 2 and not any(
        is_container(each) for each in x))
    if spec != variables.spec:  # pairs in SciPy's order
        return given
    pairs: list[tuple[Any, Any]] = []
    for pair, template in zip(leaves, variables.leaves, strict=True):
        limits = []
        for limit in pair:
            if limit is None:
                limits.append([None] * template.numel())
            else:
                array = functions.as_tensor(limit, dtype=dtypes.float64)
                limits.append(functions.broadcast_to(array, template.shape).reshape(-1).tolist())
        pairs.extend(zip(*limits, strict=True))
    return pairs


def _converted(result: Any, variables: _Vector, value: bool = True) -> Any:
    """SciPy's result with tensors in x0's structure for vectors, and tensors for matrices."""
    for name in ("x", "jac", "grad"):
        found = result.get(name)
        if isinstance(found, np.ndarray) and found.shape == (variables.n,):
            result[name] = variables.unpack(found)
    for name in ("hess", "hess_inv"):
        if isinstance(result.get(name), np.ndarray):
            result[name] = functions.as_tensor(np.array(result[name]))
    if value and "fun" in result:
        kind = variables.leaves[0].dtype if variables.leaves else dtypes.get_default_dtype()
        result["fun"] = functions.tensor(float(result["fun"]), dtype=kind)
    return result


def _callback(function: Callable[..., Any], variables: _Vector) -> Callable[..., Any]:
    """A callback that is given tensors; SciPy looks at the parameter's name."""
    if list(inspect.signature(function).parameters) == ["intermediate_result"]:
        def with_result(intermediate_result: Any) -> Any:
            copied = type(intermediate_result)(intermediate_result)
            return function(intermediate_result=_converted(copied, variables))

        return with_result

    def with_variables(vector: np.ndarray, *state: Any) -> Any:
        return function(variables.unpack(vector), *state)

    return with_variables


def minimize(fun: Callable[..., Any], x0: Any, args: Any = (), method: Any = None, jac: Any = None, hess: Any = None,
             hessp: Any = None, bounds: Any = None, constraints: Any = (), tol: float | None = None,
             callback: Callable[..., Any] | None = None, options: dict[str, Any] | None = None) -> Any:
    """Minimize a scalar function of tensors with `scipy.optimize.minimize`, min over x of fun(x).

    SciPy computes in float64 on one vector; `fun` is given tensors with the shapes, dtypes and structure of `x0`.
    Gradients, Hessians and Jacobians of constraints are those of the recorded operators unless they are given.

    Args:
        fun: a function of `x` (and `args`) that returns a tensor of one element.
        x0: the first guess, a real tensor of any shape or a pytree of tensors.
        args: further arguments of `fun`, `jac`, `hess` and `hessp`.
        method: SciPy's methods; default BFGS, L-BFGS-B with bounds, SLSQP with constraints.
        jac: None: by automatic differentiation, where the method uses a gradient; True: `fun` returns value and
            gradient; a function that returns the gradient in x0's structure; "2-point", "3-point": finite differences.
        hess: None: for dogleg and trust-exact by automatic differentiation; True: that for any method with a Hessian;
            a function of `x` that returns an (n, n) matrix; SciPy's strings and update strategies.
        hessp: None: for Newton-CG, trust-ncg, trust-krylov and trust-constr by automatic differentiation unless `hess`
            is given; a function of `x` and a direction, both in x0's structure.
        bounds: `scipy.optimize.Bounds`, a pair for each element, or x0's structure of pairs (numbers, tensors, None).
        constraints: SciPy's dictionaries and objects, whose functions take `x` in x0's structure.
        tol, callback, options: as in SciPy; the callback is given tensors.

    Returns:
        scipy.optimize.OptimizeResult: `x` and `jac` in x0's structure and dtypes, `fun`, `hess`, `hess_inv` as tensors.

    Raises:
        ModuleNotFoundError: SciPy is not installed.
        ValueError: `fun` returns more than one element.
        RuntimeError: the result of `fun` has no graph.

    Source: scipy.optimize.minimize.

    >>> import flambeau as torch
    >>> from flambeau.interop.scipy import minimize
    >>> found = minimize(lambda x: ((x - torch.tensor([1., 2.])) ** 2).sum(), torch.zeros(2))
    >>> found.success, found.x.round(decimals=3)
    (True, tensor([1., 2.]))
    """
    try:
        from scipy import optimize
    except ModuleNotFoundError as error:
        raise ModuleNotFoundError(f"minimize() needs SciPy: pip install scipy ({error})", name="scipy") from error

    variables = _Vector(x0)
    arguments = args if isinstance(args, tuple) else (args,)
    objective = _Objective(fun, arguments, variables)
    if method is None:
        method = "SLSQP" if constraints else "L-BFGS-B" if bounds is not None else "BFGS"
    name = method.lower() if isinstance(method, str) else ""
    function: Callable[..., Any] = objective.value
    gradient: Any = None
    if jac is True:
        function, gradient = objective.value_and_given_gradient, True
    elif callable(jac):
        gradient = _with_arguments(_tree_function(jac, variables), arguments)
    elif isinstance(jac, str) or jac is False:
        gradient = jac
    elif name not in _WITHOUT_GRADIENT:
        function, gradient = objective.value_and_gradient, True
    hessian: Any = hess
    product: Any = None
    if callable(hess) and not isinstance(hess, optimize.HessianUpdateStrategy):
        hessian = _with_arguments(_tree_function(hess, variables, matrix=True), arguments)
    elif hess is True or (hess is None and hessp is None and name in _WITH_HESSIAN):
        hessian = objective.hessian
    if callable(hessp):
        def product(vector: np.ndarray, direction: np.ndarray) -> np.ndarray:
            return variables.pack(hessp(variables.unpack(vector), variables.unpack(direction), *arguments))
    elif hess is None and name in _WITH_HESSIAN_PRODUCT:
        product = objective.product
    result = optimize.minimize(
        function, variables.pack_leaves(variables.leaves), method=method, jac=gradient, hess=hessian, hessp=product,
        bounds=_bounds(bounds, variables, x0, optimize), constraints=_constraints(constraints, variables, optimize),
        tol=tol, callback=None if callback is None else _callback(callback, variables), options=options)
    return _converted(result, variables)


def _with_arguments(function: Callable[..., Any], arguments: tuple[Any, ...]) -> Callable[..., Any]:
    return (lambda vector: function(vector, *arguments)) if arguments else function
