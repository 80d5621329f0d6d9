"""`_ProcessGroupWrapper`: a backend whose collectives are compared between the processes before they run."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import timedelta
from typing import Any

from .backend import OPERATIONS, Backend, BackendOptions
from .fingerprints import compare, fingerprint
from .gloo.process_group import ProcessGroupGloo


def _as_list(tensors: Any) -> list[Any]:
    return list(tensors) if isinstance(tensors, (list, tuple)) else [tensors]


def _nothing(*args: Any, **kwargs: Any) -> list[Any]:
    """The tensors that are compared where those of the processes may differ in shape."""
    return []


def _written(outputs: Any, *args: Any, **kwargs: Any) -> list[Any]:
    return _as_list(outputs)


def _read(outputs: Any, inputs: Any, *args: Any, **kwargs: Any) -> list[Any]:
    return _as_list(inputs)


def _both(output: Any, input: Any, *args: Any, **kwargs: Any) -> list[Any]:
    return [input, output]


def _one_shape(lists: Any) -> bool:
    """Whether the tensors of the last list have one shape."""
    last = lists[-1] if isinstance(lists, (list, tuple)) and lists and isinstance(lists[-1], (list, tuple)) else lists
    shapes = [each.shape for each in _as_list(last)]
    return all(shape == shapes[0] for shape in shapes)


def _gathered(outputs: Any, inputs: Any, *args: Any, **kwargs: Any) -> list[Any]:
    return _as_list(inputs) if _one_shape(outputs) else []


def _scattered(outputs: Any, inputs: Any, *args: Any, **kwargs: Any) -> list[Any]:
    return _as_list(outputs) if _one_shape(inputs) else []


#: collective -> its name in errors, and which of its tensors must be alike in all processes
_COMPARED: dict[str, tuple[str, Callable[..., Sequence[Any]]]] = {
    "_allgather_base": ("_ALLGATHER_BASE", _read),
    "_reduce_scatter_base": ("_REDUCE_SCATTER_BASE", _both),
    "allgather": ("ALLGATHER", _gathered),
    "allgather_coalesced": ("ALLGATHER_COALESCED", _nothing),
    "allreduce": ("ALLREDUCE", _written),
    "allreduce_coalesced": ("ALLREDUCE_COALESCED", _nothing),
    "alltoall": ("ALLTOALL", _nothing),
    "alltoall_base": ("ALLTOALL_BASE", _nothing),
    "barrier": ("BARRIER", _nothing),
    "broadcast": ("BROADCAST", _written),
    "gather": ("GATHER", _read),
    "reduce": ("REDUCE", _written),
    "reduce_scatter": ("REDUCE_SCATTER", _scattered),
    "reduce_scatter_tensor_coalesced": ("REDUCE_SCATTER_TENSOR_COALESCED", _nothing),
    "scatter": ("SCATTER", _written),
}


class _ProcessGroupWrapper(Backend):
    """A backend whose collectives are compared between the processes before they run.

    Args:
        backend: carries the collectives out.
        checks: carries what is compared.
    """

    def __init__(self, backend: Any, checks: ProcessGroupGloo) -> None:
        super().__init__(backend.rank(), backend.size())
        self.wrapped_pg, self._checks = backend, checks

    def name(self) -> str:
        return str(self.wrapped_pg.name())

    getBackendName = _get_backend_name = name  # noqa: N815

    @property
    def options(self) -> BackendOptions:
        return self.wrapped_pg.options

    def _set_default_timeout(self, timeout: timedelta) -> None:
        self.wrapped_pg._set_default_timeout(timeout)

    set_timeout = _set_default_timeout

    def abort(self) -> None:
        self.wrapped_pg.abort()
        self._checks.abort()

    def shutdown(self) -> None:
        self.wrapped_pg.shutdown()
        self._checks.shutdown()

    def __getattr__(self, name: str) -> Any:
        if name == "wrapped_pg":  # not set yet
            raise AttributeError(name)
        method = getattr(self.wrapped_pg, name)
        if name not in OPERATIONS or name not in _COMPARED:
            return method
        operation, tensors = _COMPARED[name]

        def call(*args: Any, **kwargs: Any) -> Any:
            compare(self._checks, fingerprint(self.wrapped_pg._get_sequence_number_for_group(), operation,
                                              tensors(*args, **kwargs)))
            return method(*args, **kwargs)

        return call


__all__ = ["_ProcessGroupWrapper"]
