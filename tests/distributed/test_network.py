"""Two hosts, namespaces, whose link is slow, drops packets and is cut: nothing is lost, errors name the rank."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

PROGRAM = Path(__file__).parent / "programs" / "network.py"
HOST = ("unshare", "--user", "--map-root-user", "--net")  # needs no rights where user namespaces are allowed


def _has_links():
    if sys.platform != "linux" or not all(map(shutil.which, ("unshare", "nsenter", "ip", "tc"))):
        return False
    script = ("ip link add here type veth peer name there && tc qdisc add dev here root tbf rate 1mbit burst 16kb "
              "limit 24kb")
    return subprocess.run((*HOST, "sh", "-c", script), capture_output=True).returncode == 0


@pytest.fixture(scope="module")
def reports(tmp_path_factory):
    """What both ranks saw."""
    if not _has_links():
        pytest.skip("network namespaces with limited links are not allowed here")
    folder = tmp_path_factory.mktemp("hosts")
    done = subprocess.run((*HOST, sys.executable, str(PROGRAM), str(folder)), capture_output=True, text=True,
                          timeout=180)
    assert done.returncode == 0, done.stderr[-4000:]
    return [json.loads((folder / f"report{rank}").read_text()) for rank in range(2)]


def test_training_goes_on_where_the_link_was_cut(reports):
    assert reports[0]["dropped"]  # the link did lose packets
    for report in reports:
        before, after = report["losses"]
        assert list(before) == ["0", "1", "2"]
        assert list(after) == ["3", "4", "5"]  # from the last checkpoint on, without a step twice
        assert [*before.values(), *after.values()] == pytest.approx(report["alone"], abs=1e-5)


def test_a_cut_link_is_an_error_that_names_the_other_rank(reports):
    for rank, report in enumerate(reports):
        assert report["error"].startswith("[gloo] Timed out waiting 2000ms for recv operation")
        assert f"rank {1 - rank}" in report["error"]
        assert report["seconds"] < 15


def test_a_message_that_does_not_fit_into_the_system_ends_with_its_timeout(reports):
    (sent, seconds), (received, _) = reports[0]["large"], reports[1]["large"]
    assert sent == "[gloo] Timed out waiting 2000ms for send operation to complete: a message did not reach rank 1"
    assert seconds < 15
    assert received == "[gloo] Timed out waiting 2000ms for recv operation to complete: nothing came from rank 0"
