"""Events of a launched job, as JSON."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field
from enum import Enum

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


@dataclass
class Event:
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

    name: str
    source: EventSource
    timestamp: int = 0
    metadata: dict[str, EventMetadataValue] = field(default_factory=dict)

    def __str__(self) -> str:
        return self.serialize()

    @staticmethod
    def deserialize(data: str | Event) -> Event:
        """The event of a text.

        Args:
            data: what `serialize` has returned; an event is returned as it is.
        """
        if isinstance(data, Event):
            return data
        fields = json.loads(data)
        fields["source"] = EventSource[fields["source"]]
        return Event(**fields)

    def serialize(self) -> str:
        """The event as JSON."""
        return json.dumps(asdict(self))


@dataclass
class RdzvEvent:
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

    def __str__(self) -> str:
        return self.serialize()

    @staticmethod
    def deserialize(data: str | RdzvEvent) -> RdzvEvent:
        """The event of a text.

        Args:
            data: what `serialize` has returned; an event is returned as it is.
        """
        if isinstance(data, RdzvEvent):
            return data
        fields = json.loads(data)
        fields["node_state"] = NodeState[fields["node_state"]]
        return RdzvEvent(**fields)

    def serialize(self) -> str:
        """The event as JSON."""
        return json.dumps(asdict(self))
