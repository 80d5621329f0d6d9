"""`torch.utils.flop_counter` and `module_tracker` compared with PyTorch: counts by module and operator, and tables."""

from __future__ import annotations

import importlib
import warnings
from typing import Any

import pytest

import flambeau

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.parity


def _network(module: Any) -> Any:
    nn = module.nn

    class Net(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.f = nn.Sequential(nn.Conv2d(3, 8, 3, padding=1), nn.ReLU(), nn.Conv2d(8, 8, 3, groups=2, stride=2))
            self.a = nn.TransformerEncoderLayer(8, 2, 16, batch_first=True)
            self.t = nn.ConvTranspose1d(8, 4, 3)
            self.l, self.ln = nn.Linear(4, 5), nn.LayerNorm(8)

        def forward(self, x: Any) -> Any:
            x = self.ln(self.a(self.f(x).flatten(2).transpose(1, 2)))
            return self.l(self.t(x.transpose(1, 2)).mean(2))

    return Net()


def _counts(module: Any) -> list[Any]:
    mode = importlib.import_module(f"{module.__name__}.utils.flop_counter").FlopCounterMode
    found: list[Any] = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        net, x = _network(module), module.ones(2, 3, 10, 10)
        for depth in (1, 3):
            with mode(depth=depth, display=False) as counter:
                net(x).sum().backward()
            found += [counter.get_table(), counter.get_total_flops(),
                      {k: {str(op): n for op, n in v.items()} for k, v in counter.get_flop_counts().items()}]
        with mode(display=False) as counter:
            module.bmm(module.ones(2, 3, 4), module.ones(2, 4, 1))
            module.ones(3, 4) @ module.ones(4, 5)
        found.append(counter.get_table())
        with mode(display=False) as counter:
            module.ones(3) + 1
        found.append(counter.get_table())
        with mode(display=False, custom_mapping={module.ops.aten.add: lambda *args, **named: 7}) as counter:
            module.ones(3) + 1
        found.append(counter.get_total_flops())
    return found


def test_counts() -> None:
    assert _counts(flambeau) == _counts(torch)


def test_registration() -> None:
    """A formula is registered once, and for overload packets only."""
    from flambeau.utils.flop_counter import register_flop_formula

    with pytest.raises(RuntimeError, match="duplicate registrations"):
        register_flop_formula(flambeau.ops.aten.mm)(lambda *shapes, **named: 0)
    with pytest.raises(ValueError, match="OpOverloadPacket"):
        register_flop_formula(flambeau.ops.aten.mm.default)(lambda *shapes, **named: 0)
