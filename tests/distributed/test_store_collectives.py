"""Collectives through a store."""

from __future__ import annotations

from datetime import timedelta
from multiprocessing.pool import ThreadPool

import pytest

from flambeau import distributed as dist

SOON = timedelta(milliseconds=1)


def test_all_ranks_get_the_results():
    store = dist.HashStore()

    def rank_of_three(rank):
        own = dist._StoreCollectives(store, rank, 3)
        own.barrier("start")
        return (own.all_sum("sum", rank), own.all_gather("all", str(rank)),
                own.gather_recv("one", "a") if rank == 1 else own.gather_send("one", "bcd"[rank]),
                own.scatter_send("each", ["x", "y", "z"]) if rank == 2 else own.scatter_recv("each"),
                own.broadcast_send("whole", "w") if rank == 0 else own.broadcast_recv("whole"))

    with ThreadPool(3) as pool:
        found = pool.map(rank_of_three, range(3))
    every = [b"0", b"1", b"2"]
    assert found == [(3, every, None, b"x", None), (3, every, [b"b", b"a", b"d"], b"y", b"w"),
                     (3, every, None, b"z", b"w")]


def test_missing_ranks_are_named_and_keys_are_used_once():
    own = dist._StoreCollectives(dist.HashStore(), 1, 3)
    for name, call in {"gather": lambda: own.gather_recv("a", "x", SOON), "barrier": lambda: own.barrier("b", SOON),
                       "all_gather": lambda: own.all_gather("c", "x", SOON)}.items():
        with pytest.raises(dist.DistStoreError, match=f"{name} failed -- missing ranks: 0, 2"):
            call()
    with pytest.raises(dist.DistStoreError, match="Wait timeout"):
        own.broadcast_recv("d", SOON)
    with pytest.raises(dist.DistStoreError, match="Key d has already been used"):
        own.broadcast_send("d", "x")
    with pytest.raises(ValueError, match="data of 3 processes, got 1"):
        own.scatter_send("e", ["x"])
