"""PyTorch's CPU generator and its distributions, bit for bit: functions of an engine and sizes to NumPy arrays.

Every function returns the numbers in the order in which PyTorch draws them, and leaves the engine in the state
of PyTorch's generator, the cached second normal number included. PyTorch fills an output that is not row-major
in another order: `place` writes the stream into it.

Compared with PyTorch 2.13 for Linux on x86, where AVX2 and AVX-512 machines agree:

Bit-identical, for every dtype PyTorch supports
    `uniform`, `normal` (its float32 Box-Muller for all 2**24 uniforms), `random`, `randint`, `randperm`,
    `bernoulli`, `bernoulli_each`, `exponential`, `cauchy`, `log_normal`, `geometric`, `multinomial` (the
    order of equal candidates included), and the generator's state.
Equal in all samples tried
    `poisson`, `binomial`, `standard_gamma`, `dirichlet`. The first two accept or reject by logarithms, of which
    lgamma and the float32 log1p are not the C library's here: very rarely, a decision could differ.
Implemented from the algorithm, too large to compare
    `randperm` of 214748364 numbers and more, where PyTorch uses another shuffle.
Not equal
    A single `dirichlet` row of 32768 numbers and more, which PyTorch sums in as many parts as it has threads.
    PyTorch on other machines: without AVX2 (or with ATEN_CPU_CAPABILITY=default) its `normal`, `cauchy`,
    `log_normal`, and `uniform` of bounds other than 0 and 1 have other last bits. With another C library,
    float64 numbers computed by log, log1p, exp, tan, sin or cos differ; they follow it here, too.

Nothing is drawn in parallel: results do not depend on the number of threads.

Used by the layers above:

* dropout: `bernoulli(engine, n, 1 - p, dtype)`, divided by 1 - p;
* the initialisers: `uniform` and `normal`; `trunc_normal_` is `uniform` on (2l - 1, 2u - 1), then erfinv, a
  scale, a shift and a clamp;
* `torch.normal` of tensors: `normal_around`.

Names are imported at first use.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial, wraps
from importlib import import_module
from typing import TYPE_CHECKING, Any

from ...modes import active_tracer, special

if TYPE_CHECKING:
    from .continuous import cauchy, dirichlet, exponential, standard_gamma
    from .counts import binomial, poisson
    from .discrete import bernoulli, bernoulli_each, geometric, multinomial
    from .engine import DEFAULT_SEED, Engine
    from .gaussian import log_normal, normal, normal_around
    from .integers import randint, random
    from .interval import uniform
    from .memory_order import fill_order, place
    from .permutation import randperm

__all__ = ["DEFAULT_SEED", "Engine", "bernoulli", "bernoulli_each", "binomial", "cauchy", "dirichlet",
           "exponential", "fill_order", "geometric", "log_normal", "multinomial", "normal", "normal_around",
           "place", "poisson", "randint", "random", "randperm", "standard_gamma", "uniform"]

_HOME = {
    "continuous": ("cauchy", "dirichlet", "exponential", "standard_gamma"),
    "counts": ("binomial", "poisson"),
    "discrete": ("bernoulli", "bernoulli_each", "geometric", "multinomial"),
    "engine": ("DEFAULT_SEED", "Engine"),
    "gaussian": ("log_normal", "normal", "normal_around"),
    "integers": ("randint", "random"),
    "interval": ("uniform",),
    "memory_order": ("fill_order", "place"),
    "permutation": ("randperm",),
}


def __getattr__(name: str) -> Any:
    for module, names in _HOME.items():
        if name in names:
            value = getattr(import_module(f".{module}", __name__), name)
            if module not in ("engine", "memory_order"):
                value = _traced(value)
            globals()[name] = value
            return value
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def _traced(draw: Callable[..., Any]) -> Callable[..., Any]:
    """`draw(engine, ...)`, which also reports the draw to an active tracer."""
    @wraps(draw)
    def drawing(engine: Any, *args: Any, **options: Any) -> Any:
        values = draw(engine, *args, **options)
        if special[0]:
            tracer = active_tracer.get()
            if tracer is not None:
                tracer.on_random_draw(partial(draw, **options) if options else draw, engine, args, values)
        return values

    return drawing
