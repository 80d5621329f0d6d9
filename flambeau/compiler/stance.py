"""Stances (`torch.compiler.set_stance`) and the dispatch policy of all compiled functions."""

from __future__ import annotations

import functools
import weakref
from collections.abc import Callable
from typing import Any, Protocol


class Registered(Protocol):
    """The interface of a compiled function that `reset` and changes of the policy use."""

    def clear_call_stub(self) -> None: ...

    def reset(self) -> None: ...


#: all compiled functions
compiled_functions: weakref.WeakSet[Registered] = weakref.WeakSet()
#: the largest number of compiled signatures of a function, unless `compile` or a setting changes it
DEFAULT_RECOMPILE_LIMIT = 64

#: by stance, what is done with calls whose signature is new; "force_eager" also runs known ones eagerly
_STANCES = {"default": "compiled", "eager_then_compile": "compiled", "aot_eager_then_compile": "compiled",
            "force_eager": "eager", "eager_on_recompile": "eager", "fail_on_recompile": "fail"}


class DispatchPolicy:
    """Whether compiled functions replay, compile, run eagerly or raise.

    Attributes:
        stance: one of `_STANCES`.
        disabled: run everything eagerly, regardless of the stance (`torch._dynamo.config.disable`).
        recompile_limit: the largest number of compiled signatures of a function.
        fail_on_recompile_limit_hit: raise for a call with one more signature.
        error_on_recompile: raise for a call with a second signature.
        automatic_dynamic_shapes: make templates for sizes that differ from those of an earlier call.
        assume_static_by_default: treat sizes as fixed until then.
        verify_correctness: whether what a backend returned agrees with its graph on examples; None: it is not asked.
        is_default: whether calls may use call stubs, and new signatures are compiled.
    """

    def __init__(self) -> None:
        self.stance, self.disabled, self.recompile_limit = "default", False, DEFAULT_RECOMPILE_LIMIT
        self.fail_on_recompile_limit_hit = self.error_on_recompile = False
        self.verify_correctness: Callable[[Any, Callable[..., Any], list[Any]], bool] | None = None
        self.automatic_dynamic_shapes = self.assume_static_by_default = True
        self.is_default = True

    def change(self, **values: Any) -> None:
        """Set attributes, and clear the call stubs of all compiled functions, which do not check the policy."""
        vars(self).update(values)
        self.is_default = not self.disabled and _STANCES[self.stance] == "compiled"
        for function in list(compiled_functions):
            function.clear_call_stub()

    @property
    def runs_eagerly(self) -> bool:
        """Whether all calls run eagerly."""
        return self.disabled or self.stance == "force_eager"

    @property
    def fails_on_recompile(self) -> bool:
        """Whether a call with a new signature raises."""
        return _STANCES[self.stance] == "fail"


policy = DispatchPolicy()


class set_stance:
    """Set the stance of compiled functions: from now on, in a `with` block, or, as a decorator, during a function.

    Args:
        stance: "default", "eager_then_compile" and "aot_eager_then_compile" compile (the first calls always run
            eagerly); "force_eager" runs every call eagerly; "eager_on_recompile" runs calls with a new signature
            eagerly, and "fail_on_recompile" raises RuntimeError for them.
        skip_guard_eval_unsafe: accepted, without effect: guards are always checked.
        force_backend: must be None.

    Raises:
        RuntimeError: an unknown stance, or `force_backend` is not None.

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
        """Return `function`, wrapped to run with this stance."""
        policy.change(stance=self.before)

        @functools.wraps(function)
        def with_stance(*args: Any, **kwargs: Any) -> Any:
            with set_stance(self.stance):
                return function(*args, **kwargs)

        return with_stance


__all__ = ["DEFAULT_RECOMPILE_LIMIT", "compiled_functions", "policy", "set_stance"]
