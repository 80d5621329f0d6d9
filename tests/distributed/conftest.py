from __future__ import annotations

import pytest

from .ranks import end_fork_servers


@pytest.fixture(autouse=True, scope="package")
def servers_end():
    """Processes that fork ranks end after the last test of this folder."""
    yield
    end_fork_servers()
