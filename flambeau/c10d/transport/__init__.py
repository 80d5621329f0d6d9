"""Transports: messages between two processes, over sockets or MPI."""

from __future__ import annotations
