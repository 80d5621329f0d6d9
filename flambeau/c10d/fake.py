"""`FakeProcessGroup`: one process that plays one of many, for tests that need no results."""

from __future__ import annotations

from typing import Any

from ..engine.grad_mode import no_grad
from .backend import OPERATIONS, Backend, BackendOptions
from .work import Work


class FakeProcessGroup(Backend):
    """Collectives that exchange nothing; gathers behave as if all processes had this one's tensor.

    Args:
        rank: the number that this process plays.
        size: the number of processes that there are said to be.
        options: options of the backend.
    """

    def __init__(self, rank: int, size: int, options: Any = None) -> None:
        super().__init__(rank, size)
        self._options = options if isinstance(options, BackendOptions) else BackendOptions("fake")

    _create_internal = classmethod(lambda cls, rank, size, options=None: cls(rank, size, options))

    def name(self) -> str:
        return "fake"

    def _get_sequence_number_for_group(self) -> int:
        return 0

    @no_grad()
    def allgather(self, outputs: Any, inputs: Any, opts: Any = None) -> Work:
        """Write this process's tensor to all outputs."""
        for output in outputs[0]:
            output.copy_(inputs[0])
        return _ended()

    @no_grad()
    def _allgather_base(self, output: Any, source: Any, opts: Any = None) -> Work:
        for chunk in output.chunk(self.size()):
            chunk.copy_(source)
        return _ended()

    def allgather_into_tensor_coalesced(self, outputs: Any, inputs: Any, opts: Any = None) -> Work:
        """Write this process's tensors to all parts of the outputs."""
        for output, source in zip(outputs, inputs, strict=True):
            self._allgather_base(output, source)
        return _ended()

    def __getattr__(self, name: str) -> Any:
        if name in OPERATIONS:
            return lambda *args, **kwargs: _ended()
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")


def _ended() -> Work:
    work = Work()
    work._finish([])
    return work


__all__ = ["FakeProcessGroup"]
