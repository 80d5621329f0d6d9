"""Backends that are functions, and `torch._dynamo`'s helpers of tests: graphs, counts, guards, exports."""

from __future__ import annotations

import importlib
import importlib.util
import operator
import unittest

import pytest

import flambeau as torch
from flambeau import codegen
from flambeau.compiler.dynamo import testing, utils
from flambeau.compiler.dynamo.test_case import TestCase
from flambeau.compiler.errors import BackendCompilerFailed, Unsupported, UserError, UserErrorType

needs_oracle = pytest.mark.skipif(importlib.util.find_spec("torch") is None, reason="PyTorch is not installed")


class Layer(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.linear, self.scale = torch.nn.Linear(3, 3), 2.0

    def forward(self, x):
        with torch.no_grad():
            shift = x.mean()
        first, _ = (torch.relu(self.linear(x)) * self.scale - shift).chunk(2)
        return first.T, {"shift": shift, "n": 3}


def test_a_backend_gets_graphs_and_what_it_returns_runs():
    calls = []

    def backend(graph, examples):
        calls.append((graph, examples))
        return lambda *inputs: (calls.append("run"), graph(*inputs))[1]

    layer, x = Layer(), torch.randn(4, 3)
    compiled = torch.compile(layer, backend=backend)
    for _ in range(4):
        found, expected = compiled(x), layer(x)
        assert torch.equal(found[0], expected[0])
        assert found[1]["n"] == 3
        assert torch.equal(found[1]["shift"], expected[1]["shift"])
        assert found[0].requires_grad
        assert not found[1]["shift"].requires_grad
    (graph, examples), *runs = calls
    assert runs == ["run"] * 3  # the second call runs eagerly, to see what changes from call to call
    targets = [node.target for node in graph.graph.nodes if "call" in node.op]
    assert operator.mul in targets
    assert targets.count(getattr) == 1
    assert [tuple(each.shape) for each in examples] == [(4, 3), (3, 3), (3,)]
    found[0].sum().backward()
    assert layer.linear.weight.grad is not None
    layer.scale = 3.0
    assert torch.equal(compiled(x)[0], layer(x)[0])
    layer.linear = torch.nn.Linear(3, 3)
    assert torch.equal(compiled(x)[0], layer(x)[0])
    assert sum(each != "run" for each in calls) == 3


def test_state_that_changes_from_call_to_call_is_not_frozen():
    counts = []
    state = {"n": 0}

    def step(x):
        state["n"] += 1
        return x + state["n"]

    compiled = torch.compile(step, backend=lambda graph, examples: counts.append(1) or graph.forward)
    assert [float(compiled(torch.zeros(()))) for _ in range(10)] == list(range(1, 11))


def test_writes_random_numbers_and_aliases():
    def step(x, out):
        out.add_(torch.nn.functional.dropout(x, 0.5))
        out[0] = 1
        return out, out[1:], x.shape[0]

    results = []
    for backend in (None, testing.EagerAndRecordGraphs()):
        function = step if backend is None else torch.compile(step, backend=backend)
        torch.manual_seed(0)
        out = torch.zeros(4)
        for _ in range(4):
            found = function(torch.ones(4), out)
        assert found[0] is out
        assert found[1]._base is out
        results.append(out)
    assert torch.equal(*results)


def test_errors_of_backends():
    def broken(graph, examples):
        raise ValueError("no")

    with pytest.raises(BackendCompilerFailed, match="backend='broken' raised:\nValueError: no"):
        torch.compile(torch.sin, backend=broken)(torch.ones(1))
    branching = torch.compile(lambda x: x + 1 if x.sum() > 0 else x - 1, backend=testing.CompileCounter(),
                              fullgraph=True)
    with pytest.raises(Unsupported, match="a branch that depends on a tensor's elements"):
        branching(torch.ones(2))
    counter = testing.CompileCounter()
    utils.counters.clear()
    assert torch.equal(torch.compile(lambda x: x + 1 if x.sum() > 0 else x - 1, backend=counter)(torch.ones(2)),
                       torch.full((2,), 2.0))
    assert counter.frame_count == 1 or utils.counters["graph_break"]


def test_counters():
    utils.counters.clear()
    compiled = torch.compile(lambda x: x.sin().cos() + 1, backend=testing.CompileCounter())
    for _ in range(3):
        compiled(torch.ones(2))
    assert utils.counters["stats"] == {"unique_graphs": 1, "calls_captured": 3}
    assert utils.counters["frames"]["ok"] == 1


@pytest.mark.skipif(not codegen.available(), reason="needs llvmlite")
def test_counters_of_programs():
    utils.counters.clear()
    compiled = torch.compile(lambda x: x.sin().cos() + 1.5)
    for _ in range(3):
        compiled(torch.ones(2))
    assert utils.counters["stats"]["unique_graphs"] == 1
    assert utils.counters["frames"]["ok"] == 1
    printing = torch.compile(lambda x: x.item() + 1)
    printing(torch.ones(()))
    assert any("item()" in reason for reason in utils.counters["graph_break"])


def test_run_replays_and_compiles_nothing():
    counter = testing.CompileCounter()
    compiled = torch.compile(lambda x: x + 1, backend=counter)
    replay = torch._dynamo.run(compiled)
    assert torch.equal(replay(torch.ones(2)), torch.full((2,), 2.0))
    assert counter.frame_count == 0
    for _ in range(3):
        compiled(torch.ones(2))
    replay(torch.ones(2))
    replay(torch.ones(3))
    assert counter.frame_count == 1


@pytest.mark.parametrize("aten_graph", [False, True])
def test_exports(aten_graph):
    layer = Layer()
    x, y = torch.randn(4, 3), torch.randn(2)

    def function(x, unused, *, scale):
        first, rest = layer(x)
        return {"a": first * scale, "n": rest["n"]}

    graph, guards = torch._dynamo.export(function, aten_graph=aten_graph)(x, y, scale=2)
    found, expected = graph(x, y, scale=2), function(x, y, scale=2)
    assert torch.equal(found["a"], expected["a"])
    assert found["n"] == 3
    assert guards
    with pytest.warns(FutureWarning, match="is deprecated"):
        torch._dynamo.export(function, x, y, scale=2)
    with pytest.raises(UserError, match="Dynamic control flow is not supported") as caught:
        torch._dynamo.export(lambda x: x + 1 if x.sum() > 0 else x)(x)
    assert caught.value.error_type is UserErrorType.DYNAMIC_CONTROL_FLOW
    with pytest.raises(Unsupported, match="item"):
        torch._dynamo.export(lambda x: x + x.sum().item())(x)


def test_standard_tests_of_pytorch():
    case = unittest.TestCase()
    testing.standard_test(case, lambda a, b: (a + b).relu() * 2, 2, expected_ops=3)
    assert testing.rand_strided((3, 2), (4, 1), extra_size=5).stride() == (4, 1)
    assert testing.same({"a": (torch.ones(2), None)}, {"a": (torch.ones(2), None)})
    assert not testing.same([1.0], [2.0], log_error=lambda *_: None)
    assert utils.clone_inputs([torch.ones(2, 3).t()])[0].stride() == (1, 3)

    class Cases(TestCase):
        def test_it(self):
            self.assertEqual(len(utils.counters), 0)  # noqa: PT009
            assert torch._dynamo.config.raise_on_ctx_manager_usage

    patched = testing.make_test_cls_with_patches(Cases, "Patched", "_x", (torch._dynamo.config, "verbose", True))
    result = unittest.TestResult()
    for cls in (Cases, patched):
        unittest.defaultTestLoader.loadTestsFromTestCase(cls).run(result)
    assert result.wasSuccessful()
    assert result.testsRun == 2


@needs_oracle
@pytest.mark.parametrize("name", ["_dynamo.testing", "_dynamo.test_case", "_dynamo.utils", "_dynamo.exc",
                                  "_inductor.test_case"])
def test_names_are_pytorchs(name):
    ours = importlib.import_module("flambeau.compiler." + {"_dynamo.exc": "errors"}.get(
        name, name.lstrip("_")))
    theirs = importlib.import_module(f"torch.{name}")
    known = {"ConstraintViolationError", "three", "unsupported"}
    assert [n for n in ours.__all__ if not hasattr(theirs, n) and n not in known] == []


@needs_oracle
def test_graphs_have_as_many_calls_as_pytorchs():
    import torch as oracle
    from torch._dynamo.testing import CompileCounter as Counter

    functions = [lambda t, x: (x + 1).relu().view(-1).sum(), lambda t, x: t.cat([x, x * 2]).softmax(-1)[1:],
                 lambda t, x: t.nn.functional.layer_norm(x, (3,)).T, lambda t, x: x.chunk(2)[0] @ x.T,
                 lambda t, x: t.where(x > 0, x, -x).max(dim=1).values, lambda t, x: x.clone().add_(1).mul_(2)]
    for function in functions:
        counts = []
        for library, counter in ((torch, testing.CompileCounter()), (oracle, Counter())):
            library.compile(lambda x, t=library, f=function: f(t, x), backend=counter)(library.ones(4, 3))
            counts.append((counter.frame_count, counter.op_count))
        assert counts[0] == counts[1]


@pytest.mark.skipif(not codegen.available(), reason="functions are split where programs are compiled")
def test_graphs_before_and_after_a_break():
    counter = testing.CompileCounterWithBackend("eager")

    def step(a, b):
        x = (a + b).relu()
        y = testing.unsupported(x, a * 2)
        return y.sin() - x

    compiled = torch.compile(step, backend=counter)
    for i in range(5):
        a, b = torch.randn(3) + i, torch.randn(3)
        assert torch.equal(compiled(a, b), step(a, b))
    assert counter.frame_count == 2
    assert counter.op_count == 5


@pytest.mark.parametrize("function", [
    lambda x, i: x[i], lambda x, i: torch.nn.functional.embedding(i, x), lambda x, i: torch.gather(x, 0, i[:, None]),
    lambda x, i: x.index_select(0, i), lambda x, i: torch.zeros(5, 4).index_add(0, i, x[:3]),
    lambda x, i: torch.zeros(5, 4).index_put((i,), x[0])], ids=[
    "getitem", "embedding", "gather", "index_select", "index_add", "index_put"])
def test_integer_indices_are_no_branches(function):
    """Indices that are in range do not break the graph of a backend; others raise as in eager code."""
    called = []

    def backend(graph, inputs):
        called.append(graph)
        return graph

    compiled = torch.compile(function, backend=backend, fullgraph=True)
    x = torch.arange(20.0).reshape(5, 4)
    for places in ([0, 2, 4], [0, 2, 4], [1, 1, 3], [4, 3, 0]):
        i = torch.tensor(places)
        assert torch.equal(compiled(x, i), function(x, i))
    assert len(called) == 1
    outside = torch.tensor([0, 2, 9])
    with pytest.raises((IndexError, RuntimeError)) as expected:
        function(x, outside)
    with pytest.raises(expected.type):
        compiled(x, outside)


def _count_graphs(function, *args, calls=1, library=torch):
    """How many graphs a backend gets in some calls, and the calls in them; results are compared with eager ones."""
    counter = library._dynamo.testing.CompileCounter()
    compiled = library.compile(function, backend=counter)
    for _ in range(calls):
        assert library.equal(compiled(*args), function(*args))
    return int(counter.frame_count), counter.op_count


def _programs_with_breaks(torch):
    def after_a_branch(x):
        y = x + 1
        if y.sum() > 0:
            return y * 2
        return y * 3

    def around_a_print(x):
        y = (x + 1).relu()
        print(end="")
        return y.sin() - x

    def inner(x):
        x = x * 2
        torch._dynamo.graph_break()
        return x.sin()

    def around_a_function_that_breaks(x):
        return inner(x + 1) + 3

    def in_a_loop(x):
        x = x + 1
        for _ in range(3):
            torch._dynamo.graph_break()
            x = x.sin()
        return x

    def functions_called_in_a_loop(x):
        for _ in range(2):
            torch._dynamo.graph_break()
            x = twice(x)
        return x

    def twice(x):
        return x.cos() * 2

    @torch.compiler.disable
    def disabled(x):
        return x * x

    def around_a_disabled_function(x):
        return disabled(x.sin()).cos() + 1

    def in_a_block(x):
        with torch.no_grad():
            y = x + 1
            torch._dynamo.graph_break()
            y = y * 2
        return y + x

    return (after_a_branch, around_a_print, around_a_function_that_breaks, in_a_loop, functions_called_in_a_loop,
            around_a_disabled_function, in_a_block)


@needs_oracle
@pytest.mark.parametrize("at", range(7))
def test_graphs_of_the_first_call_are_as_many_as_pytorchs(at):
    oracle = importlib.import_module("torch")
    importlib.import_module("torch._dynamo.testing")
    found = _count_graphs(_programs_with_breaks(torch)[at], torch.full((3,), 0.5))
    expected = _count_graphs(_programs_with_breaks(oracle)[at], oracle.full((3,), 0.5), library=oracle)
    if at == 6:  # PyTorch's graphs contain a switch of grad mode at the end of each
        assert found[0] == expected[0]
    else:
        assert found == expected


@pytest.mark.skipif(not codegen.available(), reason="functions are split where programs are compiled")
@pytest.mark.parametrize("at", [0, 1, 2, 5])
def test_parts_use_the_graphs_of_the_first_call(at):
    function = _programs_with_breaks(torch)[at]
    assert _count_graphs(function, torch.full((3,), 0.5), calls=8) == _count_graphs(function, torch.full((3,), 0.5))


def test_the_first_call_returns_what_the_backend_computes():
    def doubling(graph, examples):
        return lambda *inputs: tuple([x * 2 for x in graph(*inputs)])

    held = []

    def remembered(x):
        held.append(x + 1)
        return held[-1]

    assert torch.compile(lambda x: x + 1, backend=doubling)(torch.ones(1)).item() == 4
    assert torch.compile(remembered, backend=doubling)(torch.ones(1)) is held[-1]
    assert torch.compile(lambda x: x.add_(1), backend=doubling)(torch.ones(1)).item() == 2  # written once
    torch.manual_seed(0)
    expected = torch.randn(2)
    torch.manual_seed(0)
    assert torch.equal(torch.compile(lambda x: torch.randn(2) + x, backend=doubling)(torch.zeros(2)), expected)


def test_side_effects_of_custom_functions_and_operators_happen_once():
    calls = []

    class Counted(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            calls.append(1)
            return x * 2

    @torch.library.custom_op("tests_of_backends::counted", mutates_args=())
    def counted(x: torch.Tensor) -> torch.Tensor:
        calls.append(1)
        return x.clone()

    for function in (Counted.apply, counted, torch.ops.tests_of_backends.counted):
        calls.clear()
        compiled = torch.compile(lambda x, f=function: f(x) + 1, backend=testing.CompileCounter())
        for i in range(5):
            compiled(torch.ones(2))
            assert len(calls) == i + 1


def test_objects_that_custom_functions_take_are_those_of_the_call():
    class Scaled(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x, by):
            ctx.by = by
            return x * 1

        @staticmethod
        def backward(ctx, g):
            return g * ctx.by(), None

    rates = [1.0, 1.0, 1.0, 4.0, 5.0]
    compiled = torch.compile(lambda x, rate: Scaled.apply(x, lambda: rate[0]), backend=testing.CompileCounter())
    x = torch.ones(2, requires_grad=True)
    for rate in rates:
        x.grad = None
        compiled(x, [rate]).sum().backward()
        assert x.grad.tolist() == [rate] * 2


def test_types_and_generators_are_arguments_of_operators():
    generator = torch.Generator()

    def function(x):
        return x.type(torch.DoubleTensor), torch.rand(2, generator=generator)

    compiled = torch.compile(function, backend=testing.CompileCounter())
    for _ in range(4):
        state = generator.get_state()
        expected = function(torch.ones(2))
        generator.set_state(state)
        for a, b in zip(compiled(torch.ones(2)), expected, strict=True):
            assert a.dtype == b.dtype
            assert torch.equal(a, b)
    graphs = testing.EagerAndRecordGraphs()
    compiled = torch.compile(lambda x: x.type(torch.DoubleTensor), backend=graphs, fullgraph=True)
    assert compiled(torch.ones(2)).dtype == torch.float64
    assert len(graphs.graphs) == 1


class _TimesFive(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x * 2

    @staticmethod
    def backward(ctx, g):
        return g * 5


def _with_hook(x):
    y = x * 2
    y.register_hook(lambda g: g * 10)
    return y.sum()


@pytest.mark.parametrize("function", [lambda x: _TimesFive.apply(x).sum(), _with_hook])
def test_graphs_keep_the_derivatives_of_functions_and_hooks(function):
    counter = testing.CompileCounter()
    compiled = torch.compile(function, backend=counter)
    x, y = torch.ones(3, requires_grad=True), torch.ones(3, requires_grad=True)
    function(x).backward()
    for _ in range(8):
        y.grad = None
        compiled(y).backward()
        assert torch.equal(x.grad, y.grad)
    assert counter.frame_count >= 1


def test_graphs_enter_autocast():
    def product(x):
        with torch.autocast("cpu", dtype=torch.bfloat16):
            y = x @ x
        return y, x @ x

    graphs = testing.EagerAndRecordGraphs()
    compiled = torch.compile(product, backend=graphs)
    for _ in range(4):
        assert [y.dtype for y in compiled(torch.ones(2, 2))] == [torch.bfloat16, torch.float32]
    targets = [node.target for node in graphs.graphs[0].graph.nodes]
    assert torch.amp._enter_autocast in targets
    assert torch.amp._exit_autocast in targets


def test_lists_among_arguments_of_operators_may_change_later():
    def joined(x):
        parts = [x]
        y = torch.cat(parts)
        parts.append(y)
        return torch.cat(parts)

    compiled = torch.compile(joined, backend=testing.CompileCounter())
    for _ in range(4):
        assert compiled(torch.ones(2)).shape == (4,)


def test_objects_are_arguments():
    class Scale:
        def __init__(self, by):
            self.by = by

    counter = testing.CompileCounter()
    compiled = torch.compile(lambda x, scale: x * scale.by, backend=counter, fullgraph=True)
    scale = Scale(2.0)
    for _ in range(4):
        assert compiled(torch.ones(1), scale).item() == 2
    assert counter.frame_count == 1
    scale.by = 3.0
    assert compiled(torch.ones(1), scale).item() == 3
    assert compiled(torch.ones(1), Scale(4.0)).item() == 4


def test_results_of_backends_are_verified():
    def wrong(graph, examples):
        for node in graph.graph.nodes:
            if node.target is operator.mul:
                node.target = operator.add
        graph.recompile()
        return graph.forward

    with torch._dynamo.config.patch(verify_correctness=True):
        assert torch.compile(lambda x: x * 3, backend="eager_noexcept")(torch.ones(1)).item() == 3
        with pytest.raises(BackendCompilerFailed, match="incorrect results of backend"):
            torch.compile(lambda x: x * 3, backend=wrong)(torch.ones(1))


@pytest.mark.parametrize("name", ["ts", "aot_ts", "eager_noexcept", "aot_eager_decomp_partition",
                                  "aot_eager_default_partitioner", "pre_dispatch_eager"])
def test_debugging_backends(name):
    assert name in torch._dynamo.list_backends(None)
    assert name not in torch._dynamo.list_backends()
    layer = torch.nn.Sequential(torch.nn.Linear(3, 3), torch.nn.ReLU())
    compiled, x = torch.compile(layer, backend=name), torch.ones(2, 3)
    for _ in range(3):
        assert torch.equal(compiled(x), layer(x))
    compiled(x).sum().backward()
    assert layer[0].weight.grad is not None


def test_settings_are_patched_for_test_cases():
    @torch._dynamo.config.patch(verbose=True)
    class Cases(unittest.TestCase):
        def test_it(self):
            assert torch._dynamo.config.verbose

    assert Cases.__name__ == "Cases"
    result = unittest.TestResult()
    unittest.defaultTestLoader.loadTestsFromTestCase(Cases).run(result)
    assert result.wasSuccessful()
    assert result.testsRun == 1
    assert not torch._dynamo.config.verbose
    with pytest.raises(AssertionError, match="test cases"):
        torch._dynamo.config.patch(verbose=True)(int)
    with torch.fx.experimental._config.patch(use_duck_shape=False):
        assert not torch.fx.experimental._config.use_duck_shape


def test_operators_that_call_functions_are_nodes_with_subgraphs():
    from flambeau._higher_order_ops.wrap import wrap, wrap_with_autocast, wrap_with_set_grad_enabled

    y = torch.ones(3)

    def function(x):
        z = wrap(lambda x: wrap(lambda x: x + y, x) * 2, x)
        a, rest = wrap_with_set_grad_enabled(False, lambda x: (x * 2, {"b": x.sin()}), z)
        return z + a, rest["b"], wrap_with_autocast("cpu", torch.bfloat16, True, None, torch.matmul, x, y)

    graphs = testing.EagerAndRecordGraphs()
    compiled = torch.compile(function, backend=graphs, fullgraph=True)
    x, other = (torch.ones(3, requires_grad=True) for _ in range(2))
    for _ in range(4):
        found, expected = compiled(x), function(x)
        for a, b in zip(found, expected, strict=True):
            assert torch.equal(a, b)
            assert (a.dtype, a.requires_grad) == (b.dtype, b.requires_grad)
    compiled(x)[0].sum().backward()
    function(other)[0].sum().backward()
    assert torch.equal(x.grad, other.grad)
    [graph] = graphs.graphs
    [node] = [node for node in graph.graph.nodes if node.target is wrap]
    assert [each.op for each in node.args] == ["get_attr", "placeholder", "placeholder"]
    inner = getattr(graph, node.args[0].target)
    assert wrap in [node.target for node in inner.graph.nodes]

    def hooked(x):
        def body(x):
            y = x * 2
            y.register_hook(lambda g: g * 10)
            return y.sum()
        return wrap(body, x)

    compiled = torch.compile(hooked, backend=testing.CompileCounter())
    for _ in range(4):
        x.grad = None
        compiled(x).backward()
        assert x.grad.tolist() == [20.0] * 3


@needs_oracle
def test_wrapped_functions_are_counted_as_in_pytorch():
    def program(library):
        wrap = importlib.import_module(f"{library.__name__}._higher_order_ops.wrap").wrap
        return lambda x: wrap(lambda x: x.sin().cos() + 1, x) * 2

    oracle = importlib.import_module("torch")
    importlib.import_module("torch._dynamo.testing")
    assert _count_graphs(program(torch), torch.ones(2)) == _count_graphs(program(oracle), oracle.ones(2),
                                                                         library=oracle) == (1, 3)


@needs_oracle
@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
def test_functions_of_backends_that_compile_nothing_are_compiling(backend):
    def program(library):
        @library.compiler.disable
        def disabled():
            return library.compiler.is_compiling()

        def asks(x):
            return x + 1 if library.compiler.is_compiling() and library.compiler.is_dynamo_compiling() else x

        compiled = library.compile(asks, backend=backend)
        found = [compiled(library.zeros(1)).item() for _ in range(3)]
        return [*found, library.compiler.is_compiling(), library.compile(lambda: disabled(), backend=backend)()]

    assert program(torch) == program(importlib.import_module("torch")) == [1.0, 1.0, 1.0, False, False]
