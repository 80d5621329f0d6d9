"""Smoke test of an installed flambeau: run by the interpreter of an environment that holds the wheel alone.

    python .ci/smoke_test.py

Checks that the installed package (of this checkout's version, but not the checkout itself) is imported, that
gradients, modules, optimizers, compiled functions and saved files work, and that the command line answers.
"""

import os
import runpy
import subprocess
import sys
import tempfile
from importlib import metadata
from pathlib import Path

import flambeau as torch


def main() -> None:
    """Run every check; an `AssertionError` or a failed command ends the run."""
    expected = runpy.run_path(str(Path(__file__).resolve().parents[1] / "flambeau" / "version.py"))["__version__"]
    assert "site-packages" in torch.__file__, f"not the installed package: {torch.__file__}"
    assert torch.__version__ == metadata.version("flambeau") == expected, (torch.__version__, expected)

    x = torch.linspace(-1, 1, 5, dtype=torch.float64, requires_grad=True)
    y = torch.tanh(x)
    y.sum().backward()
    assert type(y.grad_fn).__name__ == "TanhBackward0"
    assert torch.allclose(x.grad, 1 - y.detach() ** 2)

    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(2, 16), torch.nn.Tanh(), torch.nn.Linear(16, 1))
    optimizer = torch.optim.Adam(model.parameters(), lr=0.05)
    points = torch.rand(64, 2)
    target = points.prod(dim=1, keepdim=True)
    losses = []
    for _ in range(100):
        optimizer.zero_grad()
        loss = torch.nn.functional.mse_loss(model(points), target)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    assert losses[-1] < losses[0] / 10, losses[::10]

    compiled = torch.compile(lambda a: (a * 2 + 1).relu().sum(0), fullgraph=True)
    for rows in (3, 8, 8):
        a = torch.randn(rows, 4)
        assert torch.allclose(compiled(a), (a * 2 + 1).relu().sum(0), atol=1e-6)

    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "model.pt")
        torch.save(model.state_dict(), path)
        model.load_state_dict(torch.load(path))

    for arguments in (["-m", "flambeau", "--version"], ["-m", "flambeau", "--help"]):
        subprocess.run([sys.executable, *arguments], check=True, stdout=subprocess.DEVNULL)
    print(f"flambeau {expected}: installed, and works")


if __name__ == "__main__":
    main()
