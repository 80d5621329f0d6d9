"""`torch.distributed.remote_device`: a device of a process, as specifications of shards name it."""

from __future__ import annotations

from ...devices import device

_FORMATS = "'<workername>/<device>' or 'rank:<rank>/<device>' or '<device>'"


def _is_device(name: str) -> bool:
    try:
        device(name)
    except RuntimeError:
        return False
    return True


class _remote_device:
    """A device of this process, of a rank or of a named worker.

    Args:
        remote_device: `<device>`, `rank:<rank>/<device>` or `<worker>/<device>`; `rank:<rank>` and `<worker>` alone are
            their CPU.

    Raises:
        ValueError: it has another form.
        TypeError: it is no string and no device.

    >>> from flambeau.distributed.remote_device import _remote_device
    >>> place = _remote_device("rank:1/cpu")
    >>> place.rank(), place.device()
    (1, device(type='cpu'))
    """

    def __init__(self, remote_device: str | device) -> None:
        if isinstance(remote_device, device):
            self._remote_device = str(remote_device)
        elif isinstance(remote_device, str):
            self._remote_device = remote_device
        else:
            raise TypeError(f"Invalid type for remote_device: {type(remote_device)}")
        owner, *place = self._remote_device.split("/")
        if not place and _is_device(owner):
            owner, place = "", [owner]
        rank = owner.removeprefix("rank:") if owner.startswith("rank:") else None
        if len(place) > 1 or (not owner and "/" in self._remote_device) or (
                not owner and not place) or (rank is not None and not rank.isdigit()):
            raise ValueError(f"Could not parse remote_device: {remote_device}. The valid format is {_FORMATS}")
        self._device = device(place[0] if place else "cpu")
        self._rank = None if rank is None else int(rank)
        self._worker_name = owner if owner and rank is None else None

    def worker_name(self) -> str | None:
        """The name of the worker; None if there is none."""
        return self._worker_name

    def rank(self) -> int | None:
        """The rank of the process; None if there is none."""
        return self._rank

    def device(self) -> device:
        """The device on that process."""
        return self._device

    def __repr__(self) -> str:
        owner = self._worker_name if self._rank is None else f"rank:{self._rank}"
        return str(self._device) if owner is None else f"{owner}/{self._device}"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _remote_device) and (
            (self._worker_name, self._rank, self._device) == (other._worker_name, other._rank, other._device))

    def __hash__(self) -> int:
        return hash(self._worker_name) ^ hash(self._device) ^ hash(self._rank)


__all__ = ["_remote_device"]
