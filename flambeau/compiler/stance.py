"""What is said of all compiled functions at once: whether they run compiled, and how many programs each may have."""

from __future__ import annotations

import functools
import weakref
from collections.abc import Callable
from typing import Any, Protocol


class Registered(Protocol):
    """A compiled function as far as stances and `reset` need it."""

    def clear_call_stub(self) -> None: ...

    def reset(self) -> None: ...


#: every compiled function
compiled_functions: weakref.WeakSet[Registered] = weakref.WeakSet()
#: kinds of calls that get programs, unless `compile` or a setting says otherwise
DEFAULT_RECOMPILE_LIMIT = 64

#: stances: whether calls run eagerly at all, and what becomes of those of a new kind
_STANCES = {"default": "compiled", "eager_then_compile": "compiled", "aot_eager_then_compile": "compiled",
            "force_eager": "eager", "eager_on_recompile": "eager", "fail_on_recompile": "fail"}


class DispatchPolicy:
    """How compiled functions behave now.

    Attributes:
        stance: one of `_STANCES`.
        disabled: whether all run eagerly, whatever the stance.
        limit: kinds of calls that get programs.
        fails: whether a call of one more kind is an error.
        objects: whether a call of a second kind is an error.
        is_usual: whether calls may go the short way, and all that is new is compiled.
    """

    def __init__(self) -> None:
        self.stance, self.disabled, self.recompile_limit = "default", False, DEFAULT_RECOMPILE_LIMIT
        self.fail_on_recompile_limit_hit = self.error_on_recompile = False
        self.is_default = True

    def change(self, **values: Any) -> None:
        """Give attributes other values; compiled functions look anew at what they are to do."""
        vars(self).update(values)
        self.is_default = not self.disabled and _STANCES[self.stance] == "compiled"
        for function in list(compiled_functions):
            function.clear_call_stub()

    @property
    def runs_eagerly(self) -> bool:
        """Whether everything runs eagerly."""
        return self.disabled or self.stance == "force_eager"

    @property
    def fails_on_recompile(self) -> bool:
        """Whether a call of a new kind is an error."""
        return _STANCES[self.stance] == "fail"


policy = DispatchPolicy()


class set_stance:
    """Say whether compiled functions run compiled: from now on, in a block, or while a function runs.

    Args:
        stance: "default" compiles, and so do "eager_then_compile" and "aot_eager_then_compile", since the first calls
            always run eagerly; "force_eager" runs every call eagerly; "eager_on_recompile" does so with calls of a
            kind that was not met before, and "fail_on_recompile" raises RuntimeError for them.
        skip_guard_eval_unsafe: accepted, and of no effect: guards are always looked at.
        force_backend: None; others are refused.

    Raises:
        RuntimeError: an unknown stance, or a backend that should be forced.

    Source: https://docs.pytorch.org/docs/stable/generated/torch.compiler.set_stance.html

    >>> import flambeau as torch
    >>> f = torch.compile(lambda x: x + 1)
    >>> with torch.compiler.set_stance("force_eager"):
    ...     f(torch.ones(2))
    tensor([2., 2.])
    """

    def __init__(self, stance: str = "default", *, skip_guard_eval_unsafe: bool = False,
                 force_backend: Any = None) -> None:
        if stance not in _STANCES:
            raise RuntimeError(f"invalid torch.compile stance {stance!r}: it may be one of {', '.join(_STANCES)}")
        if force_backend is not None:
            raise RuntimeError(f"force_backend={force_backend!r}: name the backend in torch.compile(backend=...); "
                               'stance "force_eager" runs everything eagerly')
        self.stance, self.before = stance, policy.stance
        policy.change(stance=stance)

    def __enter__(self) -> None:
        policy.change(stance=self.stance)

    def __exit__(self, *_: object) -> None:
        policy.change(stance=self.before)

    def __call__(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """The function, which takes the stance whenever it runs."""
        policy.change(stance=self.before)

        @functools.wraps(function)
        def taken(*args: Any, **kwargs: Any) -> Any:
            with set_stance(self.stance):
                return function(*args, **kwargs)

        return taken


__all__ = ["DEFAULT_RECOMPILE_LIMIT", "compiled_functions", "policy", "set_stance"]
