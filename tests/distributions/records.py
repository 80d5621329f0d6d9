"""One record for each distribution: parameters as nested lists, and values for densities and distribution functions."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any


@dataclass
class Record:
    """A distribution to construct on both sides.

    Attributes:
        name: the class in `torch.distributions`.
        params: keyword arguments; a list becomes a tensor that requires grad, a function is called with the library.
        values: where `log_prob` is compared, lists that broadcast with the batch.
        fixed: parameters that do not require grad.
        invalid: parameters for which construction fails.
        tolerance: the relative difference of float32 results.
    """

    name: str
    params: dict[str, Any]
    values: Any
    fixed: tuple[str, ...] = ()
    invalid: tuple[dict[str, Any], ...] = ()
    tolerance: float = 2e-6
    case: str = field(default="")

    def __str__(self) -> str:
        return f"{self.name}{self.case}"


def _mixture(torch: Any) -> Any:
    return torch.distributions.Normal(torch.tensor([-1., 0.5, 2.]), torch.tensor([0.5, 1., 2.]))


def _categorical(torch: Any) -> Any:
    return torch.distributions.Categorical(torch.tensor([0.2, 0.3, 0.5]))


def _multivariate_components(torch: Any) -> Any:
    return torch.distributions.MultivariateNormal(
        torch.tensor([[0., 1.], [2., -1.], [0.5, 0.5]]), torch.eye(2).expand(3, 2, 2))


def _normals(torch: Any) -> Any:
    return torch.distributions.Normal(torch.tensor([[0., 1., 2.], [3., 4., 5.]]), torch.ones(2, 3))


_COVARIANCE = [[2., 0.5, 0.3], [0.5, 1., -0.2], [0.3, -0.2, 1.5]]
_FACTOR = [[1.2, 0., 0.], [0.3, 0.8, 0.], [-0.4, 0.1, 1.1]]
_UNIT = [[0.1], [0.5], [0.9]]
_REAL = [[-2.5], [0.], [0.7]]
_POSITIVE = [[0.05], [1.], [7.5]]
_COUNTS = [[0.], [1.], [5.]]
_BAD_SCALE = ({"loc": [0.], "scale": [-1.]}, {"loc": [float("nan")], "scale": [1.]})

RECORDS = [
    Record("Bernoulli", {"probs": [0.7, 0.2, 0.4]}, [[0.], [1.]], invalid=({"probs": [1.5]}, {})),
    Record("Bernoulli", {"logits": [0.3, -2., 0.]}, [[0.], [1.]], case="-logits"),
    Record("Bernoulli", {"probs": 0.3}, [0., 1.], case="-scalar"),
    Record("Beta", {"concentration1": [0.3, 1.5, 8., 30.], "concentration0": [0.5, 2.5, 9., 50.]}, _UNIT,
           tolerance=5e-5, invalid=({"concentration1": [0.], "concentration0": [1.]},)),
    Record("Beta", {"concentration1": 2.5, "concentration0": 1.5}, [0.1, 0.9], case="-scalar"),
    Record("Binomial", {"total_count": 12, "probs": [0.7, 0.2, 0.]}, _COUNTS, invalid=({"probs": [-0.1]},)),
    Record("Binomial", {"total_count": [100., 12., 1000.], "logits": [0.5, -1., 2.]}, _COUNTS,
           fixed=("total_count",), case="-logits"),
    Record("Categorical", {"probs": [[0.1, 0.2, 0.7], [1., 0., 3.]]}, [0, 2], invalid=({"probs": 1.}, {})),
    Record("Categorical", {"logits": [0.3, -1., 2.]}, [0, 1, 2], case="-logits"),
    Record("Cauchy", {"loc": [0., 1.5], "scale": [1., 0.3]}, _REAL, invalid=_BAD_SCALE),
    Record("Chi2", {"df": [0.5, 3., 25.]}, _POSITIVE, invalid=({"df": [-1.]},)),
    Record("ContinuousBernoulli", {"probs": [0.7, 0.2, 0.5]}, _UNIT, tolerance=1e-5,
           invalid=({"validate_args": True, "probs": [2.]},)),
    Record("ContinuousBernoulli", {"logits": [0.3, -2., 0.]}, _UNIT, case="-logits", tolerance=1e-5),
    Record("Dirichlet", {"concentration": [[0.3, 1.5, 8.], [2., 3., 0.5]]}, [0.2, 0.5, 0.3],
           invalid=({"concentration": [-1., 1.]}, {"concentration": 1.})),
    Record("Exponential", {"rate": [0.5, 3.]}, _POSITIVE, invalid=({"rate": [0.]},)),
    Record("FisherSnedecor", {"df1": [0.5, 3., 8.], "df2": [2.5, 5., 1.]}, _POSITIVE, tolerance=1e-5,
           invalid=({"df1": [0.], "df2": [1.]},)),
    Record("Gamma", {"concentration": [0.3, 1.5, 20.], "rate": [1., 2., 0.5]}, _POSITIVE,
           invalid=({"concentration": [0.], "rate": [1.]},)),
    Record("GeneralizedPareto", {"loc": [0., 0.5, -3.], "scale": [1., 2., 3.], "concentration": [0., 0.3, 0.7]},
           [[1.], [2.5]], invalid=({"loc": [0.], "scale": [0.], "concentration": [1.]},)),
    Record("Geometric", {"probs": [0.7, 0.2, 1.]}, _COUNTS, invalid=({"probs": [0.]}, {"probs": [-1.]})),
    Record("Geometric", {"logits": [0.3, -2., 0.]}, _COUNTS, case="-logits"),
    Record("Gumbel", {"loc": [0., 1.5], "scale": [1., 0.3]}, _REAL, invalid=_BAD_SCALE),
    Record("HalfCauchy", {"scale": [1., 0.3]}, _POSITIVE, invalid=({"scale": [-1.]},)),
    Record("HalfNormal", {"scale": [1., 0.3]}, _POSITIVE, invalid=({"scale": [-1.]},)),
    Record("Independent", {"base_distribution": _normals, "reinterpreted_batch_ndims": 1}, [0., 1., -1.],
           invalid=({"base_distribution": _normals, "reinterpreted_batch_ndims": 3},)),
    Record("InverseGamma", {"concentration": [0.3, 1.5, 20.], "rate": [1., 2., 0.5]}, _POSITIVE, tolerance=1e-5,
           invalid=({"concentration": [0.], "rate": [1.]},)),
    Record("Kumaraswamy", {"concentration1": [0.7, 1.5, 8.], "concentration0": [0.5, 2.5, 9.]}, _UNIT, tolerance=2e-5,
           invalid=({"concentration1": [0.], "concentration0": [1.]},)),
    Record("LKJCholesky", {"dim": 3, "concentration": [0.5, 1., 2.5]},
           [[1., 0., 0.], [0.6, 0.8, 0.], [0., 0.6, 0.8]], tolerance=1e-4,
           invalid=({"dim": 1}, {"dim": 2, "concentration": [0.]})),
    Record("Laplace", {"loc": [0., 1.5], "scale": [1., 0.3]}, _REAL, invalid=_BAD_SCALE),
    Record("LogNormal", {"loc": [0., 1.5], "scale": [1., 0.3]}, _POSITIVE, invalid=_BAD_SCALE),
    Record("LogisticNormal", {"loc": [[0., 1.5], [0.5, -1.]], "scale": [1., 0.3]}, [0.2, 0.5, 0.3], tolerance=1e-5),
    Record("LowRankMultivariateNormal",
           {"loc": [0., 1., -1.], "cov_factor": [[1., 0.], [0.5, 1.], [0., -1.]], "cov_diag": [0.5, 1., 2.]},
           [[0., 0., 0.], [1., -1., 2.]], tolerance=1e-5,
           invalid=({"loc": [0., 1.], "cov_factor": [[1.]], "cov_diag": [1., 1.]},)),
    Record("MixtureSameFamily", {"mixture_distribution": _categorical, "component_distribution": _mixture},
           [-1., 0., 3.], tolerance=1e-5, invalid=({"mixture_distribution": _mixture,
                                                    "component_distribution": _mixture},)),
    Record("MixtureSameFamily", {"mixture_distribution": _categorical,
                                 "component_distribution": _multivariate_components},
           [[-1., 0.], [1., 3.]], tolerance=1e-5, case="-multivariate"),
    Record("Multinomial", {"total_count": 6, "probs": [[0.1, 0.2, 0.7], [1., 0., 3.]]}, [[2., 0., 4.]],
           invalid=({"total_count": [6.], "probs": [1., 1.]},), tolerance=1e-5),
    Record("MultivariateNormal", {"loc": [0., 1., -1.], "covariance_matrix": _COVARIANCE},
           [[0., 0., 0.], [1., -1., 2.]], tolerance=1e-5,
           invalid=({"loc": [0., 0.], "covariance_matrix": [[1., 2.], [2., 1.]]}, {"loc": [0.]}, {"loc": 0.})),
    Record("MultivariateNormal", {"loc": [[0., 1., -1.], [2., 2., 2.]], "scale_tril": _FACTOR},
           [[0., 0., 0.], [1., -1., 2.]], tolerance=1e-5, case="-scale_tril"),
    Record("MultivariateNormal", {"loc": [0., 1., -1.], "precision_matrix": [_COVARIANCE, _COVARIANCE]},
           [[0., 0., 0.], [1., -1., 2.]], tolerance=1e-5, case="-precision_matrix"),
    Record("NegativeBinomial", {"total_count": [3., 0.5, 20.], "probs": [0.7, 0.2, 0.4]}, _COUNTS,
           fixed=("total_count",), tolerance=1e-5, invalid=({"total_count": [1.], "probs": [1.]},)),
    Record("NegativeBinomial", {"total_count": 5, "logits": [0.3, -2., 0.]}, _COUNTS, case="-logits", tolerance=1e-5),
    Record("Normal", {"loc": [0., 1.5], "scale": [1., 0.3]}, _REAL, invalid=_BAD_SCALE),
    Record("Normal", {"loc": 0., "scale": 2}, [-1., 1.], case="-scalar"),
    Record("OneHotCategorical", {"probs": [[0.1, 0.2, 0.7], [1., 0., 3.]]}, [[0., 0., 1.]], invalid=({},)),
    Record("OneHotCategoricalStraightThrough", {"logits": [0.1, 0.2, 0.7]}, [[0., 0., 1.]]),
    Record("Pareto", {"scale": [0.01, 0.03, 0.02], "alpha": [0.5, 1.5, 3.]}, [[0.05], [1.]],
           invalid=({"scale": [0.], "alpha": [1.]},), tolerance=1e-5),
    Record("Poisson", {"rate": [0.3, 4., 50.]}, _COUNTS, invalid=({"rate": [-1.]},)),
    Record("RelaxedBernoulli", {"temperature": [0.7], "probs": [0.7, 0.2, 0.4]}, _UNIT, tolerance=1e-5,
           invalid=({"temperature": [1.], "probs": [2.]},)),
    Record("RelaxedOneHotCategorical", {"temperature": [0.7], "logits": [[0.1, 0.2, 0.7], [1., 0., 3.]]},
           [0.2, 0.5, 0.3], tolerance=1e-5),
    Record("StudentT", {"df": [0.5, 1.5, 25.], "loc": [0., 1., 2.], "scale": [1., 0.5, 2.]}, _REAL, tolerance=1e-5,
           invalid=({"df": [-1.]},)),
    Record("Uniform", {"low": [0., -1.], "high": [1., 4.]}, _UNIT,
           invalid=({"low": [1.], "high": [0.]}, {"low": [float("nan")], "high": [0.]})),
    Record("VonMises", {"loc": [0., 1., -2.], "concentration": [0.3, 4., 50.]}, _REAL, tolerance=1e-5,
           invalid=({"loc": [0.], "concentration": [0.]},)),
    Record("Weibull", {"scale": [1., 0.3], "concentration": [0.5, 2.]}, _POSITIVE, tolerance=1e-5,
           invalid=({"scale": [0.], "concentration": [1.]},)),
    Record("Wishart", {"df": [4., 5.], "covariance_matrix": _COVARIANCE}, _COVARIANCE, tolerance=2e-5,
           invalid=({"df": [1.], "covariance_matrix": _COVARIANCE}, {"df": [4.]})),
    Record("Wishart", {"df": 4.5, "scale_tril": _FACTOR}, _COVARIANCE, tolerance=2e-5, case="-scale_tril"),
]


def build(torch: Any, name: str, params: dict[str, Any], fixed: tuple[str, ...] = (), dtype: str = "float32",
          **options: Any) -> tuple[Any, list[Any]]:
    """The distribution, and its parameters that require grad."""
    leaves, arguments = [], {}
    for key, given in params.items():
        if isinstance(given, list) or (name in ("Categorical", "Dirichlet") and isinstance(given, float)):
            tensor = torch.tensor(given, dtype=getattr(torch, dtype))
            if key not in fixed:
                tensor.requires_grad_()
                leaves.append(tensor)
            arguments[key] = tensor
        elif callable(given):
            arguments[key] = given(torch)
        elif key == "loc" and name.endswith("MultivariateNormal"):
            arguments[key] = torch.tensor(given)
        else:
            arguments[key] = given
    return getattr(torch.distributions, name)(**arguments, **options), leaves
