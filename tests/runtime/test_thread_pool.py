"""The threads of kernels: programs do not see them among their own."""

from __future__ import annotations

import subprocess
import sys
import textwrap

PROGRAM = """
    import threading
    import flambeau as torch

    torch.set_num_threads(3)
    before = threading.active_count()
    x = torch.ones(1 << 22)
    (x.sin() * 2).sum()
    torch.set_num_threads(2)
    (x.sin() * 2).sum()
    from flambeau.runtime import thread_pool

    assert thread_pool._pool is not None and len(thread_pool._pool._threads) == 2, thread_pool._pool
    print(threading.active_count() - before, [thread.name for thread in threading.enumerate()])
"""


def test_programs_do_not_see_the_threads_of_kernels():
    done = subprocess.run([sys.executable, "-c", textwrap.dedent(PROGRAM)], capture_output=True, text=True, check=True,
                          timeout=120)
    assert done.stdout.split()[0] == "0"
    assert "MainThread" in done.stdout
    assert "kernel" not in done.stdout
    assert not done.stderr
