"""Which process a collective fails for: the neighbour that sends nothing may itself wait for another."""

from __future__ import annotations

import re
import threading
import time
from itertools import pairwise

from .stores.store import Store

_NAMED = re.compile(r"rank (\d+)(?!.*rank \d)", re.DOTALL)  # the last one
_PATIENCE = 0.5  # seconds in which the others find out, too
_REACH = 1.0  # seconds more in which the store answers, if it can be reached


def cause(error: RuntimeError, store: Store, number: int, rank: int, size: int) -> RuntimeError:
    """The error of a collective, with what the processes say that it waits for.

    Each process that fails writes into the store whom it waits for. In a ring, that is a neighbour, which may wait for
    its own: the process that they all wait for writes nothing.

    Args:
        error: the error, whose text names a rank.
        store: the group's store.
        number: the collective's number.
        rank, size: this process's number, and how many there are.
    """
    found = _NAMED.search(str(error))
    if not found or not str(error).startswith(("[gloo] Timed out waiting", "Connection closed")):
        return error
    chain: list[int] = []
    # a thread of its own: if the network is gone, the store's client waits for as long as a collective has waited
    asking = threading.Thread(target=_follow, args=(store, number, rank, size, found[1], chain), daemon=True)
    asking.start()
    asking.join(_PATIENCE + _REACH)
    if asking.is_alive() or len(chain) < 3:
        return error
    waits = ", ".join(f"rank {one} waits for rank {other}" for one, other in pairwise(chain[1:]))
    return type(error)(f"{error} ({waits}: look at rank {chain[-1]} first)")


def _follow(store: Store, number: int, rank: int, size: int, named: str, chain: list[int]) -> None:
    """Fill in who waits for whom, from this process on."""
    try:
        store = store.clone()
        store.set(f"fault/{number}/{rank}", named)
        chain += [rank, int(named)]
        end = time.monotonic() + _PATIENCE
        while len(chain) <= size and time.monotonic() < end:
            key = f"fault/{number}/{chain[-1]}"
            if not store.check([key]):
                time.sleep(0.02)
                continue
            following = int(store.get(key))
            if following in chain:
                break
            chain.append(following)
    except Exception:  # the store's process may be the one that is gone
        chain.clear()


__all__ = ["cause"]
