"""What the processes of a group tell each other before they have connections: one value each, through the store."""

from __future__ import annotations

from datetime import timedelta

from ..errors import DistStoreError
from ..stores.store import Store


def exchange(store: Store, name: str, value: str, rank: int, size: int, timeout: timedelta) -> list[str]:
    """Give a value to all processes of a group; the values of all, by rank.

    Raises:
        DistStoreError: processes have not come in time; the text names their ranks.
    """
    store.set(f"{name}/{rank}", value)
    keys = [f"{name}/{each}" for each in range(size)]
    try:
        store.wait(keys, timeout)
    except RuntimeError as error:
        missing = [str(each) for each, key in enumerate(keys) if not store.check([key])]
        names = f"rank {missing[0]} has" if len(missing) == 1 else f"ranks {', '.join(missing)} have"
        raise DistStoreError(f"{error}: {names} not joined the process group") from None
    return [each.decode() for each in store.multi_get(keys)]


__all__ = ["exchange"]
