"""Optimizers' steps as one launch over many tensors, emulated."""

from __future__ import annotations

import numpy as np
import pytest

from flambeau.codegen.gpu import multi_tensor
from flambeau.codegen.gpu.emulation import emulator
from flambeau.codegen.scalar.scalar_ir import variable
from tests.codegen.gpu.assembling import assemble

RANDOM = np.random.default_rng(0)
SIZES = [5000, 1, 300, 4096]


def run(step, operands, scalars):
    """Run a step on lists of arrays, one list for each operand."""
    chunks = step.chunks([each.size for each in operands[0]])
    launch = step.launch(len(chunks), scalars)
    tables = [np.array(each, np.int64) for each in ([a.size for a in operands[0]], *zip(*chunks, strict=True))]
    emulator.run(launch.kernel, launch.grid, [*map(emulator.Table, operands), *tables, *launch.scalars])


def test_adamw_is_pytorchs():
    torch = pytest.importorskip("torch")
    values, gradients = ([RANDOM.standard_normal(n) for n in SIZES] for _ in range(2))
    parameters = [torch.tensor(each, requires_grad=True) for each in values]
    optimizer = torch.optim.AdamW(parameters, lr=0.01, betas=(0.8, 0.95), weight_decay=0.1)
    state = [values, gradients, [np.zeros(n) for n in SIZES], [np.zeros(n) for n in SIZES]]
    step = multi_tensor.adamw("float64")
    for t in range(1, 3):
        for parameter, gradient in zip(parameters, gradients, strict=True):
            parameter.grad = torch.tensor(gradient)
        optimizer.step()
        run(step, state, [1 - 0.01 * 0.1, 0.8, 0.95, 0.01 / (1 - 0.8**t), np.sqrt(1 - 0.95**t), 1e-8])
    for mine, other in zip(values, parameters, strict=True):
        np.testing.assert_allclose(mine, other.detach().numpy(), rtol=1e-12)


@pytest.mark.parametrize("nesterov", [False, True])
def test_sgd_is_pytorchs(nesterov):
    torch = pytest.importorskip("torch")
    values, gradients = ([RANDOM.standard_normal(n) for n in SIZES] for _ in range(2))
    parameters = [torch.tensor(each, requires_grad=True) for each in values]
    optimizer = torch.optim.SGD(parameters, lr=0.1, momentum=0.9, weight_decay=0.01, nesterov=nesterov)
    buffers = [np.zeros(n) for n in SIZES]
    step = multi_tensor.sgd("float64", nesterov)
    for _ in range(2):
        for parameter, gradient in zip(parameters, gradients, strict=True):
            parameter.grad = torch.tensor(gradient)
        optimizer.step()
        run(step, [values, gradients, buffers], [0.1, 0.9, 1.0, 0.01])
    for mine, other in zip(values, parameters, strict=True):
        np.testing.assert_allclose(mine, other.detach().numpy(), rtol=1e-12)


def test_targets_are_checked():
    x = variable(0, "float32")
    with pytest.raises(ValueError, match=r"2 results into operands \[0, 0\] of 1"):
        multi_tensor.MultiTensor([x, x], [0, 0], ["float32"])


def test_steps_are_assembled():
    assemble([multi_tensor.adamw("float32").kernel, multi_tensor.adamw("float16").kernel,
              multi_tensor.sgd("float32").kernel])
