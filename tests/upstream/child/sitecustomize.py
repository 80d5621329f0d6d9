"""Makes the Python processes that a test starts see what the test sees."""

from __future__ import annotations

import os
import sys

if "FLAMBEAU_UPSTREAM" in os.environ:
    from tests.upstream.import_hook import install

    install(oracle=os.environ["FLAMBEAU_UPSTREAM"] == "oracle")
    if "FLAMBEAU_UPSTREAM_FILE" in os.environ:
        from tests.upstream.loading import TestFileFinder

        sys.meta_path.insert(0, TestFileFinder(os.path.dirname(os.environ["FLAMBEAU_UPSTREAM_FILE"])))
