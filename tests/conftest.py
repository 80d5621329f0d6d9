"""Fixtures of all tests, the check of skipped tests against `skips.txt`, and the record of durations."""

from __future__ import annotations

import contextlib
import gc
import importlib
import os
import shutil
import sys
from collections import Counter
from collections.abc import Generator, Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest
from _pytest.runner import runtestprotocol

# Before PyTorch is imported: its idle threads spin for milliseconds, on the core of another worker.
os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")

import flambeau
from flambeau.modes import special

SKIPS = Path(__file__).with_name("skips.txt")
DURATIONS = Path(__file__).with_name("durations.txt")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--store-durations", action="store_true",
                     help="write the seconds of each test file to tests/durations.txt, which `make quick` reads")


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_collection() -> Generator[None, Any, Any]:
    """Collected tests and imported modules stay: garbage collections in between are a third of the time."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.enable()


@pytest.hookimpl(trylast=True)
def pytest_collection_finish() -> None:
    """Collected tests and imported modules stay: no later collection walks through them, and there are fewer."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(7000, 20, 20)
    seed_the_cpu_only()


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_protocol(item: pytest.Item, nextitem: pytest.Item | None) -> bool | None:
    """Workers send one message a test, not five: no passed set-ups and tear-downs, unless durations are stored."""
    if not hasattr(item.config, "workerinput") or item.config.getoption("--store-durations"):
        return None
    for report in runtestprotocol(item, nextitem=nextitem, log=False):
        if report.when == "call" or not report.passed:
            item.ihook.pytest_runtest_logreport(report=report)
    return True


_marks = [0]  # `special[0]` before the last test


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup() -> None:
    """A meta tensor in a cycle, such as that of a caught error and its frame, leaves no mark for the next test.

    While one lives, operators take the general path, and functions are not compiled.
    """
    collect_marks(_marks[0])
    _marks[0] = special[0]


def collect_marks(kept: int) -> None:
    """Collect garbage while `special` is above a number; first without the objects of earlier tests.

    Those are millions at the end of a run: a collection of all takes a third of a second.
    """
    for generation in (1, 2):
        if special[0] > kept:
            gc.collect(generation)


def seed_the_cpu_only() -> None:
    """Without a GPU, PyTorch formats the stack and queues a call for three devices at each `manual_seed`."""
    seeding = sys.modules.get("torch.random")
    if hasattr(seeding, "_manual_seed_impl"):
        seeding._manual_seed_impl = lambda seed: seeding.default_generator.manual_seed(int(seed))


@pytest.fixture(scope="module")
def every_warning() -> Iterator[None]:
    """Warnings that are given once a process are given every time, in both libraries; each test sees the same."""
    libraries = [flambeau]
    with contextlib.suppress(ModuleNotFoundError):
        libraries.append(importlib.import_module("torch"))
    for library in libraries:
        library.set_warn_always(True)
    yield
    for library in libraries:
        library.set_warn_always(False)


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    """A headless Chromium, driven by Playwright."""
    playwright = pytest.importorskip("playwright.sync_api", reason="Playwright is not installed")
    program = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    with playwright.sync_playwright() as runner:
        try:
            running = runner.chromium.launch(executable_path=program, args=["--no-sandbox"])
        except playwright.Error as error:
            pytest.skip(f"no Chromium to run: {str(error).splitlines()[0]}")
        yield running
        running.close()


@pytest.fixture
def compiled_matmuls(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """All matmuls run on compiled kernels, if available, whatever their size."""
    from flambeau.backends.compiled.families import matmul

    kernels = matmul.kernels()
    if kernels is None:
        yield
        return
    monkeypatch.setattr(kernels, "dispatches", {})
    monkeypatch.setattr(kernels.crossovers, "limits", dict.fromkeys(kernels.crossovers.limits, 0))
    yield
    kernels.dispatches.clear()


def listed_skips() -> dict[tuple[str, str], int]:
    """The known skips: (test file, reason) -> the maximal number of tests."""
    listed = {}
    for line in SKIPS.read_text(encoding="utf-8").splitlines():
        if line.strip() and not line.startswith("#"):
            count, path, reason = line.split(maxsplit=2)
            listed[path, reason] = int(count)
    return listed


def unlisted(skipped: Iterable[tuple[str, str]], listed: dict[tuple[str, str], int]) -> list[str]:
    """Skips that are not listed, or more frequent than listed; one line each."""
    return [f"{count} {path} {reason} (listed: {listed.get((path, reason), 0)})"
            for (path, reason), count in sorted(Counter(skipped).items()) if count > listed.get((path, reason), 0)]


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session: pytest.Session) -> None:
    """Where `FLAMBEAU_STRICT_SKIPS` is set, as in CI, a skip that is not listed fails the run."""
    reporter = session.config.pluginmanager.get_plugin("terminalreporter")
    if "FLAMBEAU_STRICT_SKIPS" not in os.environ or reporter is None or hasattr(session.config, "workerinput"):
        return
    skipped = []
    for report in reporter.stats.get("skipped", []):
        path, _, reason = report.longrepr if isinstance(report.longrepr, tuple) else (report.fspath, 0, "")
        skipped.append((str(Path(path).resolve().relative_to(SKIPS.parent)), reason.removeprefix("Skipped: ")))
    new = unlisted(skipped, listed_skips())
    if new:
        reporter.write_line("\nskipped, and not listed in tests/skips.txt:\n" + "\n".join(new), red=True)
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


@pytest.hookimpl(tryfirst=True)
def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    """With `--store-durations`, write each test file's seconds (set-up and tear-down included)."""
    if not config.getoption("--store-durations"):
        return
    seconds: Counter[str] = Counter()
    for reports in terminalreporter.stats.values():
        for report in reports:
            if isinstance(report, pytest.TestReport):
                path = (config.rootpath / report.nodeid.partition("::")[0]).relative_to(DURATIONS.parent)
                seconds[path.as_posix()] += report.duration
    DURATIONS.write_text("# Seconds of one processor, test file: written by `make test ARGS=--store-durations`.\n"
                         + "".join(f"{spent:.1f} {path}\n" for path, spent in sorted(seconds.items())), "utf-8")
