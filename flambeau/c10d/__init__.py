"""Collectives between processes: stores, transports, process groups. `flambeau.distributed` is its public face.

A store exchanges small values while processes find each other. A transport carries messages between two processes, over
sockets or MPI. A process group runs collectives, which are algorithms over its transport, in the order they were
started.
"""

from __future__ import annotations
