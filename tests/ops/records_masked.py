"""Records of reductions and normalizations under masks."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from tests.ops.spec import Make, Sample, record, sample


def masks(make: Make) -> Any:
    return make.module.tensor([[True, False, True, True], [True, True, False, True], [False, True, True, True]])


def samples(dim: Any, **kwargs: Any) -> Callable[[Make], Iterable[Sample]]:
    def made(make: Make) -> Iterable[Sample]:
        yield sample(make.apart(3, 4), dim=dim, mask=masks(make), **kwargs)
        yield sample(make.apart(3, 4), dim=1, mask=masks(make)[0], **kwargs)
        yield sample(make.apart(3, 4), dim=0, **kwargs)
    return made


def over_selected(function: Callable[..., Any]) -> Callable[..., Any]:
    """A reduction of the selected elements of each row or column, by NumPy's function of a vector."""
    def reference(x: Any, dim: Any = None, mask: Any = None, **kwargs: Any) -> Any:
        mask = np.broadcast_to(True if mask is None else mask, x.shape)
        if dim is None:
            return function(x[mask])
        x, mask = (np.moveaxis(a, dim, -1) for a in (x, mask))
        return np.array([function(row[chosen]) for row, chosen in zip(x, mask, strict=True)])
    return reference


for _name, _function in (("sum", np.sum), ("prod", np.prod), ("amax", np.max), ("amin", np.min), ("mean", np.mean),
                         ("logsumexp", lambda v: np.log(np.exp(v).sum())), ("norm", np.linalg.norm),
                         ("var", lambda v: np.var(v, ddof=1)), ("std", lambda v: np.std(v, ddof=1))):
    record(f"masked.{_name}", samples(None), reference=over_selected(_function))
record("masked.median", samples(1), reference=over_selected(lambda v: np.sort(v)[(len(v) - 1) // 2]))
record("masked.argmax", samples(1), differentiable=False)
record("masked.argmin", samples(1), differentiable=False)
for _name in ("cumsum", "cumprod", "softmax", "softmin"):
    record(f"masked.{_name}", samples(1))
record("masked.log_softmax", lambda make: [sample(make(3, 4), dim=1, mask=masks(make) | True)])
record("masked.normalize", samples(1, ord=2.0))
record("masked.logaddexp", lambda make: [sample(make(3, 4), make(3, 4), input_mask=masks(make))], twice=False)
