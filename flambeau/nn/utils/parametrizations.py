"""Parametrizations of weights: orthogonal, by weight norm, by spectral norm."""

from __future__ import annotations

from enum import Enum, auto
from typing import Any

from ... import dtypes
from ..._tensor import Tensor, no_grad
from ..._tensor import functions as fn
from ..functionals.distance import normalize
from ..modules.module import Module
from . import parametrize

__all__ = ["orthogonal", "spectral_norm", "weight_norm"]


# ----- orthogonal -----------------------------------------------------------------------


def _is_orthogonal(Q: Tensor) -> bool:
    identity = fn.eye(Q.size(-1), dtype=Q.dtype, device=Q.device)
    return fn.allclose(Q.mH @ Q, identity, atol=10.0 * Q.size(-2) * dtypes.finfo(Q.dtype).eps)


def _make_orthogonal(A: Tensor) -> Tensor:
    """Q of the QR decomposition of a tall matrix, with a non-negative diagonal of R."""
    X, tau = fn.geqrf(A)
    Q = fn.linalg_householder_product(X, tau)
    Q *= X.diagonal(dim1=-2, dim2=-1).sgn().unsqueeze(-2)
    return Q


class _OrthMaps(Enum):
    matrix_exp = auto()
    cayley = auto()
    householder = auto()


class _Orthogonal(Module):
    """Maps an unconstrained matrix to an orthogonal one, by skew-symmetric matrices or reflections."""

    base: Tensor

    def __init__(self, weight: Tensor, orthogonal_map: _OrthMaps, *, use_trivialization: bool = True) -> None:
        super().__init__()
        if weight.is_complex() and orthogonal_map == _OrthMaps.householder:
            raise ValueError("The householder parametrization does not support complex tensors.")
        self.shape = weight.shape
        self.orthogonal_map = orthogonal_map
        if use_trivialization:
            self.register_buffer("base", None)

    def forward(self, X: Tensor) -> Tensor:
        n, k = X.size(-2), X.size(-1)
        transposed = n < k
        if transposed:
            X = X.mT
            n, k = k, n
        if self.orthogonal_map == _OrthMaps.householder:
            A = X.tril(diagonal=-1)
            Q = fn.linalg_householder_product(A, 2.0 / (1.0 + (A * A).sum(dim=-2)))
            # the diagonal holds signs, which are not differentiated
            Q = Q * X.diagonal(dim1=-2, dim2=-1).int().unsqueeze(-2)
        else:
            X = X.tril()
            if n != k:
                X = fn.cat([X, X.new_zeros(n, n - k).expand(*X.shape[:-2], -1, -1)], dim=-1)
            A = X - X.mH
            if self.orthogonal_map == _OrthMaps.matrix_exp:
                Q = fn.matrix_exp(A)
            else:  # (I + A/2) (I - A/2)⁻¹
                identity = fn.eye(n, dtype=A.dtype, device=A.device)
                Q = fn.linalg_solve(fn.add(identity, A, alpha=-0.5), fn.add(identity, A, alpha=0.5))
            if n != k:
                Q = Q[..., :k]
        if hasattr(self, "base"):
            Q = self.base @ Q
        return Q.mT if transposed else Q

    def right_inverse(self, Q: Tensor) -> Tensor:
        """The matrix that `forward` maps to Q, made orthogonal."""
        with no_grad():
            if Q.shape != self.shape:
                raise ValueError(f"Expected a matrix or batch of matrices of shape {self.shape}. "
                                 f"Got a tensor of shape {Q.shape}.")
            given = Q
            transposed = Q.size(-2) < Q.size(-1)
            if transposed:
                Q = Q.mT
            n, k = Q.size(-2), Q.size(-1)
            if hasattr(self, "base"):
                if n != k:
                    noise = fn.randn(*Q.size()[:-2], n, n - k, dtype=Q.dtype, device=Q.device)
                    Q = _make_orthogonal(fn.cat([Q, noise], dim=-1))
                else:
                    Q = Q.clone() if _is_orthogonal(Q) else _make_orthogonal(Q)
                self.base = Q
                negative = fn.zeros_like(given)  # reflections of zeros with signs -1 are the identity
                negative.diagonal(dim1=-2, dim2=-1).fill_(-1.0)
                return negative
            if self.orthogonal_map != _OrthMaps.householder:
                raise NotImplementedError("It is not possible to assign to the matrix exponential "
                                          "or the Cayley parametrizations when use_trivialization=False.")
            A, tau = fn.geqrf(Q)
            A.diagonal(dim1=-2, dim2=-1).sign_()
            A.diagonal(dim1=-2, dim2=-1)[tau == 0.0] *= -1  # LAPACK returns exact zeros for absent reflections
            return A.mT if transposed else A


def _weight_of(module: Any, name: str) -> Tensor:
    weight = getattr(module, name, None)
    if not isinstance(weight, Tensor):
        raise ValueError(f"Module '{module}' has no parameter or buffer with name '{name}'")
    return weight


def orthogonal(module: Module, name: str = "weight", orthogonal_map: str | None = None, *,
               use_trivialization: bool = True) -> Module:
    """Parametrize a matrix, or a batch of matrices, as orthogonal (unitary if complex).

    Args:
        module: the module, which is changed and returned.
        name: name of the parameter or buffer.
        orthogonal_map: "matrix_exp", "cayley" or "householder"; default "matrix_exp" for square or complex matrices,
            else "householder".
        use_trivialization: parametrize relative to the initial value.

    Raises:
        ValueError: there is no such tensor, it is not a matrix, or the map is unknown.

    >>> import flambeau as torch
    >>> layer = torch.nn.utils.parametrizations.orthogonal(torch.nn.Linear(3, 3))
    >>> torch.allclose(layer.weight @ layer.weight.T, torch.eye(3), atol=1e-5)
    True
    """
    weight = _weight_of(module, name)
    if weight.ndim < 2:
        raise ValueError(f"Expected a matrix or batch of matrices. Got a tensor of {weight.ndim} dimensions.")
    if orthogonal_map is None:
        square = weight.size(-2) == weight.size(-1)
        orthogonal_map = "matrix_exp" if square or weight.is_complex() else "householder"
    chosen = getattr(_OrthMaps, orthogonal_map, None)
    if chosen is None:
        raise ValueError('orthogonal_map has to be one of "matrix_exp", "cayley", "householder". '
                         f"Got: {orthogonal_map}")
    made = _Orthogonal(weight, chosen, use_trivialization=use_trivialization)
    return parametrize.register_parametrization(module, name, made, unsafe=True)


# ----- weight norm ----------------------------------------------------------------------


class _WeightNorm(Module):
    """w = g · v / ‖v‖."""

    def __init__(self, dim: int | None = 0) -> None:
        super().__init__()
        self.dim = -1 if dim is None else dim

    def forward(self, weight_g: Tensor, weight_v: Tensor) -> Tensor:
        return fn._weight_norm(weight_v, weight_g, self.dim)

    def right_inverse(self, weight: Tensor) -> tuple[Tensor, Tensor]:
        """g and v of a weight."""
        return fn.norm_except_dim(weight, 2, self.dim), weight


def weight_norm(module: Module, name: str = "weight", dim: int | None = 0) -> Module:
    """Parametrize a weight by magnitude and direction: w = g · v / ‖v‖; g is `original0`, v is `original1`.

    Args:
        module: the module, which is changed and returned.
        name: name of the parameter.
        dim: the dimension of separate norms; None for one norm of the entire tensor.

    >>> import flambeau as torch
    >>> layer = torch.nn.utils.parametrizations.weight_norm(torch.nn.Linear(2, 3))
    >>> layer.parametrizations.weight.original0.shape
    flambeau.Size([3, 1])
    """
    parametrize.register_parametrization(module, name, _WeightNorm(dim), unsafe=True)

    def rename_keys_of_hooks(state_dict: Any, prefix: str, *args: Any) -> None:
        """Accept state dicts of `nn.utils.weight_norm`."""
        old = [f"{prefix}{name}_g", f"{prefix}{name}_v"]
        if all(key in state_dict for key in old):
            values = [state_dict.pop(key) for key in old]
            for i, value in enumerate(values):
                state_dict[f"{prefix}parametrizations.{name}.original{i}"] = value

    module._register_load_state_dict_pre_hook(rename_keys_of_hooks)
    return module


# ----- spectral norm --------------------------------------------------------------------


class _SpectralNorm(Module):
    """W / σ(W), with σ estimated by power iteration; a vector is divided by its norm."""

    _u: Tensor
    _v: Tensor

    def __init__(self, weight: Tensor, n_power_iterations: int = 1, dim: int = 0, eps: float = 1e-12) -> None:
        super().__init__()
        ndim = weight.ndim
        if dim >= ndim or dim < -ndim:
            raise IndexError(f"Dimension out of range (expected to be in range of [-{ndim}, {ndim - 1}] but got {dim})")
        if n_power_iterations <= 0:
            raise ValueError("Expected n_power_iterations to be positive, but "
                             f"got n_power_iterations={n_power_iterations}")
        self.dim = dim if dim >= 0 else dim + ndim
        self.eps = eps
        if ndim > 1:
            self.n_power_iterations = n_power_iterations
            matrix = self._reshape_weight_to_matrix(weight)
            height, width = matrix.size()
            u = matrix.new_empty(height).normal_(0, 1)
            v = matrix.new_empty(width).normal_(0, 1)
            self.register_buffer("_u", normalize(u, dim=0, eps=eps))
            self.register_buffer("_v", normalize(v, dim=0, eps=eps))
            self._power_method(matrix, 15)

    def _reshape_weight_to_matrix(self, weight: Tensor) -> Tensor:
        if weight.ndim <= 1:
            raise AssertionError(f"Expected weight to have more than 1 dimension, got {weight.ndim}")
        if self.dim != 0:
            weight = weight.permute(self.dim, *(d for d in range(weight.dim()) if d != self.dim))
        return weight.flatten(1)

    def _power_method(self, matrix: Tensor, n_power_iterations: int) -> None:
        """Update u and v in place; `forward` clones them for the graph."""
        with no_grad():
            for _ in range(n_power_iterations):
                self._u = normalize(fn.mv(matrix, self._v), dim=0, eps=self.eps, out=self._u)
                self._v = normalize(fn.mv(matrix.H, self._u), dim=0, eps=self.eps, out=self._v)

    def forward(self, weight: Tensor) -> Tensor:
        if weight.ndim == 1:
            return normalize(weight, dim=0, eps=self.eps)
        matrix = self._reshape_weight_to_matrix(weight)
        if self.training:
            self._power_method(matrix, self.n_power_iterations)
        u, v = self._u.clone(), self._v.clone()
        return weight / fn.vdot(u, fn.mv(matrix, v))

    def right_inverse(self, value: Tensor) -> Tensor:
        """The value itself."""
        return value


def spectral_norm(module: Module, name: str = "weight", n_power_iterations: int = 1, eps: float = 1e-12,
                  dim: int | None = None) -> Module:
    """Parametrize a weight as W / σ(W), with the largest singular value σ estimated by power iteration.

    Args:
        module: the module, which is changed and returned.
        name: name of the parameter or buffer.
        n_power_iterations: iterations per access in training mode.
        eps: added to norms.
        dim: the dimension of the rows of the matrix; default 0, or 1 for transposed convolutions.

    Raises:
        ValueError: there is no such tensor, or `n_power_iterations` is not positive.

    >>> import flambeau as torch
    >>> _ = torch.manual_seed(0)
    >>> layer = torch.nn.utils.parametrizations.spectral_norm(torch.nn.Linear(2, 3))
    >>> torch.allclose(torch.linalg.norm(layer.weight, 2), torch.tensor(1.), atol=1e-3)
    True
    """
    weight = _weight_of(module, name)
    if dim is None:
        dim = 1 if getattr(module, "transposed", False) else 0
    made = _SpectralNorm(weight, n_power_iterations, dim, eps)
    return parametrize.register_parametrization(module, name, made)
