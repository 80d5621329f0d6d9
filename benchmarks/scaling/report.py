"""The page of the manual: what was measured, what follows from it, and what is assumed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from .fit import HELD_OUT, fit_link, fit_machine
from .measure import GPT, SIZES, WIDE
from .model import Link, SharedMachine
from .strategies import STRATEGIES, Cluster, Model

MACHINES = tuple(2 ** i for i in range(11))
CORES = 64  # of a machine of the cluster
CORE_EFFICIENCY = 0.8  # of 64 cores beside each other
NETWORK = Link(25e-6, 8 / 100e9)  # a message's latency over TCP, and 100 Gb/s
WEAK_TOKENS = 8 * 2048  # a machine's, of each step
STRONG_TOKENS = 512 * 2048  # of all machines

_COLOURS = {"DDP": "#2563eb", "DDP, 25 MiB buckets": "#93c5fd", "ZeRO-1": "#059669", "FSDP": "#ea580c",
            "TP 8 x DDP": "#9333ea", "PP 8 x DDP": "#dc2626"}


def clusters(measured: Mapping[str, Any]) -> dict[str, Cluster]:
    """The cluster with the network's speed, and with that of flambeau's sockets where they are slower."""
    flops = measured["rate"] * CORES * CORE_EFFICIENCY
    own = fit_link(measured["messages"])
    return {"network": Cluster(flops, NETWORK),
            "sockets": Cluster(flops, Link(NETWORK.alpha + own.alpha, max(NETWORK.beta, own.beta)))}


def _table(head: list[str], rows: list[list[str]]) -> str:
    return "\n".join("| " + " | ".join(each) + " |" for each in (head, ["---"] * len(head), *rows))


def _milliseconds(seconds: float) -> str:
    return f"{seconds * 1e3:.3g} ms"


def _checks(measured: Mapping[str, Any], machine: SharedMachine) -> str:
    rows = []
    for n, each in measured["steps"].items():
        said, seen = machine.step(n, each["gradients"]), each["step"]
        rows.append([f"{n}{' (not fitted)' if n == HELD_OUT else ''}", _milliseconds(each["compute"]),
                     _milliseconds(machine.compute(n)), _milliseconds(seen), _milliseconds(said),
                     f"{said / seen - 1:+.0%}"])
    return _table(["processes", "without reductions", "model", "step", "model", "error"], rows)


def _reductions(measured: Mapping[str, Any], machine: SharedMachine) -> str:
    rows = [[f"{n}{' (not fitted)' if n == HELD_OUT else ''}",
             *(f"{_milliseconds(each[size])} / {_milliseconds(machine.all_reduce(n, size))}" for size in SIZES)]
            for n, each in measured["reductions"].items()]
    return _table(["processes", *(f"{size >> 10} KiB" for size in SIZES)], rows)


def _predictions(model: Model, cluster: Cluster, tokens: Any) -> str:
    rows = []
    for name, strategy in STRATEGIES.items():
        cells = []
        for n in (8, 64, 256, 1024):
            step = strategy(model, cluster, n, tokens(n))
            cells.append(f"{step.total:.3g} s ({step.compute / step.total:.0%})")
        memory = f"{strategy(model, cluster, 1024, tokens(1024)).memory / 1e9:.2g} GB"
        rows.append([name, *cells, memory])
    return _table(["strategy", "8 machines", "64", "256", "1,024", "states a machine, 1,024"], rows)


def _occasions(others: Sequence[Mapping[str, Any]]) -> str:
    """What the same measurements said at other times."""
    rows = []
    for each in others:
        machine = fit_machine(each)
        errors = [machine.step(n, step["gradients"]) / step["step"] - 1 for n, step in each["steps"].items()]
        rows.append([f"{each['when']}, load {each['load'][0]:.0f} to {each['load'][1]:.0f}",
                     _milliseconds(machine.work), f"{machine.cores:.2f}", f"{machine.alpha * 1e6:.0f} us",
                     f"{machine.beta * 1e9:.2f} ns", f"{each['rate'] / 1e9:.0f} G", f"{errors[-1]:+.0%}",
                     f"{max(map(abs, errors)):.0%}"])
    return _table(["occasion", "w", "c", "alpha", "beta", "operations a second", f"error at {HELD_OUT}",
                   "largest error"], rows)


def page(measured: Mapping[str, Any], others: Sequence[Mapping[str, Any]] = ()) -> str:
    """The page, in Markdown.

    Args:
        measured: what `measure` returned.
        others: the same from other occasions.
    """
    machine, model = fit_machine(measured), Model()
    own = fit_link(measured["messages"])
    network, sockets = clusters(measured).values()
    loads = " and ".join(f"{each:.1f}" for each in measured["load"])
    return f"""# Scaling

How a training step's time grows with processes. The first part is measured, on one machine; the second follows from a
model and from assumptions about a cluster that nobody has measured. This page is made by one command:

```console
$ python -m benchmarks.scaling
```

## Measured: 1 to 8 processes on one machine

{measured["when"]}, a virtual machine with {measured["cores"]} cores that other programs used at the same time (load
{loads} before and after), one thread a process. Times are the least of many. The step is forward and
backward pass of a GPT of {GPT["layers"]} layers of width {GPT["width"]} on {GPT["batch"]} sequences of
{GPT["context"]} tokens a process, under `DistributedDataParallel`: weak scaling.

The model has four numbers. A process's step takes w seconds alone; n processes on c cores take turns, so that all takes
max(1, n / c) times as long; `all_reduce` of m bytes through shared memory takes (n - 1) (alpha + beta m / n) seconds of
each process. Nothing is hidden: where cores are shared, a process that reduces takes the core from one that computes.

Fitted without the measurements of {HELD_OUT} processes: w = {_milliseconds(machine.work)},
c = {machine.cores:.2f}, alpha = {machine.alpha * 1e6:.0f} us, beta = {machine.beta * 1e9:.2f} ns a byte.
c below {measured["cores"]} is what others left.

{_checks(measured, machine)}

`all_reduce`, measured / model:

{_reductions(measured, machine)}

![Steps and reductions of 1 to 8 processes, measured and by the model](pictures/scaling-measured.png)

How much other programs change all this, from the files in `benchmarks/scaling/measurements`:

{_occasions(others or [measured])}

A message through Unix sockets, which pipelines use, and which says what messages cost in software, takes
{own.alpha * 1e6:.0f} us and {own.beta * 1e9:.2f} ns a byte ({1 / own.beta / 1e9:.1f} GB/s).

## Predicted: 1,024 machines

A GPT of {model.parameters / 1e9:.2f} G parameters ({model.layers} layers of width {model.width}, context
{model.context}), float32, Adam. What is assumed:

- A machine has {CORES} cores, each as fast as one here in the passes of a GPT of width {WIDE["width"]}
  ({measured["rate"] / 1e9:.0f} G operations a second, measured on the busy machine), {CORE_EFFICIENCY:.0%} of that when
  all compute: {network.flops / 1e12:.1f} T operations a second. Faster machines have the same messages and less time to
  hide them: their efficiency is lower.
- One process a machine. The network has 100 Gb/s in each direction and {NETWORK.alpha * 1e6:.0f} us of latency; no two
  messages share a cable.
- The algorithms are flambeau's: rings for reductions and gatherings, trees for broadcasts. DDP has the best of buckets
  of 25 to 6,400 MiB; communication beside the backward pass costs it nothing.
- TP and PP are groups of 8 machines, copies of which are trained by DDP. PP is 1F1B with 32 microbatches.

Shares in brackets are those of computing: the efficiency. States are parameters, gradients and Adam's moments.

### Weak scaling: {WEAK_TOKENS:,} tokens a machine

{_predictions(model, network, lambda n: n * WEAK_TOKENS)}

### Strong scaling: {STRONG_TOKENS:,} tokens a step

{_predictions(model, network, lambda n: STRONG_TOKENS)}

![Weak and strong scaling to 1,024 machines](pictures/scaling-predicted.png)

Dashed lines have flambeau's sockets in place of the network: {(NETWORK.alpha + own.alpha) * 1e6:.0f} us a message, and
{1 / sockets.link.beta / 1e9:.1f} GB/s where that is less than {1 / NETWORK.beta / 1e9:.1f} GB/s.

{_remarks(model, network)}
## What the model leaves out

Stragglers, congestion, failures, reading data, the optimizer's step, activations' memory, several processes a machine,
hierarchies of networks. Its errors at {HELD_OUT} processes are in the first table; nothing of the second part was
measured.
"""


def _remarks(model: Model, cluster: Cluster) -> str:
    """What the numbers say, from the numbers."""
    def total(name: str, n: int = 1024) -> float:
        return STRATEGIES[name](model, cluster, n, STRONG_TOKENS).total

    at = STRATEGIES["DDP"](model, cluster, 1024, STRONG_TOKENS)
    best = min(STRATEGIES, key=total)
    latency = 2 * 1023 * cluster.link.alpha
    return (f"What it says of strong scaling at 1,024 machines: {best} is fastest ({total(best):.2g} s). A ring has "
            f"2 x 1,023 messages one after\nanother, {latency * 1e3:.0f} ms of latency a bucket: DDP wants {at.note} "
            f"there, and with PyTorch's default of 25 MiB a step takes\n{total('DDP, 25 MiB buckets'):.2g} s, not "
            f"{total('DDP'):.2g}. FSDP has two rings a layer in each pass. Reductions by trees or in two levels would "
            "help; flambeau\nhas none for large arrays. `ZeroRedundancyOptimizer` broadcasts one part after another. "
            "TP's reductions of activations\ngrow with the tokens, nothing hides them: TP belongs within a machine.\n")


def draw(measured: Mapping[str, Any], folder: Path) -> None:
    """The page's pictures."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    from flambeau.viz.training.canvas import axes_for, titled

    machine, model = fit_machine(measured), Model()
    figure, (left, right) = plt.subplots(1, 2, figsize=(9.5, 3.6), layout="constrained")
    counts = list(measured["steps"])
    axes_for(left)
    fine = [1 + i / 20 for i in range(20 * (max(counts) - 1) + 1)]
    gradients = measured["steps"][counts[0]]["gradients"]
    left.plot(fine, [1e3 * machine.step(n, gradients) for n in fine], color="#2563eb", label="step, model")
    left.plot(fine, [1e3 * machine.compute(n) for n in fine], color="#93c5fd", label="without reductions, model")
    for key, colour in (("step", "#2563eb"), ("compute", "#93c5fd")):
        for fitted in (True, False):
            chosen = [n for n in counts if (n != HELD_OUT) is fitted]
            left.plot(chosen, [1e3 * measured["steps"][n][key] for n in chosen], "o", color=colour,
                      markerfacecolor=colour if fitted else "white")
    left.set_ylim(0)
    left.legend(frameon=False, fontsize=8.5)
    titled(left, "A step, weak scaling", "processes", "time in ms")
    axes_for(right)
    for place, (n, each) in enumerate(measured["reductions"].items()):
        colour = ("#059669", "#2563eb", "#9333ea", "#ea580c", "#dc2626")[place % 5]
        right.loglog([size / 1024 for size in SIZES], [1e3 * each[size] for size in SIZES], "o", color=colour,
                     markerfacecolor=colour if n != HELD_OUT else "white", label=f"{n} processes")
        right.loglog([size / 1024 for size in SIZES], [1e3 * machine.all_reduce(n, size) for size in SIZES],
                     color=colour, linewidth=1)
    right.legend(frameon=False, fontsize=8.5)
    titled(right, "all_reduce: dots measured, lines model", "KiB", "time in ms")
    figure.savefig(folder / "scaling-measured.png", dpi=90)
    plt.close(figure)

    figure, (left, right) = plt.subplots(1, 2, figsize=(9.5, 4.2), layout="constrained")
    axes_for(left)
    axes_for(right)
    for style, cluster in zip(("-", "--"), clusters(measured).values(), strict=True):
        for name, strategy in STRATEGIES.items():
            counts = [n for n in MACHINES if n >= 8 or " x " not in name]
            weak = [strategy(model, cluster, n, n * WEAK_TOKENS) for n in counts]
            left.plot(counts, [100 * step.compute / step.total for step in weak], style, color=_COLOURS[name],
                      label=name if style == "-" else None, linewidth=1.6 if style == "-" else 0.9)
            strong = [strategy(model, cluster, n, STRONG_TOKENS) for n in counts]
            right.plot(counts, [100 * step.compute / step.total for step in strong], style, color=_COLOURS[name],
                       linewidth=1.6 if style == "-" else 0.9)
    for ax in (left, right):
        ax.set_xscale("log", base=2)
        ax.set_ylim(0, 103)
        ax.set_xticks([1, 8, 64, 256, 1024], ["1", "8", "64", "256", "1,024"])
    left.legend(frameon=False, fontsize=8.5, loc="lower left")
    titled(left, f"Weak scaling: {WEAK_TOKENS:,} tokens a machine", "machines", "efficiency in %")
    titled(right, f"Strong scaling: {STRONG_TOKENS:,} tokens", "machines", "efficiency in %")
    figure.savefig(folder / "scaling-predicted.png", dpi=90)
    plt.close(figure)


__all__ = ["CORES", "NETWORK", "clusters", "draw", "page"]
