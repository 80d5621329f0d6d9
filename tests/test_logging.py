"""`torch._logging`: artifacts and levels."""

from __future__ import annotations

import logging
import subprocess
import sys

import pytest

import flambeau as torch
from flambeau import codegen

logs = torch._logging


@pytest.fixture(autouse=True)
def unset(monkeypatch):
    monkeypatch.delenv("TORCH_LOGS", raising=False)
    monkeypatch.delenv("FLAMBEAU_DEBUG", raising=False)
    yield
    logs.set_logs()


@pytest.fixture
def warnings_of_package():
    """The messages that the package's logger gets."""
    messages = []
    handler = logging.Handler()
    handler.emit = lambda record: messages.append(record.getMessage())
    logging.getLogger("flambeau").addHandler(handler)
    yield messages
    logging.getLogger("flambeau").removeHandler(handler)


def printed(capsys):
    function = torch.compile(lambda x: print(end="") or torch.tanh(x) * 2)
    for n in (3, 3, 4, 4, 5):
        function(torch.ones(n))
    return capsys.readouterr().err


@pytest.mark.skipif(not codegen.available(), reason="nothing is compiled without llvmlite")
def test_artifacts_are_shown_until_others_are_chosen(capsys):
    assert not printed(capsys)
    logs.set_logs(graph_breaks=True)
    assert "graph break" in printed(capsys)
    logs.set_logs(output_code=True)
    assert "kernel 0" in printed(capsys)
    logs.set_logs(bytecode=True)
    assert not printed(capsys)


@pytest.mark.skipif(not codegen.available(), reason="nothing is compiled without llvmlite")
def test_the_environment_variable_takes_precedence(monkeypatch, warnings_of_package, capsys):
    monkeypatch.setenv("TORCH_LOGS", "+dynamo,graph_breaks")
    logs.set_logs(recompiles=True)
    assert [text.rpartition(", ")[2] for text in warnings_of_package] == ["ignoring call to set_logs"]
    assert "graph break" in printed(capsys)


def test_levels():
    logger = logging.getLogger("flambeau.distributed")
    logs.set_logs(distributed=logging.DEBUG, modules={"flambeau.nn.parallel": logging.INFO, "recompiles": False})
    assert (logger.level, logging.getLogger("flambeau.nn.parallel").level) == (logging.DEBUG, logging.INFO)
    logs.set_logs()
    assert logger.level == logging.NOTSET


@pytest.mark.parametrize(("options", "message"), [
    ({"graph_breaks": 3}, "Expected bool to enable artifact graph_breaks, received 3"),
    ({"dynamo": True}, "Unrecognized log level for log dynamo: True, valid level values are: 50,40,30,20,10,0"),
    ({"modules": {"foo": 10}}, "Unrecognized log or artifact name passed to set_logs: foo"),
])
def test_errors_are_pytorchs(options, message):
    expected = pytest.importorskip("torch")._logging
    for library in (logs, expected):
        with pytest.raises(ValueError, match=f"^{message}$"):
            library.set_logs(**options)


def test_artifact_loggers_and_warnings_given_once(warnings_of_package):
    assert logs.getArtifactLogger("torch._dynamo", "graph_breaks").name == "torch._dynamo.__graph_breaks"
    with pytest.raises(ValueError, match="not registered"):
        logs.getArtifactLogger("torch._dynamo", "nothing")
    for _ in range(2):
        logs.warning_once(logging.getLogger("flambeau"), "only %s", "once")
    assert warnings_of_package == ["only once"]


def test_importing_takes_no_logging_module():
    code = "import sys, flambeau; sys.exit('flambeau.environment.logging' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
