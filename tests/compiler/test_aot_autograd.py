"""AOTAutograd: the graphs that compilers get, and that calls of them do what eager mode does."""

from __future__ import annotations

import copy

import pytest

import flambeau as torch
from flambeau.compiler.dynamo.backends.common import aot_autograd
from flambeau.compiler.functorch.aot_autograd import aot_function, aot_module, get_aot_graph_name, make_boxed_func
from flambeau.compiler.functorch.compilers import debug_nop, memory_efficient_fusion, nop
from flambeau.compiler.functorch.partitioners import default_partition, min_cut_rematerialization_partition
from flambeau.fx.experimental.proxy_tensor import make_fx

PARTITIONS = [default_partition, min_cut_rematerialization_partition]


class Graphs(list):
    """A compiler that keeps its graphs."""

    def __call__(self, graph, inputs):
        self.append(graph)
        return make_boxed_func(graph.forward)

    def names(self, i):
        return [node.name for node in self[i].graph.nodes]


def model():
    torch.manual_seed(0)
    return torch.nn.Sequential(torch.nn.Conv2d(1, 2, 3), torch.nn.BatchNorm2d(2), torch.nn.GELU(),
                               torch.nn.Dropout(0.5), torch.nn.Flatten(), torch.nn.Linear(72, 3))


@pytest.mark.parametrize("partition", PARTITIONS)
def test_a_module_trains_as_in_eager_mode(partition):
    eager = model()
    compiled = aot_module(ahead := copy.deepcopy(eager), nop, partition_fn=partition)
    for step in range(3):
        x = torch.randn(2, 1, 8, 8)
        results = []
        for module in (eager, compiled):
            torch.manual_seed(step)
            results.append(module(x))
            module.zero_grad()
            torch.nn.functional.cross_entropy(results[-1], torch.tensor([0, 2])).backward()
        assert torch.equal(*results)
        for p, q in zip(eager.parameters(), ahead.parameters(), strict=True):
            assert torch.allclose(p.grad, q.grad, atol=1e-6)
        for p, q in zip(eager.buffers(), ahead.buffers(), strict=True):
            assert torch.equal(p, q)
    eager.eval(), ahead.eval()
    with torch.no_grad():
        assert torch.equal(eager(x), compiled(x))


def test_the_backward_graph_is_compiled_by_the_first_backward_pass():
    graphs = Graphs()
    f = aot_function(lambda x, y: (x * y).sin(), graphs)
    x, y = torch.randn(3, requires_grad=True), torch.randn(3)
    result = f(x, y)
    assert len(graphs) == 1
    result.sum().backward()
    assert torch.allclose(x.grad, y * (x * y).cos())
    assert graphs.names(0) == ["primals_1", "primals_2", "mul", "sin", "output"]
    assert [name for name in graphs.names(1) if "tangents" in name] == ["tangents_1"]
    f(x, y).sum().backward()
    assert len(graphs) == 2
    f(torch.randn(4, requires_grad=True), torch.randn(4))
    assert len(graphs) == 3


def test_calls_without_gradients_use_the_inference_compiler():
    training, inference = Graphs(), Graphs()
    f = aot_function(lambda x: x.exp(), training, inference_compiler=inference)
    f(torch.zeros(2))
    assert not training
    assert inference.names(0) == ["arg0_1", "exp", "output"]


def test_the_cut_recomputes_what_is_cheap():
    x = torch.randn(100, requires_grad=True)
    saved = []
    for partition in PARTITIONS:
        graphs = Graphs()
        f = aot_function(lambda x: x.sin().cos().exp().tanh(), graphs, partition_fn=partition)
        x.grad = None
        f(x).sum().backward()
        saved.append(sum(node.op == "placeholder" for node in graphs[1].graph.nodes) - 1)
        expected, = torch.autograd.grad(x.sin().cos().exp().tanh().sum(), x)
        assert torch.allclose(x.grad, expected)
    assert saved[1] == 1 < saved[0]


def test_draws_are_saved_and_not_drawn_again():
    f = aot_function(lambda x: torch.nn.functional.dropout(x.exp(), 0.5), nop,
                     partition_fn=min_cut_rematerialization_partition)
    x = torch.zeros(50, requires_grad=True)
    result = f(x)
    result.sum().backward()
    assert torch.equal(x.grad, result.detach())


def test_draws_are_those_of_eager_mode():
    torch.manual_seed(3)
    expected = [torch.rand(2), torch.rand(2)]
    f = aot_function(lambda x: x + torch.rand(2), nop)
    torch.manual_seed(3)
    assert [torch.equal(f(torch.zeros(2)), e) for e in expected] == [True, True]


def test_written_inputs_are_written():
    def f(x, counter):
        counter.add_(1)
        counter[0].mul_(2)
        return x * counter

    counters = [torch.ones(2), torch.ones(2)]
    x = torch.ones(2, requires_grad=True)
    graphs = Graphs()
    compiled = aot_function(f, graphs)
    for _ in range(2):
        assert torch.equal(f(x, counters[0]), compiled(x, counters[1]))
    assert torch.equal(*counters)
    assert not any(node.target in (torch.ops.aten.add_.Tensor, torch.ops.aten.copy_.default)
                   for node in graphs[0].graph.nodes)


def test_a_written_input_that_requires_a_gradient_is_refused():
    x = torch.ones(2, requires_grad=True) * 1
    with pytest.raises(NotImplementedError, match="input 0, which requires a gradient, is written"):
        aot_function(lambda x: x.mul_(2), nop)(x)


def test_views_of_inputs_are_views():
    f = aot_function(lambda x: (x, x[0], x.sin(), 3, None), nop)
    x = torch.randn(2, 3)
    same, row, _, number, nothing = f(x)
    assert same is x
    row.zero_()
    assert torch.equal(x[0], torch.zeros(3))
    assert (number, nothing) == (3, None)


def test_a_view_of_an_input_has_a_gradient():
    f = aot_function(lambda x: (x[0], x.sin()), nop)
    x = torch.zeros(2, 3, requires_grad=True)
    row, sine = f(x)
    (row.sum() * 2 + sine.sum()).backward()
    assert x.grad.tolist() == [[3.0] * 3, [1.0] * 3]


def test_double_backward_is_refused():
    x = torch.ones(2, requires_grad=True)
    g, = torch.autograd.grad(aot_function(lambda x: x.exp(), nop)(x).sum(), x, create_graph=True)
    with pytest.raises(RuntimeError, match="does not currently support double backward"):
        g.sum().backward()


def test_functions_of_separate_arguments_give_a_warning():
    with pytest.warns(UserWarning, match="doesn't take boxed arguments"):
        assert aot_function(lambda x: x + 1, lambda graph, inputs: graph.forward)(torch.zeros(1)).tolist() == [1]


def test_decompositions_replace_operators():
    graphs = Graphs()
    table = {torch.ops.aten.relu.default: lambda x: x * (x > 0)}
    aot_function(lambda x: x.relu(), graphs, decompositions=table)(torch.ones(2))
    assert graphs.names(0) == ["arg0_1", "gt", "mul", "output"]


def test_a_backend_of_compile_gets_both_graphs():
    names = []

    def compiler(graph, inputs):
        names.append(get_aot_graph_name())
        return make_boxed_func(graph.forward)

    torch.manual_seed(0)
    eager = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.BatchNorm1d(4), torch.nn.ReLU(), torch.nn.Linear(4, 2))
    module = copy.deepcopy(eager)
    compiled = torch.compile(module, backend=aot_autograd(fw_compiler=compiler))
    for _ in range(4):
        x = torch.randn(6, 3)
        losses = [m(x).square().sum() for m in (eager, compiled)]
        for m, loss in zip((eager, module), losses, strict=True):
            m.zero_grad()
            loss.backward()
        assert torch.allclose(*losses)
        for p, q in zip(eager.parameters(), module.parameters(), strict=True):
            assert torch.allclose(p.grad, q.grad, atol=1e-5)
        for p, q in zip(eager.buffers(), module.buffers(), strict=True):
            assert torch.equal(p, q)
    assert ["forward" in names[0], "backward" in names[1]] == [True, True]


def test_graphs_can_be_compiled():
    x = torch.randn(10, requires_grad=True)
    f = memory_efficient_fusion(lambda x: (x.exp() * x).tanh())
    for _ in range(3):
        x.grad = None
        f(x).sum().backward()
        expected, = torch.autograd.grad((x.exp() * x).tanh().sum(), x)
        assert torch.allclose(x.grad, expected, atol=1e-6)


def test_checks_of_metadata_pass():
    f = aot_function(lambda x, y: torch.nn.functional.softmax(x @ y, -1), debug_nop)
    x, y = torch.randn(2, 3, requires_grad=True), torch.randn(3, 4, requires_grad=True)
    f(x, y)[:, 0].sum().backward()
    assert x.grad.shape == (2, 3)


def test_a_trace_with_gradients_is_right_for_other_inputs():
    """Saved tensors come back from the graph of gradients as other objects; they are no constants of the trace."""
    def gradients(x, w):
        return torch.autograd.grad(torch.nn.functional.gelu(x @ w).sum(), [x, w])

    def values():
        return torch.randn(3, 4, requires_grad=True), torch.randn(4, 5, requires_grad=True)

    graph = make_fx(gradients)(*values())
    x, w = values()
    for found, expected in zip(graph(x, w), gradients(x, w), strict=True):
        assert torch.allclose(found, expected, atol=1e-6)
    assert not any(node.op == "get_attr" for node in graph.graph.nodes)


@pytest.mark.parametrize("functional", [False, True])
def test_traces_update_running_averages(functional):
    def f(x, mean, var):
        return torch.nn.functional.batch_norm(x, mean, var, training=True, momentum=0.3)

    graph = make_fx(torch.func.functionalize(f) if functional else f)(torch.randn(5, 2), torch.zeros(2), torch.ones(2))
    x = torch.randn(5, 2)
    found, expected = [torch.zeros(2), torch.ones(2)], [torch.zeros(2), torch.ones(2)]
    assert torch.equal(graph(x, *found), f(x, *expected))
    assert torch.equal(found[0], expected[0])
    assert torch.allclose(found[1], expected[1])


@pytest.mark.parametrize("fill", ["uniform_", "normal_", "exponential_", "cauchy_", "log_normal_", "random_",
                                  "bernoulli_"])
def test_traces_draw_again(fill):
    graph = make_fx(lambda x: getattr(torch.empty_like(x), fill)())(torch.ones(4))
    assert [node.target for node in graph.graph.nodes][2].overloadpacket.__name__ == fill
    torch.manual_seed(0)
    found = graph(torch.ones(4))
    torch.manual_seed(0)
    assert torch.equal(found, getattr(torch.empty(4), fill)())


def test_a_detached_input_needs_no_gradient():
    x, y = (torch.ones(2, requires_grad=True) for _ in range(2))
    detached, same = aot_function(lambda x, y: (x.detach(), y), nop)(x, y)
    assert not detached.requires_grad
    assert same is y
    same.sum().backward()
    assert x.grad is None
    assert y.grad.tolist() == [1, 1]


POOLING = [lambda x: torch.nn.functional.max_pool2d(x, 2), lambda x: torch.nn.functional.max_pool3d(x[None], (1, 2, 2)),
           lambda x: torch.nn.functional.max_pool1d(x[0], 2), lambda x: torch.nn.functional.adaptive_max_pool2d(x, 2)]


@pytest.mark.parametrize("pool", range(len(POOLING)))
def test_maxima_are_found_in_each_call(pool):
    """The backward graph reads the indices that the forward graph returns, not those of the trace."""
    compiled = aot_function(POOLING[pool], nop)
    for _ in range(2):
        x = torch.randn(2, 3, 4, 4, requires_grad=True)
        gradients = [torch.autograd.grad((f(x) ** 2).sum(), x)[0] for f in (compiled, POOLING[pool])]
        assert torch.equal(*gradients)


@pytest.mark.parametrize("reduce", ["sum", "mean", "max", "prod"])
def test_reductions_of_segments_have_gradients(reduce):
    def f(x):
        return torch.segment_reduce(x, reduce, lengths=torch.tensor([1, 2]), initial=2.)

    x = torch.tensor([1., 2., 4.], requires_grad=True)
    gradients = [torch.autograd.grad((g(x) ** 2).sum(), x)[0] for g in (aot_function(f, nop), f)]
    assert torch.equal(*gradients)
    assert gradients[0].any() or reduce == "max"


def test_draws_have_gradients_of_zero():
    x = torch.ones(3, requires_grad=True)
    result = aot_function(lambda x: torch.bernoulli(x / 2), nop)(x)
    assert result.requires_grad
    result.sum().backward()
    assert x.grad.tolist() == [0, 0, 0]
