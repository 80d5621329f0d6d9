"""`torch.optim`: optimizers and learning rate schedulers, imported on first use."""

from __future__ import annotations

import sys
from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from . import lr_scheduler, swa_utils  # noqa: F401
    from ._adafactor import Adafactor  # noqa: F401
    from ._muon import Muon  # noqa: F401
    from ._stateless import swap_in_optimizer_params_and_state  # noqa: F401
    from .adadelta import Adadelta  # noqa: F401
    from .adagrad import Adagrad  # noqa: F401
    from .adam import Adam  # noqa: F401
    from .adamax import Adamax  # noqa: F401
    from .adamw import AdamW  # noqa: F401
    from .asgd import ASGD  # noqa: F401
    from .lbfgs import LBFGS  # noqa: F401
    from .nadam import NAdam  # noqa: F401
    from .optimizer import Optimizer  # noqa: F401
    from .radam import RAdam  # noqa: F401
    from .rmsprop import RMSprop  # noqa: F401
    from .rprop import Rprop  # noqa: F401
    from .sgd import SGD  # noqa: F401
    from .sparse_adam import SparseAdam  # noqa: F401

_MODULE_OF = {
    "Adadelta": "adadelta",
    "Adafactor": "_adafactor",
    "Adagrad": "adagrad",
    "Adam": "adam",
    "Adamax": "adamax",
    "AdamW": "adamw",
    "ASGD": "asgd",
    "LBFGS": "lbfgs",
    "Muon": "_muon",
    "NAdam": "nadam",
    "Optimizer": "optimizer",
    "RAdam": "radam",
    "RMSprop": "rmsprop",
    "Rprop": "rprop",
    "SGD": "sgd",
    "SparseAdam": "sparse_adam",
    "swap_in_optimizer_params_and_state": "_stateless",
}

__all__ = sorted([*_MODULE_OF, "lr_scheduler", "swa_utils"])  # noqa: PLE0605


def __getattr__(name: str) -> Any:
    if name in ("lr_scheduler", "optimizer", "swa_utils", "_functional", "_multi_tensor", *_MODULE_OF.values()):
        return import_module(f"{__name__}.{name}")
    if name not in _MODULE_OF:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    cls = getattr(import_module(f"{__name__}.{_MODULE_OF[name]}"), name)
    globals()[name] = cls
    return cls


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})


class _Optimizers(ModuleType):
    """The type of this module: programs look for optimizers in `torch.optim.__dict__`, which imports them."""

    @property
    def __dict__(self) -> dict[str, Any]:  # type: ignore[override]
        for name in __all__:
            getattr(self, name)
        return globals()


sys.modules[__name__].__class__ = _Optimizers
