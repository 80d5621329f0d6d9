"""Random sessions of training, compiled: small models and optimizers, with a change by the user before most steps.

    python -m tests.random_programs.sessions --sessions 300
    python -m tests.random_programs.sessions --replay 1234

A session is a model of random blocks, an optimizer, a loss and what of the step is compiled: all of it, its forward, or
the model. Before a step the user may freeze a parameter, give it other data or a gradient, put a hook on, load a state,
change a hyperparameter, replace a layer. After every step parameters, buffers, gradients and what the optimizer
remembers are held against the same session run eagerly, in float64. Optimizers that follow the sign of a gradient are
left out: where it is zero but for rounding, two right sessions differ.
"""

from __future__ import annotations

import argparse
import copy
import sys
import time
import warnings
from collections.abc import Callable
from random import Random
from typing import Any

import numpy as np

import flambeau as torch
from flambeau import nn
from flambeau.nn import functional as F

STEPS = 16
#: steps before the first change
QUIET = 3
_DTYPE = torch.float64


class Residual(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.inner, self.scale = nn.Linear(width, width), 0.5

    def forward(self, x: Any) -> Any:
        return x + self.scale * torch.tanh(self.inner(x))


class Attention(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.project, self.causal = nn.Linear(width, 3 * width), False

    def forward(self, x: Any) -> Any:
        query, key, value = self.project(x).unsqueeze(0).chunk(3, -1)
        return x + F.scaled_dot_product_attention(query, key, value, is_causal=self.causal).squeeze(0)


class Embedded(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.table, self.count = nn.Embedding(7, width), 7

    def forward(self, x: Any) -> Any:
        return x + self.table((x.detach()[:, 0] * 10).long().abs() % self.count)


class Joined(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.inner = nn.Linear(2 * width, width)

    def forward(self, x: Any) -> Any:
        return self.inner(torch.cat([x, x.flip(0)], 1))


class Counting(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.inner = nn.Linear(width, 2 * width)
        self.register_buffer("count", torch.zeros(()))

    def forward(self, x: Any) -> Any:
        if self.training:
            self.count += 1
        a, b = self.inner(x).chunk(2, 1)
        return a * torch.sigmoid(b) * (1 + 0.01 * self.count)


class Tied(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.randn(width, width) * 0.3)

    def forward(self, x: Any) -> Any:
        return torch.tanh(x @ self.weight) @ self.weight.t()


class Adapted(nn.Module):
    """A frozen layer plus a product of two thin matrices (LoRA)."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.base, self.scale = nn.Linear(width, width), 2.0
        self.base.weight.requires_grad_(False)
        self.down, self.up = nn.Parameter(torch.randn(width, 2) * 0.1), nn.Parameter(torch.zeros(2, width))

    def forward(self, x: Any) -> Any:
        return self.base(x) + self.scale * (x @ self.down @ self.up)


BLOCKS: tuple[Callable[[Random, int], Any], ...] = (
    lambda rng, n: nn.Sequential(nn.Linear(n, n, bias=rng.random() < 0.7),
                                 rng.choice([nn.ReLU, nn.Tanh, nn.GELU, nn.SiLU, nn.Sigmoid, nn.ELU])()),
    lambda rng, n: nn.Sequential(nn.Linear(n, 2 * n), nn.ReLU(inplace=rng.random() < 0.5), nn.Linear(2 * n, n)),
    lambda rng, n: nn.LayerNorm(n), lambda rng, n: nn.RMSNorm(n), lambda rng, n: nn.GroupNorm(2, n),
    lambda rng, n: nn.BatchNorm1d(n, affine=rng.random() < 0.7, momentum=rng.choice([0.1, None])),
    lambda rng, n: nn.Dropout(rng.choice([0.1, 0.5])), lambda rng, n: Residual(n), lambda rng, n: Attention(n),
    lambda rng, n: Embedded(n), lambda rng, n: Joined(n), lambda rng, n: Counting(n), lambda rng, n: Tied(n),
    lambda rng, n: Adapted(n))

_OPTIM = torch.optim
OPTIMIZERS: tuple[Callable[[Random, Any], Any], ...] = (
    lambda rng, p: _OPTIM.SGD(p, lr=0.05, weight_decay=rng.choice([0, 0.01])),
    lambda rng, p: _OPTIM.SGD(p, lr=0.05, momentum=0.9, nesterov=rng.random() < 0.5),
    lambda rng, p: _OPTIM.Adam(p, lr=0.01, amsgrad=rng.random() < 0.5), lambda rng, p: _OPTIM.AdamW(p, lr=0.01),
    lambda rng, p: _OPTIM.RMSprop(p, lr=0.01, centered=rng.random() < 0.5), lambda rng, p: _OPTIM.Adagrad(p, lr=0.05),
    lambda rng, p: _OPTIM.Adadelta(p), lambda rng, p: _OPTIM.NAdam(p, lr=0.01), lambda rng, p: _OPTIM.RAdam(p, lr=0.01),
    lambda rng, p: _OPTIM.ASGD(p, lr=0.01))

LOSSES: tuple[Callable[[Any, Any], Any], ...] = (
    F.cross_entropy, lambda out, y: F.nll_loss(F.log_softmax(out, -1), y),
    lambda out, y: F.cross_entropy(out, y, label_smoothing=0.1),
    lambda out, y: F.mse_loss(out, F.one_hot(y, 3).to(_DTYPE)))

#: what of a step is compiled
PARTS = ("step", "forward", "forward and backward", "model")


class Session:
    """A model in training, and what a user does to it."""

    def __init__(self, seed: int, compiled: bool) -> None:
        rng = self.rng = Random(seed)
        torch.manual_seed(seed)
        self.width = rng.choice([4, 6, 8])
        blocks = [rng.choice(BLOCKS)(rng, self.width) for _ in range(rng.randint(1, 4))]
        self.model = nn.Sequential(*blocks, nn.Linear(self.width, 3)).to(_DTYPE)
        params = [p for p in self.model.parameters() if p.requires_grad]
        half = len(params) // 2
        in_groups = half > 0 and rng.random() < 0.3
        self.optimizer = rng.choice(OPTIMIZERS)(rng, [{"params": params[:half]}, {"params": params[half:], "lr": 0.02}]
                                                if in_groups else params)
        self.loss, self.part = rng.choice(LOSSES), rng.choice(PARTS)
        self.clip, self.to_none = rng.choice([None, None, 1.0, "value"]), rng.random() < 0.7
        self.rounds, self.noise, self.scale = rng.choice([1, 1, 2]), rng.random() < 0.3, 1.0
        self.hook: Any = None
        run = {"step": self._whole, "forward": self._forward, "forward and backward": self._back_and_forth,
               "model": self.model}[self.part]
        self.run = torch.compile(run) if compiled else run

    def _forward(self, x: Any, y: Any) -> Any:
        if self.noise:
            x = x + 0.1 * torch.randn_like(x)
        return self.loss(self.model(x) * self.scale, y)

    def _back_and_forth(self, x: Any, y: Any) -> Any:
        loss = self._forward(x, y)
        loss.backward()
        return loss

    def _whole(self, x: Any, y: Any) -> Any:
        self.optimizer.zero_grad(set_to_none=self.to_none)
        for _ in range(self.rounds):
            loss = self._forward(x, y) / self.rounds
            loss.backward()
        if self.clip == "value":
            nn.utils.clip_grad_value_(self.model.parameters(), 0.1)
        elif self.clip is not None:
            nn.utils.clip_grad_norm_(self.model.parameters(), self.clip)
        self.optimizer.step()
        return loss

    def step(self, x: Any, y: Any) -> Any:
        """One step of training; its loss."""
        if self.part == "step":
            return self.run(x, y)
        self.optimizer.zero_grad(set_to_none=self.to_none)
        loss = self.loss(self.run(x), y) if self.part == "model" else self.run(x, y)
        if self.part != "forward and backward":
            loss.backward()
        self.optimizer.step()
        return loss

    def state(self) -> dict[str, Any]:
        """All that a step may change, by name."""
        found: dict[str, Any] = dict(self.model.state_dict())
        found |= {f"{name}.grad": p.grad for name, p in self.model.named_parameters()}
        params = [p for group in self.optimizer.param_groups for p in group["params"]]
        found |= {f"{key} of parameter {i}": value for i, p in enumerate(params)
                  for key, value in self.optimizer.state.get(p, {}).items()}
        return {name: x.detach().numpy().copy() if isinstance(x, torch.Tensor) else x for name, x in found.items()}

    # ----- what a user does between steps -----

    def change(self) -> str:
        """Do something; what it was."""
        name = self.rng.choice(CHANGES)
        getattr(self, name)()
        return name

    def _any_parameter(self) -> Any:
        return self.rng.choice([*self.model.parameters()])

    def nothing(self) -> None: ...

    def learning_rate(self) -> None:
        self.optimizer.param_groups[0]["lr"] *= self.rng.choice([0.5, 0.9, 2.0])

    def weight_decay(self) -> None:
        self.optimizer.param_groups[0]["weight_decay"] = self.rng.choice([0, 0.1])

    def evaluate(self) -> None:
        self.model.eval()

    def train(self) -> None:
        self.model.train()

    def rescale(self) -> None:
        self.scale = self.rng.choice([0.5, 1.0, 2.0])

    def freeze(self) -> None:
        self._any_parameter().requires_grad_(False)

    def unfreeze(self) -> None:
        self.model.requires_grad_(True)

    def other_data(self) -> None:
        p = self._any_parameter()
        p.data = p.data * 0.9

    def transposed_data(self) -> None:
        weight = self.model[-1].weight
        weight.data = weight.data.t().contiguous().t()

    def write(self) -> None:
        with torch.no_grad():
            self._any_parameter().mul_(0.95)

    def replace_parameter(self) -> None:
        layer = self.model[-1]
        layer.weight = nn.Parameter(layer.weight.detach() * 1.1)

    def replace_layer(self) -> None:
        torch.manual_seed(7)
        self.model[0] = nn.Linear(self.width, self.width).to(_DTYPE)

    def put_hook(self) -> None:
        self.hook = self.model[0].register_forward_hook(lambda module, args, result: result * 1.5)

    def remove_hook(self) -> None:
        if self.hook is not None:
            self.hook.remove()

    def load_model(self) -> None:
        self.model.load_state_dict({name: x * 0.98 if x.is_floating_point() else x
                                    for name, x in self.model.state_dict().items()})

    def load_optimizer(self) -> None:
        self.optimizer.load_state_dict(copy.deepcopy(self.optimizer.state_dict()))

    def add_group(self) -> None:
        self.optimizer.add_param_group({"params": [nn.Parameter(torch.zeros(3, dtype=_DTYPE))]})

    def drop_gradients(self) -> None:
        for p in self.model.parameters():
            p.grad = None

    def give_gradient(self) -> None:
        p = self._any_parameter()
        p.grad = torch.ones_like(p)

    def zero_gradients(self) -> None:
        self.optimizer.zero_grad(set_to_none=False)

    def other_zeroing(self) -> None:
        self.to_none = not self.to_none

    def other_noise(self) -> None:
        self.noise = not self.noise

    def other_clipping(self) -> None:
        self.clip = self.rng.choice([None, 0.5, "value"])

    def other_attributes(self) -> None:
        for module in self.model.modules():
            if isinstance(module, (Residual, Adapted)):
                module.scale = self.rng.choice([0.5, 3.0])
            elif isinstance(module, nn.Dropout):
                module.p = self.rng.choice([0.1, 0.4])
            elif isinstance(module, Attention):
                module.causal = not module.causal


CHANGES = ("nothing", "nothing", "nothing", *(name for name, value in vars(Session).items() if callable(value) and (
    not name.startswith("_") and name not in ("step", "state", "change", "nothing"))))


def disagreement(seed: int) -> str | None:
    """Where a compiled session does not do what the same one does eagerly; None where it does."""
    sides = [Session(seed, compiled) for compiled in (True, False)]
    done: list[str] = []
    for at in range(STEPS):
        if at > QUIET:
            done.append({side.change() for side in sides}.pop())
        rng = np.random.default_rng(100 * seed + at)
        x, y = rng.standard_normal((8, sides[0].width)), rng.integers(0, 3, 8)
        results = []
        for side in sides:
            torch.manual_seed(at)
            try:
                loss = float(side.step(torch.tensor(x), torch.tensor(y)).detach())
            except RuntimeError as error:
                results.append({"error": str(error)})
            else:
                results.append({"loss": loss, **side.state()})
        found = _difference(*results)
        if found is not None:
            return (f"seed {seed}, step {at}: {found} ({sides[0].part} compiled, {type(sides[0].optimizer).__name__}, "
                    f"{[type(m).__name__ for m in sides[0].model]}, after {done})")
    return None


def _difference(found: dict[str, Any], expected: dict[str, Any]) -> str | None:
    if found.keys() != expected.keys():
        return f"other entries: {sorted(found.keys() ^ expected.keys())}"
    for name, x in found.items():
        y = expected[name]
        if x is None or y is None or isinstance(x, str):
            if x is not y and x != y:
                return f"{name} is {x}, and not {y}"
        elif not np.allclose(x, y, rtol=1e-4, atol=1e-6, equal_nan=True):
            return f"{name} differs by {np.abs(np.asarray(x) - y).max():.2g}"
    return None


def main() -> int:
    """Run sessions; the exit status says whether all did the same compiled."""
    parser = argparse.ArgumentParser(prog="python -m tests.random_programs.sessions")
    parser.add_argument("--sessions", type=int, default=200, help="how many (default 200)")
    parser.add_argument("--seed", type=int, default=0, help="the first session's seed (default 0)")
    parser.add_argument("--replay", type=int, metavar="SEED", help="run the session of one seed")
    given = parser.parse_args()
    seeds = [given.replay] if given.replay is not None else range(given.seed, given.seed + given.sessions)
    began, wrong = time.perf_counter(), 0
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for seed in seeds:
            found = disagreement(seed)
            if found is not None:
                wrong += 1
                print(found, flush=True)
    print(f"{len(seeds)} sessions, {wrong} disagreements, {time.perf_counter() - began:.0f} s")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
