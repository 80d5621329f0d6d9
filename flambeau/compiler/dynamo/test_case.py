"""`torch._dynamo.test_case`: test cases before and after which the compiler forgets its programs and counters."""

from __future__ import annotations

import contextlib
import importlib
import sys
import unittest
from typing import Any

import flambeau as torch

from . import config, reset, utils

# tests that know this package as `torch` may have another module of this name
_package = "torch" if sys.modules.get("torch") is torch else torch.__name__
common_utils: Any = importlib.import_module(f"{_package}.testing._internal.common_utils")


def run_tests(needs: str | tuple[str, ...] = ()) -> None:
    """Run the tests of the main module, if modules exist.

    Args:
        needs: names of modules, or "cuda" for a device.
    """
    for need in (needs,) if isinstance(needs, str) else needs:
        if need == "cuda":
            if not torch.cuda.is_available():
                return
        else:
            try:
                importlib.import_module(need)
            except ImportError:
                return
    unittest.main()


class TestCase(common_utils.TestCase):  # type: ignore[misc]
    """A test case with compiled functions."""

    __test__ = False
    _exit_stack: contextlib.ExitStack

    @classmethod
    def setUpClass(cls) -> None:
        super().setUpClass()
        cls._exit_stack = contextlib.ExitStack()
        cls._exit_stack.enter_context(config.patch(raise_on_ctx_manager_usage=True, suppress_errors=False,
                                                   log_compilation_metrics=False))

    @classmethod
    def tearDownClass(cls) -> None:
        cls._exit_stack.close()
        super().tearDownClass()

    def setUp(self) -> None:
        self._prior_is_grad_enabled = torch.is_grad_enabled()
        super().setUp()
        reset()
        utils.counters.clear()

    def tearDown(self) -> None:
        reset()
        utils.counters.clear()
        super().tearDown()
        torch.set_grad_enabled(self._prior_is_grad_enabled)

    def assertExpectedInline(self, actual: Any, expect: str, skip: int = 0) -> None:
        """Compare a text with the one that a test contains, whose indentation is not counted."""
        import textwrap

        self.assertEqual(str(actual).strip(), textwrap.dedent(expect).strip())  # noqa: PT009


__all__ = ["TestCase", "run_tests"]
