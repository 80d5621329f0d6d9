"""Special functions under `torch.special`'s names. Names only."""

from __future__ import annotations

from typing import Any

from ._tensor import functions

#: functions that have another name, or the same one, outside `special`
_OTHERWISE = {"expit": "sigmoid", "gammaln": "lgamma", "multigammaln": "mvlgamma", "psi": "digamma",
              "gammainc": "igamma", "gammaincc": "igammac"} | {name: name for name in (
                  "digamma", "erf", "erfc", "erfinv", "exp2", "expm1", "i0", "log1p", "log_softmax", "logit",
                  "logsumexp", "polygamma", "round", "sinc", "softmax", "xlogy")}


def __getattr__(name: str) -> Any:
    if name == "__all__":
        return __dir__()
    if not name.startswith("_"):
        found = getattr(functions, _OTHERWISE.get(name, "special_" + name), None)
        if found is not None:
            globals()[name] = found
            return found
    raise AttributeError(f"module '{__name__}' has no attribute '{name}'")


def __dir__() -> list[str]:
    return sorted({*(name for name, other in _OTHERWISE.items() if hasattr(functions, other)),
                   *(name.removeprefix("special_") for name in dir(functions) if name.startswith("special_"))})
