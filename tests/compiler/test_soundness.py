"""Soundness of replays: hooks, unused gradients, aliasing, replaced memory, internal errors."""

from __future__ import annotations

import numpy as np
import pytest

import flambeau as torch
from flambeau import codegen
from tests.compiler.eager_comparison import (
    Scenario,
    compare_with_eager,
    counted_captures,
    numbers,
    programs,
    reasons,
    same,
)

pytestmark = pytest.mark.skipif(not codegen.available(), reason="llvmlite is not installed, or FLAMBEAU_JIT is 0")


def leaf(*shape, seed=0):
    return numbers(*shape, seed=seed).requires_grad_()


# ----- what the function knows otherwise --------------------------------------------------

def test_first_equal_then_other_tensors():
    """Only the first call with another tensor is captured anew, and makes no program of its own."""
    made = torch.compile(lambda x, y: (x * y).sum())
    x, y = numbers(4), numbers(4, seed=1)
    with counted_captures() as captures:
        for _ in range(5):
            made(x, y)
        assert len(captures) == 2
        for i in range(5):
            given = numbers(4, seed=i + 5), numbers(4, seed=i + 9)
            same(made(*given), made.function(*given))
        assert len(captures) == 3
    assert programs(made) == 1


def test_alternating_views_of_one_array():
    data = numbers(40, 4)
    made = torch.compile(lambda x, y: ((x - y) ** 2).mean(0))
    with counted_captures() as captures:
        for i in range(8):
            x, y = data[i:i + 4], data[i + 8:i + 12]
            same(made(x, y), made.function(x, y))
    assert programs(made) == 1
    assert len(captures) == 2


def test_arguments_that_are_views_of_globals():
    known = numbers(6, 3)
    made = torch.compile(lambda x: (x * known.sum()).exp() + known[:2])
    for i in (0, 0, 0, 1, 2, 3, 0):
        x = known[i:i + 2]
        same(made(x), made.function(x))
    for i in range(4):
        x = numbers(2, 3, seed=i)
        same(made(x), made.function(x))


def test_functions_as_arguments():
    made = torch.compile(lambda x, f: f(x))
    for k in (2, 3, 4, 5):  # functions that may have the address of an earlier one
        for i in range(4):
            x = numbers(3, seed=i)
            same(made(x, lambda v, k=k: v * k), x * k)

    def scaled(v):
        return v * k

    for k in (2, 2, 2, 3, 3, 3, 2):  # which the function sees
        x = numbers(3)
        same(made(x, scaled), x * k)


def test_views_at_other_memory_offsets():
    def f(x):
        return x.as_strided((2, 2), (1, 2), 1) * 2, x.as_strided((2,), (2,)) + 1, x.as_strided((2,), (1,), 3).clone()

    made = torch.compile(f)
    for i in range(4):
        x = numbers(8, seed=i)
        same(made(x), f(x))
    assert programs(made) == 1
    for i in range(8):
        x = numbers(12, seed=i)[i % 5:][:8]
        same(made(x), f(x))


@pytest.mark.parametrize("f", [lambda x: (x.sort(0)[0] * 2, x.cumsum(1)), lambda x: (x.sin(), x[1], x.t(), x[:, 1:])])
def test_non_contiguous_arguments(f):
    made = torch.compile(f)
    for i in range(5):
        x = numbers(6, 8, seed=i)[1:5:2, 1:7:2]
        same(made(x), f(x))
    assert programs(made) == 1, reasons(made)


def test_results_that_are_views_of_non_contiguous_arguments_share_memory():
    made, doubled = torch.compile(lambda x: x[1]), torch.compile(lambda x, y: (x.mul_(2), y + 1)[1])
    for i in range(5):
        whole = numbers(6, 8, seed=i)
        x = whole[1:5:2, 1:7:2]
        y = made(x)
        expected = x[1] * 2 + 1
        same(doubled(x, y), expected)


# ----- writes -----------------------------------------------------------------------------

def test_writes_through_out():
    def f(x, y):
        z = x * 3
        torch.mul(x, 2, out=z)
        torch.add(z, x, out=y)
        return z + 1

    made = torch.compile(f)
    for i in range(5):
        mine, theirs = numbers(4), numbers(4)
        x = numbers(4, seed=i)
        same(made(x, mine), f(x, theirs))
        same(mine, theirs)
        assert mine._version == theirs._version
    assert programs(made) == 1, reasons(made)


def given_other_memory(x, w):
    x.data = x * 2


def set_to_another(x, w):
    x.set_(w.detach() * 2)


def another_shape(x, w):
    x.unsqueeze_(0)


def a_history(x, w):
    x.mul_(w)


def told_to_require_grad(x, w):
    x.requires_grad_()
    return (x * 2).detach()


@pytest.mark.parametrize("f", [given_other_memory, set_to_another, another_shape, a_history, told_to_require_grad])
def test_side_effects_on_arguments(f):
    made = torch.compile(f)
    w = leaf(3, seed=5)
    for i in range(5):
        mine, theirs = numbers(3, seed=i), numbers(3, seed=i)
        same(made(mine, w), f(theirs, w))
        same(mine, theirs)


def test_leaves_over_memory_of_arguments():
    def f(x):
        z = x.detach().requires_grad_()
        inside, = torch.autograd.grad((z ** 3).sum(), z)
        y = x.clone().requires_grad_()
        (y ** 2).sum().backward()
        return inside, y.grad, y

    made = torch.compile(f)
    for i in range(5):
        x = numbers(3, seed=i)
        same(made(x), f(x))
    assert programs(made) == 1, reasons(made)


# ----- gradients --------------------------------------------------------------------------

@pytest.mark.parametrize("when", [0, 4])
def test_hooks_of_differentiated_tensors(when):
    """Hooks run once for each backward, whether they were there first or came later."""
    w, again = leaf(3, seed=1), leaf(3, seed=1)
    made = torch.compile(lambda x, w=w: (x * w).sum())
    for i in range(6):
        if i == when:
            w.register_hook(lambda g: g * 5)
            again.register_hook(lambda g: g * 5)
        mine, theirs = leaf(3, seed=i), leaf(3, seed=i)
        for x in (mine, theirs):
            x.register_hook(lambda g: g * 3)
        made(mine).backward()
        (theirs * again).sum().backward()
        same([mine, w], [theirs, again])


def test_hooks_registered_by_the_function():
    def build():
        w, seen = leaf(3, seed=1), [0]

        def f(x):
            x.register_hook(lambda g: g * 2)
            return (x * w).sum()

        def arguments(i):
            return (leaf(3, seed=i),)

        return Scenario(lambda x: f(x).backward(), arguments, lambda: (w, seen))

    compare_with_eager(build)


def test_only_requested_inputs_get_gradients():
    made = torch.compile(lambda a, b: (a * 2, b * 3, (a * b).floor()))
    for i in range(5):
        a, b = leaf(3, seed=i), leaf(3, seed=i)
        made(a, b)[0].sum().backward()
        assert a.grad.tolist() == [2.0] * 3
        assert b.grad is None
        made(a, b)[2].sum().backward()
        assert b.grad.tolist() == [0.0] * 3


def test_results_with_retained_gradients():
    def f(x):
        y = x * 2
        y.retain_grad()
        return y, (y * y).sum()

    made = torch.compile(f)
    for i in range(4):
        x = leaf(3, seed=i)
        y, loss = made(x)
        assert y.grad is None
        loss.backward()
        same(y.grad, (x * 4).detach())


def test_backward_through_part_of_the_graph():
    """One result is spent, another can still be differentiated."""
    w = leaf(3, seed=1)

    def f(x):
        first, second = (x * w).exp().sum(), (x * w).sin().sum()
        first.backward()
        return first, second

    made = torch.compile(f)
    for i in range(5):
        x = numbers(3, seed=i)
        w.grad = None
        first, second = made(x)
        second.backward()
        found, w.grad = w.grad, None
        first_again, second_again = f(x)
        second_again.backward()
        same(found, w.grad)
        for spent in (first, first_again):
            with pytest.raises(RuntimeError, match="second time"):
                spent.backward()


def test_aliased_gradients():
    """Two tensors with one gradient are another kind of accumulation."""
    def f(x, y):
        (x * y * y).sum().backward()

    made = torch.compile(f)
    for shared in (False, False, False, True, True, False, True):
        outcomes = []
        for run in (f, made):
            x, y = leaf(3, seed=1), leaf(3, seed=2)
            x.grad = torch.zeros(3)
            y.grad = x.grad if shared else torch.zeros(3)
            run(x, y)
            run(x, y)
            outcomes.append([x.grad.tolist(), y.grad.tolist()])
        np.testing.assert_allclose(*outcomes, rtol=1e-6)


def test_gradients_with_a_history():
    def build():
        w = leaf(3, seed=1)

        def f(x):
            (x * w * w).sum().backward(create_graph=True)

        def between(i):
            w.grad = None

        return Scenario(f, lambda i: (numbers(3, seed=i),), lambda: w.grad, between)

    compare_with_eager(build)


def test_scalars_with_complex_operands_are_constants():
    count = [0]

    def f(x):
        count[0] += 1
        return x * count[0], x.pow(count[0])

    made = torch.compile(f)
    x = torch.tensor([1 + 2j, 3 - 1j])
    for i in range(1, 6):
        same(made(x), (x * i, x.pow(i)))


def test_memory_between_an_arguments_elements_is_not_written():
    """Another thread may write there at the same time."""
    made = torch.compile(lambda x: x.mul_(2).add_(1))
    whole = torch.zeros(400, 600)
    for _ in range(3):
        made(whole[:, ::2])
    assert programs(made) == 1
    [kind] = made._signatures.values()
    program = kind.entries[0].program
    [(leaf, _)] = program.schedule.deferred_copies
    assert program.schedule.regions[leaf] == ((400, 300), (600, 2))
    expected = whole.clone()
    expected[:, ::2] = expected[:, ::2] * 2 + 1
    made(whole[:, ::2])
    same(whole, expected)


def test_arguments_with_a_history():
    w, v = leaf(3, seed=1), leaf(3, seed=2)
    made = torch.compile(lambda h: (h * w).exp().sum())
    for i in range(5):
        outcomes = []
        for run in (made, made.function):
            x = leaf(3, seed=i)
            h = (x * v).tanh()
            found = torch.autograd.grad(run(h) + h.sum(), [x, v, w])
            outcomes.append([g.detach() for g in found])
        same(*outcomes)
    assert programs(made) == 1, reasons(made)


def test_arguments_computed_from_each_other():
    """The gradient of each argument is through the function only; hooks of arguments run when backward is called."""
    made = torch.compile(lambda a, b, c, x: (a * b + c * x).sum())
    for i in range(4):
        outcomes = []
        for run in (made, made.function):
            x, calls = leaf(3, seed=i), []
            a = x * x
            b, c = a.cos().unbind()[0], a.sin()
            a.register_hook(lambda g, calls=calls: calls.append(g.tolist()))
            a.retain_grad()
            result = run(a, b, c, x)
            assert not calls
            assert a.grad is None
            result.backward()
            outcomes.append([x.grad, a.grad])
            np.testing.assert_allclose(calls, [a.grad.tolist()], rtol=1e-6)
        same(*outcomes)
    assert programs(made) == 1, reasons(made)


def test_backward_of_one_result_keeps_what_independent_ones_need():
    def f(x, w):
        return x.exp(), w.sin(), (x * w).exp()

    made = torch.compile(f)
    for order in ((0, 1), (1, 0), (0, 2), (2, 1), (2, 2), (0, 1), (2, 2)):
        outcomes = []
        for run in (made, f):
            x, w = leaf(3, seed=1), leaf(3, seed=2)
            results = run(x, w)
            errors = []
            for number in order:
                try:
                    results[number].sum().backward()
                except RuntimeError as error:
                    errors.append(str(error))
            outcomes.append([x.grad, w.grad, errors])
        same(*outcomes)


def test_results_that_are_not_differentiated_do_not_count():
    """The gradient of a norm at 0 is no number; without a cotangent it is not added."""
    made = torch.compile(lambda x: ((x / x.abs()).norm(), (x * 3).sum(), x.sqrt().sum()))
    for _ in range(4):
        outcomes = []
        for run in (made, made.function):
            x = torch.zeros(3, requires_grad=True)
            run(x)[1].backward()
            outcomes.append(x.grad)
        same(*outcomes)
    assert outcomes[0].tolist() == [3.0] * 3


def test_hooks_that_the_function_registers_on_nodes():
    def f(h):
        h.grad_fn.register_prehook(lambda given: (given[0] * 2,))
        return h * 3

    made = torch.compile(f)
    for i in range(5):
        outcomes = []
        for run in (made, f):
            x = leaf(3, seed=i)
            run(x * x).sum().backward()
            outcomes.append(x.grad)
        same(*outcomes)


def test_recomputed_activations_with_random_numbers():
    from flambeau.utils.checkpoint import checkpoint

    model = torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.Dropout(0.5))
    made = torch.compile(lambda x: checkpoint(model, x, use_reentrant=False))
    for i in range(4):
        outcomes = []
        for run in (made, made.function):
            torch.manual_seed(i)
            x = leaf(2, 4, seed=i)
            run(x).sum().backward()
            outcomes.append(x.grad)
        same(*outcomes)


def test_compiler_errors_warn_and_run_eagerly(monkeypatch):
    def fails(*_):
        raise ZeroDivisionError("somewhere in a plan")

    monkeypatch.setattr("flambeau.compiler.execution.cache_entry.Program", fails)
    compiled = torch.compile(lambda x: x * 2)
    x = torch.ones(3)
    assert torch.equal(compiled(x), x * 2)
    with pytest.warns(RuntimeWarning, match="internal error while compiling, ZeroDivisionError: somewhere in a plan"):
        assert torch.equal(compiled(x), x * 2)
    assert torch.equal(compiled(x + 1), (x + 1) * 2)
    whole = torch.compile(lambda x: x * 2, fullgraph=True)
    whole(x)
    with pytest.raises(ZeroDivisionError):
        whole(x)


def test_tracer_errors_warn_and_run_eagerly(monkeypatch):
    def fails(*_):
        raise ZeroDivisionError("somewhere in a graph")

    monkeypatch.setattr("flambeau.compiler.tracing.tracer.Tracer.lower", fails)
    compiled = torch.compile(lambda x: x * 2)
    x = torch.ones(3)
    with pytest.warns(RuntimeWarning, match="mul cannot be compiled.*ZeroDivisionError: somewhere in a graph"):
        assert torch.equal(compiled(x), x * 2)


def test_no_grad_views_keep_their_base_alive():
    def shown(x):
        y = x * 2
        with torch.no_grad():
            return y.transpose(1, 0)

    compiled = torch.compile(shown)
    for _ in range(4):
        x = leaf(2, 3)
        found = compiled(x)
        assert found.requires_grad
        assert found.is_leaf
        assert found._base is not None
        found.sum().backward()
        assert found.grad is None
        assert x.grad is None


@pytest.mark.parametrize("order", [[False, False, False, False, True, False], [True, True, True, False, False, True]])
@pytest.mark.parametrize("put_on", [
    lambda x: x.register_hook(lambda g: g * 10),
    lambda x: x.register_post_accumulate_grad_hook(lambda x: setattr(x, "grad", x.grad * 3)),
    lambda x: (x * 1).grad_fn.next_functions[0][0].register_hook(lambda given, _: None),
    lambda x: (x * 1).grad_fn.next_functions[0][0].register_prehook(lambda given: (given[0] * 7,))])
def test_hooks_of_arguments_whose_gradients_are_computed_in_the_function(order, put_on):
    def function(x):
        (x * 2).sum().backward()
        return x.grad * 1

    compiled, kept = torch.compile(function), []
    for hooked in order:
        found = []
        for each in (function, compiled):
            x = torch.ones(3, requires_grad=True)
            if hooked:
                kept.append((x * 1).grad_fn.next_functions[0][0])  # which lives as long as it is referenced
                put_on(x)
            found += [each(x), x.grad]
        assert torch.equal(found[0], found[2])
        assert torch.equal(found[1], found[3])


def test_hooks_on_nodes_of_global_tensors():
    weight = torch.ones(3, requires_grad=True)
    node = (weight * 1).grad_fn.next_functions[0][0]

    @torch.compile
    def function(x):
        weight.grad = None
        (x * weight).sum().backward()
        return weight.grad * 1

    for i in range(6):
        if i == 4:
            handle = node.register_prehook(lambda given: (given[0] * 7,))
        if i == 5:
            handle.remove()
        assert function(torch.ones(3)).tolist() == ([7.0] * 3 if i == 4 else [1.0] * 3)


@pytest.mark.parametrize("where", ["an argument", "a buffer"])
def test_operands_written_after_a_multiplication(where):
    """Backward outside needs what was there before."""
    def made():
        buffer = torch.full((3,), 2.0)

        def f(x, y):
            held = y if where == "an argument" else buffer
            found = x * held.clone()
            held.mul_(0.5).add_(1)
            return found

        return f

    eager, compiled = made(), torch.compile(made())
    for i in range(5):
        x = leaf(4, 3, seed=i)
        y = numbers(3, seed=10 + i)
        x2, y2 = x.detach().clone().requires_grad_(), y.clone()
        eager(x, y).sum().backward()
        compiled(x2, y2).sum().backward()
        assert torch.allclose(x.grad, x2.grad)
        assert torch.equal(y, y2)


def test_a_detached_argument_that_is_multiplied_in_place():
    def f(x, y):
        found = y.detach()
        found *= x
        return found

    compiled = torch.compile(f)
    for i in range(5):
        x, y = leaf(1, 3, seed=i), leaf(4, 3, seed=10 + i)
        x2, y2 = (t.detach().clone().requires_grad_() for t in (x, y))
        f(x, y).sum().backward()
        compiled(x2, y2).sum().backward()
        assert torch.allclose(x.grad, x2.grad)
        assert torch.equal(y, y2)


# ----- what ends with the run -------------------------------------------------------------

def _error_text(error: Exception) -> str:
    return str(error)


def _dropped_view(x: torch.Tensor, hook) -> None:
    seen = x[...]
    seen.grad_fn.next_functions[0][0].register_prehook(hook)
    del seen
    (x * 2).sum().backward()


def _write_to_a_view_fails(x: torch.Tensor, hook) -> None:
    seen = x[...]
    seen.grad_fn.next_functions[0][0].register_prehook(hook)
    try:
        seen[0] = seen[0] * 2
    except RuntimeError as error:
        _error_text(error)


@pytest.mark.parametrize("f", [_dropped_view, _write_to_a_view_fails])
def test_traces_keep_no_graph_alive(f):
    """A hook on a leaf's node goes with the node, which only the graph holds."""
    met = []
    compiled = torch.compile(lambda x: f(x, met.append))
    for function in (compiled.function, compiled, compiled, compiled):
        x = leaf(3)
        function(x)
        (x * 3).sum().backward()
        assert met == []


def test_gradients_that_are_inference_tensors():
    """Backward cannot add to it, whether the function was compiled or not."""
    def f(x):
        with torch.inference_mode():
            x.grad = torch.ones_like(x)

    compiled = torch.compile(f)
    for function in (f, compiled, compiled, compiled, compiled):
        x = leaf(3)
        function(x)
        with pytest.raises(RuntimeError, match="Inplace update to inference tensor outside InferenceMode"):
            (x * 2).sum().backward()


def test_a_factorization_that_fails_later_raises():
    f = torch.compile(lambda a: torch.linalg.cholesky(a) * 2)
    for scale in (1, 2, 3):
        f(torch.eye(2) * scale)
    with pytest.raises(torch.linalg.LinAlgError, match="the leading minor of order 2 is not positive-definite"):
        f(torch.tensor([[1.0, 2.0], [2.0, 1.0]]))
