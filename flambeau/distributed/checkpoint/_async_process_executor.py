"""`AsyncCheckpointerType.PROCESS`: a process beside each rank writes, so that training keeps its interpreter."""

from __future__ import annotations

import atexit
import contextlib
import os
import socket
import threading
from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from typing import Any

from ... import distributed as dist
from ...c10d.process_group import ProcessGroup
from .metadata import STATE_DICT_TYPE, Metadata
from .planner import SavePlanner
from .storage import StorageWriter
from .utils import _DistWrapper

_START_SECONDS = 1800.0
_END_SECONDS = 5.0


@dataclass
class _ProcessGroupInitInfo:
    """Where the writing processes meet; the ranks agree on it, so all of them make one at the same time."""

    rank: int
    local_rank: int
    world_size: int
    address: str
    port: int

    @classmethod
    def agree(cls, process_group: ProcessGroup | None = None) -> _ProcessGroupInitInfo:
        """Let the first rank choose a port."""
        def choose() -> tuple[str, int]:
            with socket.socket() as listener:
                listener.bind(("", 0))
                return os.environ.get("MASTER_ADDR") or socket.gethostname(), listener.getsockname()[1]

        address, port = _DistWrapper(process_group, True, 0).broadcast("get_master_addr_and_port", choose)
        return cls(dist.get_rank(process_group), int(os.environ.get("LOCAL_RANK", "0")),
                   dist.get_world_size(process_group), address, port)


class _Ready:
    """The writing process has met the others."""


class _Save:
    """A checkpoint to be written: the arguments of `save`."""

    def __init__(self, state_dict: STATE_DICT_TYPE, options: dict[str, Any]) -> None:
        self.state_dict, self.options = state_dict, options


class _AsyncCheckpointProcess:
    """The process that writes for this rank; it ends with this one.

    Args:
        info: where it meets the others.
        save: what writes.
    """

    def __init__(self, info: _ProcessGroupInitInfo, save: Callable[..., Metadata]) -> None:
        # a module above this one, with which tensors are sent in shared memory
        context = import_module(f"{__name__.partition('.')[0]}.multiprocessing").get_context("spawn")
        self._pipe, theirs = context.Pipe()
        self._process = context.Process(target=_serve, args=(info, theirs, save), daemon=True)
        self._process.start()
        theirs.close()  # so that a read ends if the process does
        self._answer(_START_SECONDS)
        atexit.register(self.close)

    def _answer(self, timeout: float | None = None) -> Any:
        if timeout is not None and not self._pipe.poll(timeout):
            raise RuntimeError(f"Timed out after {timeout}s while waiting for response from checkpointer process pid: "
                               f"{self._process.pid}")
        try:
            found = self._pipe.recv()
        except EOFError:
            self._process.join()
            raise RuntimeError("Checkpoint background process is dead. Exit code: "
                               f"{self._process.exitcode}") from None
        if isinstance(found, BaseException):
            raise found
        return found

    def save(self, state_dict: STATE_DICT_TYPE, **options: Any) -> Metadata:
        """Write a checkpoint there; the metadata."""
        self._pipe.send(_Save(state_dict, options))
        found: Metadata = self._answer()
        return found

    def close(self) -> None:
        """End the process."""
        if self._process.is_alive():
            with contextlib.suppress(OSError):
                self._pipe.send(None)
            self._process.join(_END_SECONDS)
            if self._process.is_alive():
                self._process.terminate()


def _serve(info: _ProcessGroupInitInfo, pipe: Any, save: Callable[..., Metadata]) -> None:
    """In the writing process: write checkpoints until there are no more."""
    try:
        os.environ.update(TORCHELASTIC_USE_AGENT_STORE="False", MASTER_ADDR=info.address, MASTER_PORT=str(info.port),
                          LOCAL_RANK=str(info.local_rank), RANK=str(info.rank), WORLD_SIZE=str(info.world_size))
        dist.init_process_group("gloo")
        dist.barrier()
        pipe.send(_Ready())
    except BaseException as error:
        pipe.send(error)
        return
    try:
        while True:
            try:
                request = pipe.recv()
            except EOFError:
                return
            if request is None:
                return
            try:
                pipe.send(save(request.state_dict, **request.options))
            except BaseException as error:
                pipe.send(error)
    finally:
        dist.destroy_process_group()
        pipe.close()


_process: _AsyncCheckpointProcess | None = None
_lock = threading.Lock()


def save_in_process(save: Callable[..., Metadata], state_dict: STATE_DICT_TYPE, info: _ProcessGroupInitInfo | None,
                    checkpoint_id: Any, storage_writer: StorageWriter | None, planner: SavePlanner | None,
                    no_dist: bool, use_collectives: bool) -> Metadata:
    """Write a checkpoint in the process beside this one, which is started at the first.

    Args:
        save: what writes there.
        state_dict: a copy, which is sent there.
        info: where the writing processes meet; needed for the first.
        checkpoint_id, storage_writer, planner, no_dist, use_collectives: as for `save`.
    """
    global _process
    with _lock:
        if _process is None:
            assert info is not None, "pg_init_info must not be None when _CHECKPOINT_PROCESS is None"
            _process = _AsyncCheckpointProcess(info, save)
    return _process.save(state_dict, checkpoint_id=checkpoint_id, storage_writer=storage_writer, planner=planner,
                         no_dist=no_dist, use_collectives=use_collectives)


def info_for_start(process_group: ProcessGroup | None) -> _ProcessGroupInitInfo | None:
    """What the first save needs; None for later ones."""
    return _ProcessGroupInitInfo.agree(process_group) if _process is None else None


__all__: list[str] = []
