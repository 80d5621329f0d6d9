"""DataParallel on a CPU: calls the wrapped module."""

from __future__ import annotations

from tests.autograd.differential import same


def test_data_parallel_runs_its_module():
    def program(torch):
        torch.manual_seed(3)
        model = torch.nn.DataParallel(torch.nn.Linear(2, 3))
        y = model(torch.ones(4, 2))
        return y, y.grad_fn.name(), list(model.state_dict()), model.device_ids, repr(model)

    same(program)
