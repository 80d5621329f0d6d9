"""`torch.library.custom_op`: a Python function as an operator."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

from ..ops.overloads import OpOverload
from ..ops.schemas import FunctionSchema
from .infer_schema import infer_schema
from .kernels import OperatorKernels
from .registry import define_operator, remove_operator

_DEFAULT = ("CPU",)


class CustomOpDef:
    """An operator that `custom_op` has made of a function; calling it runs the operator.

    Attributes:
        _opoverload: its overload, in `torch.ops`.

    >>> import flambeau as torch
    >>> @torch.library.custom_op("examples::double", mutates_args=())
    ... def double(x: torch.Tensor) -> torch.Tensor:
    ...     return 2 * x
    >>> type(double).__name__, double(torch.ones(2))
    ('CustomOpDef', tensor([2., 2.]))
    """

    def __init__(self, namespace: str, name: str, schema: str, fn: Callable[..., Any], tags: Any = None) -> None:
        self._namespace, self._name, self._schema = namespace, name, schema
        self._init_fn = fn
        if any(a.kwarg_only and a.type_name.startswith("Tensor")
               for a in FunctionSchema(f"{namespace}::{name}{schema}").arguments):
            raise NotImplementedError("custom_op with kwarg-only Tensor args. Please make your tensors not "
                                      f"kwarg-only. Got: {name}{schema}")
        existing = OPDEFS.get(self._qualname)
        if existing is not None:
            remove_operator(existing._opoverload)
        self._opoverload: OpOverload = define_operator(namespace, name + schema, records_itself=False)
        self._kernels: OperatorKernels = self._opoverload.kernel  # type: ignore[attr-defined]
        if tags is not None:
            self._opoverload.tags = list(tags) if isinstance(tags, Sequence) else [tags]
        OPDEFS[self._qualname] = self

    @property
    def _qualname(self) -> str:
        return f"{self._namespace}::{self._name}"

    def __repr__(self) -> str:
        return f"<CustomOpDef({self._qualname})>"

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self._opoverload(*args, **kwargs)

    def register_kernel(self, device_types: Any, fn: Callable[..., Any] | None = None, /) -> Callable[..., Any]:
        """Register a kernel for device types, or for all (None); usable as a decorator."""
        def register(function: Callable[..., Any]) -> Callable[..., Any]:
            types = [device_types] if isinstance(device_types, str) or device_types is None else list(device_types)
            for device_type in types:
                key = "CompositeExplicitAutograd" if device_type in (None, "default") else device_type.upper()
                self._kernels.by_key[key] = function
            return function

        return register if fn is None else register(fn)

    def register_fake(self, fn: Callable[..., Any], /) -> Callable[..., Any]:
        """Register the fake kernel; usable as a decorator."""
        self._kernels.fake = fn
        return fn

    def register_torch_dispatch(self, torch_dispatch_class: Any, fn: Callable[..., Any] | None = None,
                                /) -> Callable[..., Any]:
        """Register what a subclass or a mode does with the operator: `fn(mode or class, func, types, args, kwargs)`."""
        def register(function: Callable[..., Any]) -> Callable[..., Any]:
            self._kernels.handlers[torch_dispatch_class] = function
            return function

        return register if fn is None else register(fn)

    def register_autograd(self, backward: Callable[..., Any], /, *,
                          setup_context: Callable[..., Any] | None = None) -> None:
        """Register the derivative.

        Args:
            backward: `(ctx, *grads) -> gradients`, one for each argument that is not keyword-only.
            setup_context: `(ctx, inputs, output)`, called after the forward to save what `backward` needs.

        Raises:
            RuntimeError: the operator writes to an argument or returns one.
        """
        self._kernels.set_derivative(self, backward, setup_context)

    def register_vmap(self, func: Callable[..., Any] | None = None) -> Any:
        """Register the batching rule, `func(info, in_dims, *args) -> (outputs, out_dims)`; usable as a decorator."""
        def register(function: Callable[..., Any]) -> Callable[..., Any]:
            self._kernels.vmap = function
            self._kernels.reset()
            return function

        return register if func is None else register(func)

    def register_autocast(self, device_type: str, cast_inputs: Any) -> Callable[..., Any]:
        """Register the dtype that floating point inputs are cast to under autocast.

        Raises:
            ValueError: an unknown device type, or no dtype.
        """
        if device_type not in ("cpu", "cuda", "xpu"):
            raise ValueError(f"Unknown device type: {device_type}")
        self._kernels.autocast_dtypes[device_type] = cast_inputs
        return self._init_fn

    @contextlib.contextmanager
    def set_kernel_enabled(self, device_type: str, enabled: bool = True) -> Iterator[None]:
        """Switch the kernel of a device type on or off in the block; without it the function itself runs."""
        key, disabled = device_type.upper(), self._kernels.disabled_keys
        before = key in disabled
        (disabled.discard if enabled else disabled.add)(key)
        try:
            yield
        finally:
            (disabled.add if before else disabled.discard)(key)


#: qualified name -> the operator that `custom_op` has made
OPDEFS: dict[str, CustomOpDef] = {}


def custom_op(name: str, fn: Callable[..., Any] | None = None, /, *, mutates_args: str | Iterable[str],
              device_types: str | Sequence[str] | None = None, schema: str | None = None, tags: Any = None) -> Any:
    """Make a Python function an operator, which autograd, `vmap` and handlers treat as one unit.

    Args:
        name: its qualified name, `mylib::name`.
        fn: the function; without it, a decorator is returned.
        mutates_args: the names of the arguments that it writes to.
        device_types: the device types for which it is the kernel; default: all.
        schema: its schema; default: from the type hints.
        tags: tags of the overload.

    Raises:
        ValueError: the name has no namespace, the schema cannot be inferred, or it writes to other arguments than
            `mutates_args` names.
        NotImplementedError: a tensor is a keyword-only argument.

    >>> import flambeau as torch
    >>> @torch.library.custom_op("manual::scale", mutates_args=())
    ... def scale(x: torch.Tensor, by: float = 2.0) -> torch.Tensor:
    ...     return x * by
    >>> scale.register_autograd(lambda ctx, g: (g * ctx.by, None),
    ...                         setup_context=lambda ctx, inputs, output: setattr(ctx, "by", inputs[1]))
    >>> x = torch.ones(2, requires_grad=True)
    >>> torch.ops.manual.scale(x, 3.0).sum().backward()
    >>> x.grad
    tensor([3., 3.])
    """
    def make(function: Callable[..., Any]) -> CustomOpDef:
        namespace, separator, op_name = name.partition("::")
        if not separator:
            raise ValueError(f"Invalid qualname: {name!r}; expected 'namespace::name'")
        if schema is None:
            text = infer_schema(function, mutates_args=mutates_args)
        else:
            text = schema
        result = CustomOpDef(namespace, op_name, text, function, tags)
        written = {a.name for a in result._opoverload._schema.arguments
                   if a.alias_info is not None and a.alias_info.is_write}
        if schema is not None and written != set(mutates_args):
            raise ValueError(f"Attempted to create a custom op with `mutates_args={mutates_args}` and `schema={schema}."
                             f" The schema suggests that the op mutates {written}which is different from what was "
                             "provided to us in `mutates_args`. Please make these consistent.")
        if device_types is None:
            result._kernels.original = function
        else:
            result.register_kernel(device_types, function)
            result._kernels.original = None
        return result

    return make if fn is None else make(fn)


__all__ = ["OPDEFS", "CustomOpDef", "custom_op"]
