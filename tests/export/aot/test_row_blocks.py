"""Products of all inputs of a recurrent layer, computed in blocks just before the steps that read them."""

from __future__ import annotations

import pytest

import flambeau as torch
from flambeau import nn
from flambeau.export import Dim, export
from flambeau.runtime import cpu_cache
from tests.export.aot.c_program import run
from tests.export.aot.results import agree, eager

STEPS, WIDTH, HIDDEN = 12, 40, 48


def rows(gates: int) -> int:
    """A batch for which the product of all inputs exceeds the L2 cache."""
    return int(2 * cpu_cache.l2_size() / (4 * STEPS * gates * HIDDEN)) + 3


class Layers(nn.Module):
    """The output and last state of a recurrent network."""

    def __init__(self, kind: type[nn.Module], **options: object) -> None:
        super().__init__()
        self.layers = kind(WIDTH, HIDDEN, **options)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.layers(x)[0]


@pytest.mark.parametrize(("kind", "gates", "options"), [
    (nn.LSTM, 4, {}), (nn.GRU, 3, {"batch_first": True}), (nn.RNN, 1, {"bidirectional": True}),
    (nn.LSTM, 4, {"num_layers": 2, "bias": False})])
def test_recurrent_layers(kind, gates, options, tmp_path):
    torch.manual_seed(0)
    count = rows(gates)
    shape = (count, STEPS, WIDTH) if options.get("batch_first") else (STEPS, count, WIDTH)
    module, args = Layers(kind, **options).eval(), (torch.randn(*shape),)
    expected = eager(module, args)
    path = tmp_path / "layers.so"
    report = export(module, args).save(path, target="native", pack_weights=True)
    agree(run(path, [x.numpy() for x in args], expected)[0], expected)
    if not options:  # the projection of all inputs is never there as a whole
        assert max(report.arenas.values()) < 4 * STEPS * count * gates * HIDDEN


def test_a_dynamic_batch(tmp_path):
    torch.manual_seed(0)
    count = rows(4)
    module, args = Layers(nn.LSTM).eval(), (torch.randn(STEPS, count, WIDTH),)
    path = tmp_path / "layers.so"
    sizes = [1, 2, 7, count - 1, count]
    export(module, args, dynamic_shapes=({1: Dim("batch", min=1, max=count)},)).save(
        path, target="native", sizes={"batch": sizes})
    for size in sizes:
        x = torch.randn(STEPS, size, WIDTH)
        expected = eager(module, (x,))
        agree(run(path, [x.numpy()], expected, sizes=[size])[0], expected)


def test_rows_that_are_read_independently_stay_one_product(tmp_path):
    torch.manual_seed(0)
    count = rows(4)

    class Sums(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.linear = nn.Linear(WIDTH, 4 * HIDDEN)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return torch.stack([(i + 1) * each.tanh() for i, each in enumerate(self.linear(x).unbind(0))])

    module, args = Sums().eval(), (torch.randn(STEPS, count, WIDTH),)
    expected = eager(module, args)
    path = tmp_path / "sums.so"
    export(module, args).save(path, target="native", pack_weights=True)
    agree(run(path, [x.numpy() for x in args], expected)[0], expected)
