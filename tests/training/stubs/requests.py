"""Stands in for `requests`: the archive that the graph examples would download, made of the folder `made`."""

from __future__ import annotations

import io
import tarfile


class _Response:
    def __init__(self) -> None:
        self.raw = io.BytesIO()
        with tarfile.open(fileobj=self.raw, mode="w:gz") as archive:
            archive.add("made", "cora")
        self.raw.seek(0)

    def __enter__(self) -> _Response:
        return self

    def __exit__(self, *_: object) -> None:
        pass


def get(url: str, stream: bool = False) -> _Response:
    """The response with the archive, whatever the address."""
    return _Response()
