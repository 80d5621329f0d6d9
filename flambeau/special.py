"""`torch.special`: the names of functions `special_*`, without the prefix, and aliases of others."""

from __future__ import annotations

import functools
from typing import Any

from ._tensor import functions
from ._tensor.overriding.first_calls import called_again

#: name in `special` -> the function's name in `functions`, if that is not `special_<name>`
_ALIASES = {"expit": "sigmoid", "gammaln": "lgamma", "multigammaln": "mvlgamma", "psi": "digamma",
              "gammainc": "igamma", "gammaincc": "igammac"} | {name: name for name in (
                  "digamma", "erf", "erfc", "erfinv", "exp2", "expm1", "i0", "log1p", "log_softmax", "logit",
                  "logsumexp", "polygamma", "sinc", "softmax", "xlogy")}


def __getattr__(name: str) -> Any:
    if name == "__all__":
        return __dir__()
    if not name.startswith("_"):
        function = getattr(functions, _ALIASES.get(name, "special_" + name), None)
        if function is not None:
            if name in _ALIASES:
                function = _named(function, "special_" + name)
            globals()[name] = function
            return function
    raise AttributeError(f"module '{__name__}' has no attribute '{name}'")


def _named(function: Any, name: str) -> Any:
    """A function that says its own name in the errors of calls that fit no signature."""
    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        try:
            return function(*args, **kwargs)
        except Exception:
            result = called_again(call, args, kwargs)
            if result is not NotImplemented:
                return result
            from ._tensor.argument_errors.messages import explained

            error = explained("torch", name, args, kwargs)
            if error is None:
                raise
            try:
                raise error from None
            finally:
                del error  # whose traceback refers to this frame, and so to the arguments

    call.__module__, call.__name__, call.__qualname__ = __name__, *(name.removeprefix("special_"),) * 2  # for pickles
    return call


def __dir__() -> list[str]:
    return sorted({*(name for name, other in _ALIASES.items() if hasattr(functions, other)),
                   *(name.removeprefix("special_") for name in dir(functions) if name.startswith("special_"))})
