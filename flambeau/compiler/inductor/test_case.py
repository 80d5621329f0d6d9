"""`torch._inductor.test_case`: test cases with a folder of their own for the persistent cache."""

from __future__ import annotations

import contextlib
import os
import tempfile
from unittest import mock

from ..dynamo.test_case import TestCase as DynamoTestCase
from ..dynamo.test_case import run_tests as run_tests


class TestCase(DynamoTestCase):
    """A test case that finds no programs of others in the persistent cache."""

    __test__ = False

    def setUp(self) -> None:
        super().setUp()
        self._inductor_test_stack = contextlib.ExitStack()
        if os.environ.get("INDUCTOR_TEST_DISABLE_FRESH_CACHE") != "1":
            folder = self._inductor_test_stack.enter_context(tempfile.TemporaryDirectory())
            self._inductor_test_stack.enter_context(mock.patch.dict(os.environ, FLAMBEAU_CACHE_DIR=folder))

    def tearDown(self) -> None:
        super().tearDown()
        self._inductor_test_stack.close()


__all__ = ["TestCase", "run_tests"]
