"""Decorators of pipeline classes."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from typing import Any

from .datapipe import IterDataPipe, MapDataPipe

# ----- names -------------------------------------------------------------------------------


class functional_datapipe:
    """A class decorator: the class is the method `name` of all pipelines of its kind.

    Args:
        name: the name of the method.
        enable_df_api_tracing: ignored: there are no data frames.

    >>> from flambeau.utils.data import IterDataPipe, functional_datapipe
    >>> from flambeau.utils.data.datapipes.iter import IterableWrapper
    >>> @functional_datapipe("doubled")
    ... class Doubled(IterDataPipe):
    ...     def __init__(self, source):
    ...         self.source = source
    ...     def __iter__(self):
    ...         for x in self.source:
    ...             yield 2 * x
    >>> list(IterableWrapper([1, 2]).doubled())
    [2, 4]
    """

    def __init__(self, name: str, enable_df_api_tracing: bool = False) -> None:
        self.name, self.enable_df_api_tracing = name, enable_df_api_tracing

    def __call__(self, cls: Any) -> Any:
        made_by_decorator = isinstance(getattr(cls, "__self__", cls), non_deterministic)
        if made_by_decorator or issubclass(cls, IterDataPipe):
            IterDataPipe.register_datapipe_as_function(self.name, cls)
        elif issubclass(cls, MapDataPipe):
            MapDataPipe.register_datapipe_as_function(self.name, cls)
        return cls


# ----- determinism -------------------------------------------------------------------------

_determinism = False


class guaranteed_datapipes_determinism:
    """A context manager in which pipelines that are `non_deterministic` cannot be made.

    >>> from flambeau.utils.data import guaranteed_datapipes_determinism
    >>> with guaranteed_datapipes_determinism():
    ...     pass
    """

    def __init__(self) -> None:
        global _determinism
        self.prev = _determinism
        _determinism = True

    def __enter__(self) -> None:
        pass

    def __exit__(self, *exception: object) -> None:
        global _determinism
        _determinism = self.prev


class non_deterministic:
    """A decorator of stream classes whose order is not determined, or is so only for some arguments.

    Args:
        arg: the class, or a function of the constructor's arguments that says whether the order is undetermined.

    >>> from flambeau.utils.data import IterDataPipe, non_deterministic
    >>> @non_deterministic
    ... class Arriving(IterDataPipe):
    ...     pass
    >>> Arriving()
    Arriving
    """

    cls: Any = None
    deterministic_fn: Callable[..., bool]

    def __init__(self, arg: Any) -> None:
        if isinstance(arg, type):
            if not issubclass(arg, IterDataPipe):
                raise TypeError("Only `IterDataPipe` can be decorated with `non_deterministic`, but "
                                f"{arg.__name__} is found")
            self.cls = arg
        elif callable(arg):
            self.deterministic_fn = arg
        else:
            raise TypeError(f"{arg} can not be decorated by non_deterministic")

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if self.cls is not None:
            if _determinism:
                raise TypeError(f"{self.cls.__name__} is non-deterministic, but you set "
                                "'guaranteed_datapipes_determinism'. You can turn off determinism for this DataPipe "
                                "if that is acceptable for your application")
            return self.cls(*args, **kwargs)
        if not (isinstance(args[0], type) and issubclass(args[0], IterDataPipe)):
            raise TypeError(f"Only `IterDataPipe` can be decorated, but {args[0].__name__} is found")
        self.cls = args[0]
        return self.deterministic_wrapper_fn

    def deterministic_wrapper_fn(self, *args: Any, **kwargs: Any) -> Any:
        """Make an instance if determinism permits it."""
        undetermined = self.deterministic_fn(*args, **kwargs)
        if not isinstance(undetermined, bool):
            raise TypeError("deterministic_fn of `non_deterministic` decorator is required to return a boolean value, "
                            f"but {type(undetermined)} is found")
        if _determinism and undetermined:
            raise TypeError(f"{self.cls.__name__} is non-deterministic with the inputs, but you set "
                            "'guaranteed_datapipes_determinism'. You can turn off determinism for this DataPipe if "
                            "that is acceptable for your application")
        return self.cls(*args, **kwargs)


# ----- validation --------------------------------------------------------------------------

_runtime_validation_enabled = True


def argument_validation(f: Callable[..., Any]) -> Callable[..., Any]:
    """A decorator of functions: arguments that are annotated as streams are checked to be streams.

    >>> from flambeau.utils.data import IterDataPipe, argument_validation
    >>> @argument_validation
    ... def first(pipe: IterDataPipe):
    ...     return next(iter(pipe))
    >>> first([1])
    Traceback (most recent call last):
    TypeError: Expected argument 'pipe' as a IterDataPipe, but found <class 'list'>
    """
    import inspect
    from typing import get_type_hints

    signature, hints = inspect.signature(f), get_type_hints(f)
    streams = {name for name, hint in hints.items() if isinstance(hint, type) and issubclass(hint, IterDataPipe)}

    @functools.wraps(f)
    def checked(*args: Any, **kwargs: Any) -> Any:
        for name, value in signature.bind(*args, **kwargs).arguments.items():
            if name in streams and not isinstance(value, IterDataPipe):
                raise TypeError(f"Expected argument '{name}' as a IterDataPipe, but found {type(value)}")
        return f(*args, **kwargs)

    return checked


class runtime_validation_disabled:
    """A context manager without the checks of `runtime_validation`.

    >>> from flambeau.utils.data import runtime_validation_disabled
    >>> with runtime_validation_disabled():
    ...     pass
    """

    def __init__(self) -> None:
        global _runtime_validation_enabled
        self.prev = _runtime_validation_enabled
        _runtime_validation_enabled = False

    def __enter__(self) -> None:
        pass

    def __exit__(self, *exception: object) -> None:
        global _runtime_validation_enabled
        _runtime_validation_enabled = self.prev


def runtime_validation(f: Callable[..., Any]) -> Callable[..., Any]:
    """A decorator of `__iter__`: elements are checked where the class has a `type` with `issubtype_of_instance`.

    Raises:
        TypeError: the function is not `__iter__`.

    >>> from flambeau.utils.data import IterDataPipe, runtime_validation
    >>> class Numbers(IterDataPipe):
    ...     @runtime_validation
    ...     def __iter__(self):
    ...         yield from range(2)
    >>> list(Numbers())
    [0, 1]
    """
    if f.__name__ != "__iter__":
        raise TypeError(f"Can not decorate function {f.__name__} with 'runtime_validation'")

    @functools.wraps(f)
    def checked(self: Any) -> Iterator[Any]:
        kind = getattr(type(self), "type", None)
        for element in f(self):
            if _runtime_validation_enabled and kind is not None and not kind.issubtype_of_instance(element):
                raise RuntimeError(
                    f"Expected an instance as subtype of {kind}, but found {element}({type(element)})")
            yield element

    return checked
