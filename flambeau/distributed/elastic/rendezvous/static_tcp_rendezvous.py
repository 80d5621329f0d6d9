"""The static rendezvous: ranks of machines and the address of the first one are given."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from ....c10d.stores import PrefixStore, TCPStore
from .api import RendezvousHandler, RendezvousInfo, RendezvousParameters, RendezvousStoreInfo
from .utils import parse_rendezvous_endpoint

__all__ = ["StaticTCPRendezvous", "create_rdzv_handler"]

_TIMEOUT = 600


class StaticTCPRendezvous(RendezvousHandler):
    """A store that the first machine serves.

    Args:
        master_addr, master_port: where it is.
        rank: this machine's number.
        world_size: how many there are.
        run_id: the job's name.
        timeout: seconds.
    """

    def __init__(self, master_addr: str, master_port: int, rank: int, world_size: int, run_id: str,
                 timeout: int) -> None:
        self.master_addr, self.master_port, self.rank, self.world_size = master_addr, master_port, rank, world_size
        self.run_id, self.timeout = run_id, timedelta(seconds=timeout)
        self._store: Any = None

    def get_backend(self) -> str:
        return "static"

    @property
    def use_agent_store(self) -> bool:
        return True

    def next_rendezvous(self) -> RendezvousInfo:
        if self._store is None:
            self._store = TCPStore(self.master_addr, self.master_port, self.world_size, self.rank == 0, self.timeout,
                                   multi_tenant=True)
        return RendezvousInfo(PrefixStore(self.run_id, self._store), self.rank, self.world_size,
                              RendezvousStoreInfo(self.master_addr, self.master_port))

    def is_closed(self) -> bool:
        return False

    def set_closed(self) -> None:
        """Machines that are known cannot be kept away."""

    def num_nodes_waiting(self) -> int:
        return 0

    def get_run_id(self) -> str:
        return self.run_id

    def shutdown(self) -> bool:
        return True


def create_rdzv_handler(params: RendezvousParameters) -> RendezvousHandler:
    """The handler of "static".

    Args:
        params: with `rank`, and a port in the endpoint.

    Raises:
        ValueError: one is missing (PyTorch's texts).

    >>> from flambeau.distributed.elastic.rendezvous import RendezvousParameters
    >>> from flambeau.distributed.elastic.rendezvous.static_tcp_rendezvous import create_rdzv_handler
    >>> create_rdzv_handler(RendezvousParameters("static", "host:1", "job", 1, 1, rank=0)).get_run_id()
    'job'
    """
    if "rank" not in params.config:
        raise ValueError("rank is absent in RendezvousParameters.Try add --node-rank to the cmd request")
    endpoint = params.endpoint.strip()
    if not endpoint:
        raise ValueError("endpoint is absent in RendezvousParametersTry add --master-port and --master-addr to the "
                         "cmd request")
    host, port = parse_rendezvous_endpoint(endpoint, -1)
    if port == -1:
        raise ValueError(f"Port is absent in endpoint: {endpoint}. Try launching with --master-port")
    return StaticTCPRendezvous(host, port, params.config["rank"], params.max_nodes, params.run_id,
                               int(params.config.get("timeout", _TIMEOUT)))
