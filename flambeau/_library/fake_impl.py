"""The context of a running fake kernel, which it asks for sizes that depend on data."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, NoReturn

#: what `get_ctx` calls; None outside fake kernels
_getter: ContextVar[Callable[[], Any] | None] = ContextVar("fake_impl_context", default=None)


@contextmanager
def set_ctx_getter(getter: Callable[[], Any]) -> Iterator[None]:
    """Set what `get_ctx` returns in the block.

    >>> from flambeau._library.fake_impl import get_ctx, set_ctx_getter
    >>> with set_ctx_getter(lambda: "context"):
    ...     get_ctx()
    'context'
    """
    token = _getter.set(getter)
    try:
        yield
    finally:
        _getter.reset(token)


def get_ctx() -> Any:
    """The context of the running `register_fake` function; None outside one.

    Raises:
        RuntimeError: it runs on meta tensors that are no fake tensors.

    >>> import flambeau as torch
    >>> torch.library.get_ctx() is None
    True
    """
    getter = _getter.get()
    return None if getter is None else getter()


def has_ctx() -> bool:
    """Whether a fake kernel runs on fake tensors."""
    return _getter.get() is not None


class FakeImplCtx:
    """What `get_ctx` gives a fake kernel.

    Args:
        refuse: raises the error of a size that depends on data.
    """

    def __init__(self, refuse: Callable[[], NoReturn]) -> None:
        self._refuse = refuse

    def new_dynamic_size(self, *, min: int = 0, max: int | None = None) -> NoReturn:
        """A size that depends on data.

        Raises:
            DynamicOutputShapeException: always: sizes of fake tensors are known numbers.
        """
        self._refuse()

    def create_unbacked_symint(self, *, min: int = 2, max: int | None = None) -> NoReturn:
        """Deprecated: `new_dynamic_size`.

        Raises:
            DynamicOutputShapeException: always.
        """
        import warnings

        warnings.warn("`create_unbacked_symint` is deprecated, please use `new_dynamic_size` instead", FutureWarning,
                      stacklevel=2)
        self.new_dynamic_size(min=min, max=max)


def refusing_getter(name: str, function: Any) -> Callable[[], NoReturn]:
    """What `get_ctx` calls while an operator's fake kernel runs on meta tensors.

    Args:
        name: the operator.
        function: its fake kernel.
    """
    def refuse() -> NoReturn:
        code = getattr(function, "__code__", None)
        source = f"{code.co_filename}:{code.co_firstlineno}" if code is not None else repr(function)
        raise RuntimeError(
            f"{name} ({source}): You're trying to run this operator with meta Tensors (as opposed to FakeTensors), but "
            "this operator may return an output Tensor with data-dependent shape. Meta Tensors don't support operators "
            "with outputs that have data-dependent shapes but FakeTensors do. If your operator does not return an "
            "output with data-dependent shape, make sure the FakeTensor and/or meta kernel does not call "
            "torch.library.get_ctx(). Otherwise, please use FakeTensors.")

    return refuse


__all__ = ["FakeImplCtx", "get_ctx", "has_ctx", "refusing_getter", "set_ctx_getter"]
