"""The backend "fake", which this import registers: one process plays one of many, and exchanges nothing.

    from torch.testing._internal.distributed.fake_pg import FakeStore
    torch.distributed.init_process_group("fake", store=FakeStore(), rank=0, world_size=8)
"""

from __future__ import annotations

from typing import Any

from .... import distributed as dist
from ....c10d.fake import FakeProcessGroup


class FakeStore(dist.Store):
    """A store that holds nothing, for `init_process_group("fake", store=FakeStore(), ...)`.

    >>> import flambeau.distributed as dist
    >>> dist.init_process_group("fake", store=FakeStore(), rank=1, world_size=4)
    >>> dist.get_rank(), dist.get_world_size()
    (1, 4)
    >>> dist.destroy_process_group()
    """


def _create_fake_pg(common_opts: Any, backend_opts: Any) -> FakeProcessGroup:
    return FakeProcessGroup(common_opts.group_rank, common_opts.group_size, backend_opts)


dist.Backend.register_backend(dist.Backend.FAKE, _create_fake_pg, extended_api=True,
                              devices=["cpu", "cuda", "hpu", "xpu"])

__all__ = ["FakeProcessGroup", "FakeStore"]
