"""Events of a launched job, as JSON."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field
from enum import Enum
from typing import ClassVar, Self

__all__ = ["Event", "EventMetadataValue", "EventSource", "NodeState", "RdzvEvent"]

EventMetadataValue = str | int | float | bool | None


class EventSource(str, Enum):  # noqa: UP042 - PyTorch's class: its `str` has the class name
    """Who makes an event: a launcher or a process that it has started."""

    AGENT = "AGENT"
    WORKER = "WORKER"


class NodeState(str, Enum):  # noqa: UP042
    """States of a machine in a rendezvous."""

    INIT = "INIT"
    RUNNING = "RUNNING"
    SUCCEEDED = "SUCCEEDED"
    FAILED = "FAILED"


class _Record:
    """Fields that are written as JSON and read again; `_ENUMERATION` names the one that is a member, and of what."""

    _ENUMERATION: ClassVar[tuple[str, type[Enum]]]

    def __str__(self) -> str:
        return self.serialize()

    @classmethod
    def deserialize(cls, data: str | Self) -> Self:
        """The event of a text.

        Args:
            data: what `serialize` has returned; an event is returned as it is.
        """
        if isinstance(data, cls):
            return data
        fields = json.loads(data)  # type: ignore[arg-type]
        name, members = cls._ENUMERATION
        fields[name] = members[fields[name]]
        return cls(**fields)

    def serialize(self) -> str:
        """The event as JSON."""
        return json.dumps(asdict(self))  # type: ignore[call-overload]


@dataclass
class Event(_Record):
    """Something that has happened in a job.

    Args:
        name: what.
        source: who says so.
        timestamp: when, in milliseconds.
        metadata: anything else.

    >>> from flambeau.distributed.elastic.events import Event, EventSource
    >>> event = Event("started", EventSource.AGENT)
    >>> Event.deserialize(str(event)) == event
    True
    """

    _ENUMERATION = "source", EventSource

    name: str
    source: EventSource
    timestamp: int = 0
    metadata: dict[str, EventMetadataValue] = field(default_factory=dict)


@dataclass
class RdzvEvent(_Record):
    """Something that has happened in a rendezvous.

    Args:
        name: what.
        run_id: the job.
        message: about it.
        hostname, pid: who says so.
        node_state: the state of that machine.
        master_endpoint: where the store is, if that is known.
        rank: the machine's number, if that is known.
        local_id: the handler's number in its process.
        error_trace: the traceback of an error.

    >>> from flambeau.distributed.elastic.events import NodeState, RdzvEvent
    >>> event = RdzvEvent("join", "job", "1 of 2", "host", 3, NodeState.INIT)
    >>> RdzvEvent.deserialize(event.serialize()).message
    '1 of 2'
    """

    _ENUMERATION = "node_state", NodeState

    name: str
    run_id: str
    message: str
    hostname: str
    pid: int
    node_state: NodeState
    master_endpoint: str = ""
    rank: int | None = None
    local_id: int | None = None
    error_trace: str = ""
