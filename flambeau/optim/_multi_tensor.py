"""`torch.optim._multi_tensor`: optimizers with `foreach=True`."""

from __future__ import annotations

from functools import partialmethod
from typing import Any

from .adadelta import Adadelta as _Adadelta
from .adagrad import Adagrad as _Adagrad
from .adam import Adam as _Adam
from .adamax import Adamax as _Adamax
from .adamw import AdamW as _AdamW
from .asgd import ASGD as _ASGD
from .nadam import NAdam as _NAdam
from .radam import RAdam as _RAdam
from .rmsprop import RMSprop as _RMSprop
from .rprop import Rprop as _Rprop
from .sgd import SGD as _SGD


def partialclass(cls: Any, *args: Any, **kwargs: Any) -> Any:
    """A subclass whose constructor has some arguments set.

    >>> import flambeau as torch
    >>> from flambeau.optim._multi_tensor import partialclass
    >>> Fast = partialclass(torch.optim.SGD, lr=2.0)
    >>> Fast([torch.nn.Parameter(torch.zeros(1))]).defaults["lr"]
    2.0
    """

    class NewCls(cls):  # type: ignore[misc]
        __init__ = partialmethod(cls.__init__, *args, **kwargs)

    return NewCls


Adadelta, Adagrad, Adam, Adamax, AdamW, ASGD, NAdam, RAdam, RMSprop, Rprop, SGD = (
    partialclass(cls, foreach=True) for cls in (
        _Adadelta, _Adagrad, _Adam, _Adamax, _AdamW, _ASGD, _NAdam, _RAdam, _RMSprop, _Rprop, _SGD))
