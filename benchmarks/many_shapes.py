"""Calls whose shapes are ever other ones, compared with PyTorch eager: operators, and whole steps.

    python -m benchmarks.many_shapes                     all, as a table in Markdown
    python -m benchmarks.many_shapes where layer_norm    those whose name contains one of these
    python -m benchmarks.many_shapes --turns 15 --layouts 200

Each call of an operator has one of several hundred layouts, drawn at random; so do texts of random lengths, batches
of random sizes, graphs with random edges. Both libraries run the same calls by turns in one process, on one thread;
the median of the turns counts, in processor time. The results of both are compared first.
"""

from __future__ import annotations

import argparse
import importlib
import statistics
import time
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from . import limits, markdown

#: calls of an operator in one turn, and before the first
CALLS, WARM_UP = 400, 8000
#: steps of a whole step's turn, and before the first
STEPS, STEPS_BEFORE = 20, 120
#: columns of the operators' rows
WIDTH = 24


class Operator(NamedTuple):
    """An operator's row.

    Attributes:
        name: of the row.
        shapes: n -> the shapes of the inputs; a number of classes after a shape stands for indices, "mask" for bools.
        call: (torch, inputs) -> the result.
    """

    name: str
    shapes: Callable[[int], Sequence[Any]]
    call: Callable[..., Any]
    backward: bool = True


def _numpy() -> Any:
    """NumPy, which is imported once its threads are limited."""
    return importlib.import_module("numpy")


def _rows(n: int) -> Sequence[Any]:
    return [(n, WIDTH)]


def _two(n: int) -> Sequence[Any]:
    return [(n, WIDTH), (n, WIDTH)]


OPERATORS = (
    Operator("exp", _rows, lambda t, x: x.exp()),
    Operator("relu", _rows, lambda t, x: t.relu(x)),
    Operator("gelu", _rows, lambda t, x: t.nn.functional.gelu(x)),
    Operator("x * 2", _rows, lambda t, x: x * 2.0),
    Operator("x + y", _two, lambda t, x, y: x + y),
    Operator("x * y", _two, lambda t, x, y: x * y),
    Operator("x * row", lambda n: [(n, WIDTH), (WIDTH,)], lambda t, x, y: x * y),
    Operator("x - column", lambda n: [(n, WIDTH), (n, 1)], lambda t, x, y: x - y),
    Operator("where", lambda n: [((n, WIDTH), "mask"), (n, WIDTH), (n, WIDTH)], lambda t, m, x, y: t.where(m, x, y)),
    Operator("masked_fill", lambda n: [((n, WIDTH), "mask"), (n, WIDTH)], lambda t, m, x: x.masked_fill(m, -1.0)),
    Operator("clamp", _rows, lambda t, x: x.clamp(-1.0, 1.0)),
    Operator("x > 0", _rows, lambda t, x: x > 0, False),
    Operator("sum()", _rows, lambda t, x: x.sum()),
    Operator("sum(0)", _rows, lambda t, x: x.sum(0)),
    Operator("sum(1)", _rows, lambda t, x: x.sum(1)),
    Operator("mean(-1)", _rows, lambda t, x: x.mean(-1)),
    Operator("amax(1)", _rows, lambda t, x: x.amax(1)),
    Operator("argmax(1)", _rows, lambda t, x: x.argmax(1), False),
    Operator("cumsum(1)", _rows, lambda t, x: x.cumsum(1)),
    Operator("softmax(-1)", _rows, lambda t, x: x.softmax(-1)),
    Operator("softmax of n", lambda n: [(8, n)], lambda t, x: x.softmax(-1)),
    Operator("log_softmax(-1)", _rows, lambda t, x: x.log_softmax(-1)),
    Operator("layer_norm", lambda n: [(n, WIDTH), (WIDTH,), (WIDTH,)],
             lambda t, x, w, b: t.nn.functional.layer_norm(x, (WIDTH,), w, b)),
    Operator("cross_entropy", lambda n: [(n, WIDTH), ((n,), WIDTH)],
             lambda t, x, y: t.nn.functional.cross_entropy(x, y)),
    Operator("nll_loss", lambda n: [(n, WIDTH), ((n,), WIDTH)], lambda t, x, y: t.nn.functional.nll_loss(x, y)),
    Operator("mse_loss", _two, lambda t, x, y: t.nn.functional.mse_loss(x, y)),
    Operator("linear", lambda n: [(n, WIDTH), (32, WIDTH), (32,)], lambda t, x, w, b: t.nn.functional.linear(x, w, b)),
    Operator("linear, 3-d", lambda n: [(4, n, WIDTH), (32, WIDTH), (32,)],
             lambda t, x, w, b: t.nn.functional.linear(x, w, b)),
    Operator("matmul", lambda n: [(n, WIDTH), (WIDTH, 16)], lambda t, x, y: x @ y),
    Operator("bmm", lambda n: [(4, n, 16), (4, 16, 8)], lambda t, x, y: t.bmm(x, y)),
    Operator("gather", lambda n: [(n, WIDTH), ((n, 4), WIDTH)], lambda t, x, i: x.gather(1, i)),
    Operator("x[index]", lambda n: [(64, WIDTH), ((n,), 64)], lambda t, x, i: x[i]),
    Operator("index_select", lambda n: [(64, WIDTH), ((n,), 64)], lambda t, x, i: x.index_select(0, i)),
    Operator("index_add", lambda n: [(64, WIDTH), ((n,), 64), (n, WIDTH)], lambda t, x, i, y: x.index_add(0, i, y)),
    Operator("embedding", lambda n: [((4, n), 64), (64, WIDTH)], lambda t, i, w: t.nn.functional.embedding(i, w)),
    Operator("cat", _two, lambda t, x, y: t.cat([x, y])),
    Operator("stack", _two, lambda t, x, y: t.stack([x, y])),
    Operator("transpose, contiguous", lambda n: [(4, n, 4, 8)], lambda t, x: x.transpose(1, 2).contiguous()),
    Operator("x[:, 1:]", _rows, lambda t, x: x[:, 1:]),
    Operator("view, transpose", lambda n: [(4, n, WIDTH)], lambda t, x: x.view(4, -1, 4, 6).transpose(1, 2)),
    Operator("attention", lambda n: [(2, 2, n, 16)] * 3,
             lambda t, q, k, v: t.nn.functional.scaled_dot_product_attention(q, k, v)),
    Operator("dropout", _rows, lambda t, x: t.nn.functional.dropout(x, 0.0)),
    Operator("conv1d", lambda n: [(2, 8, n + 4), (16, 8, 3)], lambda t, x, w: t.nn.functional.conv1d(x, w, padding=1)),
    Operator("randn", lambda n: [(n, 1)], lambda t, x: t.randn(x.shape[0], 8), False),
    Operator("zeros", lambda n: [(n, 1)], lambda t, x: t.zeros(x.shape[0], 8), False),
)


def inputs_of(torch: Any, operator: Operator, n: int, requires_grad: bool) -> list[Any]:
    """The inputs of an operator's row for a size."""
    rng = _numpy().random.default_rng(n)
    found: list[Any] = []
    for shape in operator.shapes(n):
        kind = shape[1] if isinstance(shape[0], tuple) else None
        size = shape[0] if isinstance(shape[0], tuple) else shape
        if kind is None:
            x = torch.from_numpy(rng.standard_normal(size).astype(_numpy().float32))
            found.append(x.requires_grad_() if requires_grad else x)
        elif kind == "mask":
            found.append(torch.from_numpy(rng.random(size) < 0.5))
        else:
            found.append(torch.from_numpy(rng.integers(0, kind, size)))
    return found


def calls_of(torch: Any, operator: Operator, sizes: Sequence[int], backward: bool) -> Callable[[Sequence[int]], Any]:
    """A function that runs an operator on inputs of the sizes with these numbers."""
    given = [inputs_of(torch, operator, n, backward) for n in sizes]
    call = operator.call
    if not backward:
        def run(numbers: Sequence[int]) -> Any:
            result = None
            with torch.no_grad():
                for k in numbers:
                    result = call(torch, *given[k])
            return result

        return run
    gradients = [torch.ones_like(call(torch, *each).detach()) for each in given]

    def run_both(numbers: Sequence[int]) -> Any:
        result = None
        for k in numbers:
            inputs = given[k]
            for x in inputs:
                x.grad = None
            result = call(torch, *inputs)
            result.backward(gradients[k].clone())
        return result

    return run_both


# ----- whole steps: (torch, generator of sizes) -> a function of one step's size that gives a number or a tensor -----

def _mlp(torch: Any) -> Callable[[int], Any]:
    nn, F = torch.nn, torch.nn.functional
    model = nn.Sequential(nn.Linear(20, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 5))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    x, y = torch.randn(256, 20), torch.randint(0, 5, (256,))

    def step(n: int) -> Any:
        optimizer.zero_grad()
        loss = F.cross_entropy(model(x[:n]), y[:n])
        loss.backward()
        optimizer.step()
        return loss.detach()

    return step


def _transformer(torch: Any) -> Callable[[int], Any]:
    nn, F = torch.nn, torch.nn.functional
    embedding, head = nn.Embedding(50, 32), nn.Linear(32, 50)
    encoder = nn.TransformerEncoder(nn.TransformerEncoderLayer(32, 4, 64, batch_first=True, dropout=0.0), 2,
                                    enable_nested_tensor=False)
    parameters = [p for m in (embedding, encoder, head) for p in m.parameters()]
    optimizer = torch.optim.SGD(parameters, lr=0.01)
    tokens = torch.randint(0, 50, (4, 257))

    def step(n: int) -> Any:
        n = 1 + n // 3
        optimizer.zero_grad()
        hidden = encoder(embedding(tokens[:, :n]))
        loss = F.cross_entropy(head(hidden).flatten(0, 1), tokens[:, 1:n + 1].flatten())
        loss.backward()
        optimizer.step()
        return loss.detach()

    return step


def _lstm(torch: Any) -> Callable[[int], Any]:
    nn, F = torch.nn, torch.nn.functional
    embedding, lstm, head = nn.Embedding(50, 16), nn.LSTM(16, 32, batch_first=True), nn.Linear(32, 50)
    parameters = [p for m in (embedding, lstm, head) for p in m.parameters()]
    optimizer = torch.optim.SGD(parameters, lr=0.1)
    tokens = torch.randint(0, 50, (4, 257))

    def step(n: int) -> Any:
        n = 1 + n // 4
        optimizer.zero_grad()
        hidden, _ = lstm(embedding(tokens[:, :n]))
        loss = F.cross_entropy(head(hidden).reshape(-1, 50), tokens[:, 1:n + 1].reshape(-1))
        loss.backward()
        optimizer.step()
        return loss.detach()

    return step


def _graph(torch: Any) -> Callable[[int], Any]:
    nn, F = torch.nn, torch.nn.functional
    first, second = nn.Linear(16, 32), nn.Linear(32, 4)
    optimizer = torch.optim.SGD([*first.parameters(), *second.parameters()], lr=0.1)
    x, y = torch.randn(40, 16), torch.randint(0, 4, (40,))
    ends = torch.randint(0, 40, (2, 300))

    def step(n: int) -> Any:
        source, target = ends[0, :n], ends[1, :n]
        degree = torch.zeros(40).index_add(0, target, torch.ones(n)).clamp(min=1).unsqueeze(1)
        optimizer.zero_grad()
        h = x
        for layer in (first, second):
            messages = layer(h)[source]
            h = torch.zeros(40, messages.shape[1]).index_add(0, target, messages) / degree
            h = F.relu(h) if layer is first else h
        loss = F.cross_entropy(h, y)
        loss.backward()
        optimizer.step()
        return loss.detach()

    return step


def _generation(torch: Any) -> Callable[[int], Any]:
    nn, F = torch.nn, torch.nn.functional
    embedding, norm = nn.Embedding(50, 32), nn.LayerNorm(32)
    qkv, out, head = nn.Linear(32, 96), nn.Linear(32, 32), nn.Linear(32, 50)

    def step(n: int) -> Any:
        with torch.no_grad():
            token = torch.full((1, 1), n % 50, dtype=torch.int64)
            keys, values = torch.zeros(1, 4, 0, 8), torch.zeros(1, 4, 0, 8)
            for _ in range(1 + n // 4):
                x = embedding(token)
                q, k, v = (each.view(1, 1, 4, 8).transpose(1, 2) for each in qkv(norm(x)).chunk(3, -1))
                keys, values = torch.cat([keys, k], 2), torch.cat([values, v], 2)
                attended = F.scaled_dot_product_attention(q, keys, values)
                x = x + out(attended.transpose(1, 2).reshape(1, 1, 32))
                token = head(x)[:, -1].argmax(-1, keepdim=True)
        return token

    return step


STEP_ROWS = {
    "MLP, random batch sizes, SGD step": _mlp,
    "Transformer, random lengths, SGD step": _transformer,
    "LSTM, random lengths, SGD step": _lstm,
    "graph network, random edges, SGD step": _graph,
    "generation with a growing cache": _generation,
}


class Row(NamedTuple):
    """Seconds of a call, by library."""

    name: str
    torch: float
    flambeau: float

    @property
    def ratio(self) -> float:
        return self.torch / self.flambeau


def libraries() -> tuple[Any, Any]:
    """PyTorch and flambeau, on one thread."""
    limits.apply(1)
    pair = importlib.import_module("torch"), importlib.import_module("flambeau")
    for each in pair:
        each.set_num_threads(1)
    return pair


def compare(ours: Any, theirs: Any, name: str) -> None:
    """Raise AssertionError where results differ."""
    if name == "randn":
        assert ours.shape == theirs.shape, name
        return
    _numpy().testing.assert_allclose(ours.detach().numpy(), theirs.detach().numpy(), rtol=2e-3, atol=1e-4, err_msg=name)


def by_turns(runs: Sequence[Callable[[Any], Any]], batches: Sequence[Any], count: int) -> list[float]:
    """The medians of seconds a call, by function."""
    times: list[list[float]] = [[] for _ in runs]
    for batch in batches:
        for run, found in zip(runs, times, strict=True):
            started = time.process_time()
            run(batch)
            found.append((time.process_time() - started) / count)
    return [statistics.median(each) for each in times]


def measure_operator(pair: Sequence[Any], operator: Operator, backward: bool, layouts: int, turns: int) -> Row:
    """The row of an operator."""
    rng = _numpy().random.default_rng(0)
    sizes = [int(n) for n in rng.permutation(_numpy().arange(1, layouts + 1))]
    runs = [calls_of(each, operator, sizes, backward) for each in pair]
    compare(runs[1]([0]), runs[0]([0]), operator.name)
    runs[0]([int(k) for k in rng.integers(0, layouts, 200)])
    runs[1]([int(k) for k in rng.integers(0, layouts, WARM_UP)])
    batches = [[int(k) for k in rng.integers(0, layouts, CALLS)] for _ in range(turns)]
    return Row(operator.name + (", backward" if backward else ""), *by_turns(runs, batches, CALLS))


def measure_step(pair: Sequence[Any], name: str, layouts: int, turns: int) -> Row:
    """The row of a whole step."""
    rng = _numpy().random.default_rng(0)
    steps = []
    for each in pair:
        each.manual_seed(0)
        steps.append(STEP_ROWS[name](each))

    def runs_of(step: Callable[[int], Any]) -> Callable[[Sequence[int]], Any]:
        def run(numbers: Sequence[int]) -> Any:
            result = None
            for n in numbers:
                result = step(n)
            return result

        return run

    runs = [runs_of(step) for step in steps]
    compare(runs[1]([20]), runs[0]([20]), name)
    least = min(layouts, 250)
    before = [int(k) for k in rng.integers(1, least, STEPS_BEFORE)]
    for run in runs:
        run(before)
    batches = [[int(k) for k in rng.integers(1, least, STEPS)] for _ in range(turns)]
    return Row(name, *by_turns(runs, batches, STEPS))


def table(rows: Sequence[Row]) -> str:
    """Rows as Markdown."""
    cells = [[row.name, markdown.duration(row.torch), markdown.duration(row.flambeau),
              f"{row.ratio:.2f}" if row.ratio >= 1 else f"**{row.ratio:.2f}**"] for row in rows]
    return str(markdown.table(["", "PyTorch", "flambeau", "ratio"], cells))


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("names", nargs="*", help="parts of names of rows")
    parser.add_argument("--layouts", type=int, default=400, help="how many sizes are drawn from")
    parser.add_argument("--turns", type=int, default=9)
    parser.add_argument("--mode", choices=("forward", "backward", "steps"), nargs="*",
                        default=["forward", "backward", "steps"])
    options = parser.parse_args()
    pair = libraries()
    pair[1].zeros(1 << 20) + 1  # kernels are loaded, as after thousands of small calls

    def wanted(name: str) -> bool:
        return not options.names or any(part in name for part in options.names)

    rows = []
    for backward in (False, True):
        if ("backward" if backward else "forward") in options.mode:
            for operator in OPERATORS:
                if wanted(operator.name) and (operator.backward or not backward):
                    rows.append(measure_operator(pair, operator, backward, options.layouts, options.turns))
                    print(rows[-1].name, f"{rows[-1].torch * 1e6:.2f} {rows[-1].flambeau * 1e6:.2f}",
                          f"{rows[-1].ratio:.2f}", flush=True)
    if "steps" in options.mode:
        for name in STEP_ROWS:
            if wanted(name):
                rows.append(measure_step(pair, name, options.layouts, options.turns))
                print(rows[-1].name, f"{rows[-1].torch * 1e6:.2f} {rows[-1].flambeau * 1e6:.2f}",
                      f"{rows[-1].ratio:.2f}", flush=True)
    print()
    print(table(rows))
    print(f"\nmedian {statistics.median(row.ratio for row in rows):.2f}, "
          f"{sum(row.ratio >= 1 for row in rows)} of {len(rows)} rows at least 1.0")


if __name__ == "__main__":
    main()
