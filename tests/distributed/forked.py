"""Ranks as forked processes of a test."""

from __future__ import annotations

import os
import warnings

import flambeau as torch
from flambeau import distributed as dist


def processes(size, body, folder):
    """`body(rank)` of each rank in its own process, with the default group; their wait statuses.

    Args:
        folder: where the processes meet.
    """
    children = []
    store = folder / f"store{len(os.listdir(folder))}"
    for rank in range(size):
        child = os.fork()
        if not child:
            status = 1
            try:
                warnings.simplefilter("ignore")
                torch.set_num_threads(1)
                dist.init_process_group("gloo", init_method=f"file://{store}", rank=rank, world_size=size)
                body(rank)
                status = 0
            except BaseException:
                import traceback

                traceback.print_exc()
            finally:
                os._exit(status)
        children.append(child)
    return [os.waitpid(child, 0)[1] for child in children]
