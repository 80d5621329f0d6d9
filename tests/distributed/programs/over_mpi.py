"""Process groups of a program that `mpirun` started: values, bytes, bits, timeouts. An error is an exit code."""

from __future__ import annotations

from datetime import timedelta

import numpy as np
import pytest

import flambeau as torch
from flambeau import distributed as dist


def main() -> None:
    """Run in each process."""
    torch.set_num_threads(1)
    dist.init_process_group("gloo")  # under mpirun, over MPI
    rank, size = dist.get_rank(), dist.get_world_size()
    backend = dist.group.WORLD._get_backend(torch.device("cpu"))
    assert type(backend._transport).__name__ == "MPITransport"
    assert backend._collectives is backend._transport
    for count in (3, 4000, 120_000):
        values = [np.random.default_rng(each).standard_normal(count * size).astype(np.float32) for each in range(size)]
        x = torch.tensor(values[rank])
        before = backend.bytes_sent
        dist.all_reduce(x)
        if x.nbytes > 4096:
            assert backend.bytes_sent - before == 2 * (size - 1) * x.nbytes // size
        assert np.allclose(x.numpy(), sum(values), rtol=1e-4, atol=1e-5)
        everywhere = torch.zeros(size, count * size)
        dist.all_gather_into_tensor(everywhere.view(-1), x)
        assert all(torch.equal(each, x) for each in everywhere)  # the same bits
        part = torch.zeros(count)
        dist.reduce_scatter_tensor(part, torch.tensor(values[rank]))
        assert np.allclose(part.numpy(), sum(values)[rank * count:(rank + 1) * count], rtol=1e-4, atol=1e-5)
        out = torch.zeros(count * size)
        dist.all_to_all_single(out, torch.tensor(values[rank]))
        assert np.array_equal(out.numpy()[:count], values[0][rank * count:(rank + 1) * count])
        x = torch.tensor(values[rank])
        dist.broadcast(x, size - 1)
        assert np.array_equal(x.numpy(), values[-1])
    x = torch.ones(5, dtype=torch.bfloat16) * (rank + 1)
    dist.all_reduce(x)
    assert x[0] == size * (size + 1) / 2
    message = torch.ones(2) * rank
    if rank == 0:
        dist.send(message, 1)
    elif rank == 1:
        dist.recv(message, 0)
        assert message.sum() == 0
    if rank == 0:
        backend._set_default_timeout(timedelta(milliseconds=50))
        with pytest.raises(RuntimeError, match=r"Timed out waiting 50ms .* nothing came from rank 1"):
            backend.recv([torch.zeros(1)], 1, 99).wait()
        backend._set_default_timeout(timedelta(seconds=20))
    model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(2, 1))
    model(torch.ones(1, 2) * (rank + 1)).sum().backward()
    assert model.module.weight.grad[0, 0] == (size + 1) / 2
    pair = dist.new_group([0, 1])
    if rank < 2:
        x = torch.ones(1)
        dist.all_reduce(x, group=pair)
        assert x == 2
    dist.barrier()


main()
