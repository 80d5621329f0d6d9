"""`torch.special`: the names of functions `special_*`, without the prefix, and aliases of others."""

from __future__ import annotations

from typing import Any

from ._tensor import functions

#: name in `special` -> the function's name in `functions`, if that is not `special_<name>`
_ALIASES = {"expit": "sigmoid", "gammaln": "lgamma", "multigammaln": "mvlgamma", "psi": "digamma",
              "gammainc": "igamma", "gammaincc": "igammac"} | {name: name for name in (
                  "digamma", "erf", "erfc", "erfinv", "exp2", "expm1", "i0", "log1p", "log_softmax", "logit",
                  "logsumexp", "polygamma", "round", "sinc", "softmax", "xlogy")}


def __getattr__(name: str) -> Any:
    if name == "__all__":
        return __dir__()
    if not name.startswith("_"):
        function = getattr(functions, _ALIASES.get(name, "special_" + name), None)
        if function is not None:
            globals()[name] = function
            return function
    raise AttributeError(f"module '{__name__}' has no attribute '{name}'")


def __dir__() -> list[str]:
    return sorted({*(name for name, other in _ALIASES.items() if hasattr(functions, other)),
                   *(name.removeprefix("special_") for name in dir(functions) if name.startswith("special_"))})
