"""Makes the Python processes that a test starts see what the test sees."""

from __future__ import annotations

import os

if "FLAMBEAU_UPSTREAM" in os.environ:
    from tests.upstream.import_hook import install

    install(oracle=os.environ["FLAMBEAU_UPSTREAM"] == "oracle")
