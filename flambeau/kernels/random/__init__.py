"""PyTorch's CPU generator and its distributions, bit for bit: an engine and sizes in, NumPy arrays out.

Every function returns the numbers in the order in which PyTorch draws them, and leaves the engine where
PyTorch leaves its generator, the kept second normal number included. An output that is not row-major is
filled in another order: `place` writes the stream into it.

Checked against PyTorch 2.13 for Linux on x86, whose AVX2 and AVX-512 machines agree:

Equal in every bit, for every dtype PyTorch has them in
    `uniform`, `normal` (its float32 Box-Muller for all 2**24 uniforms), `random`, `randint`, `randperm`,
    `bernoulli`, `bernoulli_each`, `exponential`, `cauchy`, `log_normal`, `geometric`, `multinomial` (the
    order of equal candidates included), and the generator's state.
Equal wherever it was tried
    `poisson`, `binomial`, `standard_gamma`, `dirichlet`. The first two decide by logarithms of which lgamma
    and the float32 log1p are not the C library's own here: a draw could go the other way, very rarely.
Written from the algorithm, too large to try
    `randperm` of 214748364 numbers and more, where PyTorch shuffles another way.
Not equal
    A `dirichlet` row of 32768 numbers and more, alone, which PyTorch sums in as many parts as it has threads.
    And what PyTorch gives elsewhere: without AVX2 (or with ATEN_CPU_CAPABILITY=default) its `normal`,
    `cauchy`, `log_normal`, and `uniform` of other bounds than 0 and 1, have other last bits. Where the C
    library is another one, so have float64 numbers that pass through log, log1p, exp, tan, sin or cos; here
    they follow it likewise.

Nothing is drawn in parallel: thread counts change nothing.

What the layers above build from these:

* dropout: `bernoulli(engine, n, 1 - p, dtype)`, divided by 1 - p;
* the initialisers: `uniform` and `normal`; `trunc_normal_` is `uniform` on (2l - 1, 2u - 1), then erfinv, a
  scale, a shift and a clamp;
* `torch.normal` of tensors: `normal_around`.

The names load at first use.
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
    from .order import fill_order, place
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
    "order": ("fill_order", "place"),
    "permutation": ("randperm",),
}


def __getattr__(name: str) -> Any:
    for module, names in _HOME.items():
        if name in names:
            value = getattr(import_module(f".{module}", __name__), name)
            if module not in ("engine", "order"):
                value = _told(value)
            globals()[name] = value
            return value
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def _told(draw: Callable[..., Any]) -> Callable[..., Any]:
    """`draw(engine, ...)`, of which a function's capture is told."""
    @wraps(draw)
    def drawing(engine: Any, *args: Any, **options: Any) -> Any:
        found = draw(engine, *args, **options)
        if special[0]:
            tracer = active_tracer.get()
            if tracer is not None:
                tracer.on_random_draw(partial(draw, **options) if options else draw, engine, args, found)
        return found

    return drawing
