"""`LazyModuleMixin`: modules that infer the shapes of their parameters from the first input."""

from __future__ import annotations

from itertools import chain
from typing import Any, ClassVar, NoReturn

from ..._tensor import no_grad
from ..parameter import is_lazy

__all__ = ["LazyModuleMixin"]


class LazyModuleMixin:
    """A mixin of modules with uninitialized parameters and buffers.

    Before its first forward, such a module calls `initialize_parameters` with the inputs, and becomes an instance of
    the class `cls_to_become`. Loading a state dict initializes, too.

    >>> import flambeau as torch
    >>> layer = torch.nn.LazyLinear(3)
    >>> layer.weight
    <UninitializedParameter>
    >>> layer(torch.ones(2, 4)).shape, layer
    (flambeau.Size([2, 3]), Linear(in_features=4, out_features=3, bias=True))
    """

    cls_to_become: ClassVar[type[Any] | None] = None

    def __init__(self: Any, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._load_hook = self._register_load_state_dict_pre_hook(self._lazy_load_hook)
        self._initialize_hook = self.register_forward_pre_hook(self._infer_parameters, with_kwargs=True)

    def _save_to_state_dict(self: Any, destination: Any, prefix: str, keep_vars: bool) -> None:
        persistent = ((name, buffer) for name, buffer in self._buffers.items()
                      if name not in self._non_persistent_buffers_set)
        for name, value in chain(self._parameters.items(), persistent):
            if value is not None:
                destination[prefix + name] = value if keep_vars or is_lazy(value) else value.detach()

    def _lazy_load_hook(self: Any, state_dict: Any, prefix: str, local_metadata: Any, strict: bool,
                        missing_keys: list[str], unexpected_keys: list[str], error_msgs: list[str]) -> None:
        """Give uninitialized tensors the shapes of those that are loaded."""
        for name, value in chain(self._parameters.items(), self._buffers.items()):
            saved = state_dict.get(prefix + name)
            if saved is not None and is_lazy(value) and not is_lazy(saved):
                with no_grad():
                    value.materialize(saved.shape)

    def initialize_parameters(self, *args: Any, **kwargs: Any) -> None:
        """Give all uninitialized parameters and buffers a shape, and values; to be overridden.

        Args:
            args: the inputs of the first forward.
            kwargs: its keyword arguments.
        """
        raise NotImplementedError(f"initialize_parameters is not implemented for {type(self).__name__}")

    def has_uninitialized_params(self: Any) -> bool:
        """Whether a parameter or buffer is uninitialized."""
        return any(map(is_lazy, chain(self._parameters.values(), self._buffers.values())))

    def _infer_parameters(self: Any, module: Any, args: tuple[Any, ...], kwargs: dict[str, Any] | None = None) -> None:
        """Before the first forward: initialize, and become the class of the initialized module."""
        module.initialize_parameters(*args, **(kwargs or {}))
        if module.has_uninitialized_params():
            raise RuntimeError(f"module {self._get_name()} has not been fully initialized")
        module._initialize_hook.remove()
        module._load_hook.remove()
        del module._initialize_hook, module._load_hook
        if module.cls_to_become is not None:
            module.__class__ = module.cls_to_become

    def _replicate_for_data_parallel(self) -> NoReturn:
        raise RuntimeError("Modules with uninitialized parameters can't be used with `DataParallel`. Run a dummy "
                           "forward pass to correctly initialize the modules")
