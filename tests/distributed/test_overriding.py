"""Collectives that handlers of `__torch_function__` replace, and processes that have none."""

from __future__ import annotations

import subprocess
import sys

import pytest

import flambeau as torch
from flambeau.overrides import TorchFunctionMode

dist = torch.distributed


@pytest.fixture
def group():
    dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
    yield dist.group.WORLD
    dist.destroy_process_group()


def test_subclasses_and_modes_see_collectives(group):
    seen = []

    class Seeing(torch.Tensor):
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            seen.append(func)
            return super().__torch_function__(func, types, args, kwargs or {})

    class Mode(TorchFunctionMode):
        def __torch_function__(self, func, types, args=(), kwargs=None):
            seen.append(func)
            return func(*args, **(kwargs or {}))

    dist.all_reduce(torch.ones(2).as_subclass(Seeing))
    dist.broadcast(torch.ones(2), 0)
    assert dist.all_reduce in seen
    assert dist.broadcast not in seen
    with Mode():
        dist.broadcast(torch.ones(2), 0)
    assert dist.broadcast in seen


def test_processes_without_handlers_do_not_watch_all_functions():
    program = ("import sys, flambeau as torch; d = torch.distributed; "
               "d.init_process_group('gloo', store=d.HashStore(), rank=0, world_size=1); d.all_reduce(torch.ones(2)); "
               "model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(2, 2)); "
               "model(torch.ones(1, 2)).sum().backward(); d.destroy_process_group(); "
               "print('flambeau.overrides' in sys.modules)")
    assert subprocess.check_output([sys.executable, "-c", program], text=True) == "False\n"
