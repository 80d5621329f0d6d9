"""`Stateful`: objects that a checkpoint asks for their state, and gives it back to."""

from __future__ import annotations

from typing import Any, Protocol, TypeVar, runtime_checkable

__all__ = ["Stateful", "StatefulT"]


@runtime_checkable
class Stateful(Protocol):
    """An object with `state_dict` and `load_state_dict`.

    >>> import flambeau as torch
    >>> isinstance(torch.nn.Linear(2, 1), torch.distributed.checkpoint.stateful.Stateful)
    True
    """

    def state_dict(self) -> dict[str, Any]:
        """The state, as names and tensors or other objects; loading asks for it, too, to know the shapes."""

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Take a state over."""


StatefulT = TypeVar("StatefulT", bound=Stateful)
