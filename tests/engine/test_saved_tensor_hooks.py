"""Saved-tensor hooks: arguments, order, results and cleanup."""

from __future__ import annotations

import gc
import threading
import weakref

import pytest

import flambeau as torch
from flambeau.autograd import graph
from flambeau.autograd.graph import disable_saved_tensors_hooks, save_on_cpu, saved_tensors_hooks
from flambeau.modes import special


@pytest.fixture(autouse=True)
def nothing_is_left_on():
    before = special[0]
    yield
    assert special[0] == before
    x = torch.tensor(1.0, requires_grad=True)
    assert (x * x).grad_fn._raw_saved_self.unpack_hook is None


class Counting(saved_tensors_hooks):
    """Hooks that count what passes through them."""

    def __init__(self):
        self.packed, self.unpacked = [], []

        def pack(t):
            self.packed.append(t)
            return len(self.packed) - 1

        def unpack(place):
            self.unpacked.append(place)
            return self.packed[place]

        super().__init__(pack, unpack)


def leaf(*values):
    return torch.tensor(values, requires_grad=True)


# ----- arguments of the hooks ------------------------------------------------------------


def test_every_saved_tensor_is_packed_once_and_unpacked_once():
    x, y = leaf(1.0, 2.0), leaf(3.0, 4.0)
    with Counting() as nothing:
        assert nothing is None
    hooks = Counting()
    with hooks:
        out = (x * y).exp().sum()
    assert len(hooks.packed) == 3
    assert not hooks.unpacked
    out.backward()
    assert sorted(hooks.unpacked) == [0, 1, 2]


def test_an_input_is_handed_over_itself_and_an_output_with_its_history():
    x = leaf(1.0)
    hooks = Counting()
    with hooks:
        product = x * x
        power = product.exp()
    assert hooks.packed[0] is x
    assert hooks.packed[1] is x
    assert hooks.packed[2] is power
    assert hooks.packed[2].grad_fn is power.grad_fn


def test_what_needs_no_gradient_is_not_packed():
    x, fixed = leaf(1.0), torch.tensor([2.0])
    hooks = Counting()
    with hooks:
        fixed * fixed
        x * fixed
        with torch.no_grad():
            x * x
        x + x
    assert hooks.packed == [fixed]


def test_numbers_are_not_packed():
    def refuse(t):
        raise AssertionError("a number was packed")

    x = leaf(1.0, 2.0)
    with saved_tensors_hooks(refuse, refuse):
        out = (x * 3 + 2.5) / 4
    out.sum().backward()
    assert x.grad.tolist() == [0.75, 0.75]


def test_pack_runs_without_recording_and_unpack_as_backward_does():
    seen = []
    x = leaf(1.0)

    def look(t):
        seen.append(torch.is_grad_enabled())
        return t

    with saved_tensors_hooks(look, look):
        y = x.exp()
        y.grad_fn._saved_result
        torch.autograd.grad(y, x, retain_graph=True)
        assert seen == [False, True, False]
        del seen[:]
        torch.autograd.grad(y, x, create_graph=True)
    assert seen[0] is True


def test_what_is_packed_may_be_anything():
    x = leaf(1.0, 2.0)
    with saved_tensors_hooks(lambda t: t.tolist(), torch.tensor):
        y = x * x
    assert y.grad_fn._raw_saved_self.data == [1.0, 2.0]
    y.sum().backward()
    assert x.grad.tolist() == [2.0, 4.0]


def test_saved_values_read_under_their_names_are_unpacked_each_time():
    x = leaf(2.0)
    hooks = Counting()
    with hooks:
        y = x * x
    for _ in range(3):
        y.grad_fn._saved_other
    assert hooks.unpacked == [0, 0, 0]  # they are saved in the order of their names


def test_the_innermost_pair_alone_is_called():
    x = leaf(2.0)
    outer, inner = Counting(), Counting()
    with outer:
        with inner:
            x.sin()
        x.cos()
    assert (len(outer.packed), len(inner.packed)) == (1, 1)


def test_indices_and_masks_are_packed():
    x = leaf(1.0, 2.0, 3.0)
    hooks = Counting()
    with hooks:
        x[torch.tensor([0, 2])]
        torch.where(torch.tensor([True, False, True]), x, x)
        x.max(0)
    kinds = [t.dtype for t in hooks.packed]
    assert kinds == [torch.int64, torch.bool, torch.int64]
    y = x[torch.tensor([0, 2])]
    assert y.grad_fn._saved_indices[0].tolist() == [0, 2]
    assert len(y.grad_fn._raw_saved_indices) == 1


@pytest.mark.parametrize("make", [
    lambda x: x.matmul(x), lambda x: torch.nn.functional.linear(x, x, x[0]), lambda x: x.sum(0).softmax(0),
    lambda x: torch.nn.functional.cross_entropy(x, torch.tensor([0, 1])), lambda x: x.view(-1)[1:].exp(),
    lambda x: x.clone().mul_(x).exp_(), lambda x: torch.cat([x, x]).std(), lambda x: x.half().float() ** 3,
    lambda x: x.to(torch.complex64).abs(), lambda x: torch.linalg.inv(x + 3 * torch.eye(2)), lambda x: x.prod(),
    lambda x: x[:, :0].exp(), lambda x: torch.where(x > 0, x, x.exp()), lambda x: x.cumsum(0).cumprod(1)])
def test_gradients_are_the_same_through_hooks(make):
    start = torch.tensor([[0.5, -1.0], [2.0, 0.25]])

    def gradients(hooks):
        x = start.clone().requires_grad_()
        with hooks:
            out = make(x)
            g, = torch.autograd.grad(out.sum(), x, create_graph=True)
            again = torch.autograd.grad((g * g).sum(), x)[0] if g.requires_grad else None
        return g.tolist(), None if again is None else again.tolist()

    class Nothing:
        def __enter__(self):
            pass

        def __exit__(self, *exception):
            pass

    expected = gradients(Nothing())
    assert gradients(saved_tensors_hooks(lambda t: t.detach().clone(), lambda t: t)) == expected
    assert gradients(Counting()) == expected


# ----- functions of the user's own -------------------------------------------------------


class Cube(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, fixed):
        out = x ** 3 * fixed
        ctx.save_for_backward(x, None, fixed, out)
        return out

    @staticmethod
    def backward(ctx, g):
        x, nothing, fixed, out = ctx.saved_tensors
        assert nothing is None
        assert out.grad_fn is ctx
        return 3 * x ** 2 * fixed * g, None


def test_a_function_packs_what_it_saves():
    x, fixed = leaf(2.0), torch.tensor([5.0])
    hooks = Counting()
    with hooks:
        y = Cube.apply(x, fixed)
    assert hooks.packed[0] is x
    assert hooks.packed[1] is fixed
    assert len(hooks.packed) == 3
    y.backward()
    assert x.grad.item() == 60.0
    assert sorted(hooks.unpacked) == [0, 1, 2]


def test_a_functions_places():
    x = leaf(2.0)
    y = Cube.apply(x, torch.ones(1))
    places = y.grad_fn._raw_saved_tensors
    places[0].register_hooks(lambda t: t * 2, lambda t: t)
    assert places[0].data.tolist() == [4.0]
    assert places[3].data.tolist() == [8.0]
    assert places[0].unpack_hook(1) == 1
    assert places[3].unpack_hook is None
    assert [places[0].unpack().tolist(), places[3].unpack().tolist()] == [[4.0], [8.0]]
    with pytest.raises(RuntimeError, match="hooks have already been set"):
        places[0].register_hooks(lambda t: t, lambda t: t)
    with pytest.raises(RuntimeError, match="with value None is forbidden"):
        places[1].register_hooks(lambda t: t, lambda t: t)
    y.backward()
    assert x.grad.item() == 48.0
    with pytest.raises(RuntimeError, match="after it has been freed"):
        places[2].register_hooks(lambda t: t, lambda t: t)
    with pytest.raises(RuntimeError, match="backward through the graph a second time"):
        y.grad_fn._raw_saved_tensors


# ----- one place of one node -------------------------------------------------------------


def test_hooks_on_one_place():
    x = leaf(3.0)
    y = x * x
    place = y.grad_fn._raw_saved_self
    assert place.unpack_hook is None
    assert place.data is x
    place.register_hooks(lambda t: (t.requires_grad, t + 1), lambda pair: pair[1])
    assert place.data[0] is False
    assert place.unpack().tolist() == [4.0]
    assert y.grad_fn._saved_self.requires_grad
    y.backward()
    assert x.grad.item() == 7.0


def test_a_place_of_a_result_keeps_its_history():
    x = leaf(0.0)
    y = x.exp()
    y.grad_fn._raw_saved_result.register_hooks(lambda t: t, lambda t: t)
    assert y.grad_fn._saved_result.grad_fn is y.grad_fn
    g, = torch.autograd.grad(y, x, create_graph=True)
    g.backward()
    assert x.grad.item() == 1.0


def test_a_place_of_a_number():
    x = leaf(2.0)
    y = x * 3
    y.grad_fn._raw_saved_other.register_hooks(lambda t: t * 2, lambda t: t)
    y.backward()
    assert x.grad.tolist() == [6.0]
    assert x.grad.dtype is torch.float32


def test_what_a_place_refuses():
    x = leaf(3.0)
    y = x * x
    place = y.grad_fn._raw_saved_self
    for hooks in [(1, 2), (abs,), (abs, abs, abs)]:
        with pytest.raises(TypeError, match="incompatible function arguments"):
            place.register_hooks(*hooks)
    with pytest.raises(TypeError, match="missing 1 required positional argument"):
        place.register_hooks(lambda a, b: a, lambda a: a)
    with pytest.raises(RuntimeError, match="forbidden"):
        type(place)()
    y.backward()
    with pytest.raises(RuntimeError, match="after it has been freed"):
        place.register_hooks(lambda t: t, lambda t: t)


# ----- errors ----------------------------------------------------------------------------


def test_a_pack_hook_may_not_write_to_its_input():
    x = leaf(1.0).exp()
    with saved_tensors_hooks(lambda t: t.mul_(2), lambda t: t), \
            pytest.raises(RuntimeError, match="pack hook is modifying its input in place"):
        x.sin()


def test_unpack_must_give_a_tensor():
    x = leaf(1.0)
    with saved_tensors_hooks(lambda t: t, lambda t: None):
        y = x.exp()
    with pytest.raises(TypeError, match="expected to be a Tensor but got result of type NoneType"):
        y.backward()


def test_hooks_must_be_callable():
    with pytest.raises(TypeError, match="incompatible function arguments"), saved_tensors_hooks(1, 2):
        pass


def test_an_error_in_pack_stops_the_operator_and_nothing_else():
    class Refusal(Exception):
        pass

    def refuse(t):
        raise Refusal

    x = leaf(1.0, 2.0)
    y = x.clone()
    with saved_tensors_hooks(refuse, refuse):
        with pytest.raises(Refusal):
            y.sin_()
        assert y.tolist() == [1.0, 2.0]
        with pytest.raises(Refusal):
            y.exp_()
    assert y.grad_fn.name() == "ExpBackward0"
    (x * x).sum().backward()
    assert x.grad.tolist() == [2.0, 4.0]


def test_an_error_in_unpack_leaves_the_engine_usable():
    fail = [True]

    def unpack(t):
        if fail[0]:
            raise ValueError("not now")
        return t

    x = leaf(1.0, 2.0)
    with saved_tensors_hooks(lambda t: t, unpack):
        y = (x * x).sum()
    with pytest.raises(ValueError, match="not now"):
        y.backward(retain_graph=True)
    assert torch.is_grad_enabled()
    fail[0] = False
    y.backward()
    assert x.grad.tolist() == [2.0, 4.0]


def test_hooks_that_unpack_leaves_on_are_taken_away():
    stray = saved_tensors_hooks(lambda t: t, lambda t: t)

    def unpack(t):
        stray.__enter__()
        return t

    x = leaf(1.0)
    with saved_tensors_hooks(lambda t: t, unpack):
        x.exp().backward()
    with pytest.raises(RuntimeError):
        stray.__exit__()


# ----- graphs of graphs, lifetimes, threads ----------------------------------------------


def test_the_gradients_graph_is_packed_where_it_is_made():
    x = leaf(2.0)
    y = x ** 3
    hooks = Counting()
    with hooks:
        g, = torch.autograd.grad(y, x, create_graph=True)
    assert hooks.packed
    g.backward()
    assert x.grad.item() == 12.0


def test_an_unpacked_leaf_sends_its_gradient_to_the_leaf():
    x = leaf(2.0)
    with saved_tensors_hooks(lambda t: t.detach().clone(), lambda t: t):
        y = x * x
    seen = y.grad_fn._saved_self
    assert seen is not x
    assert seen.is_leaf
    (seen * 5).backward()
    assert x.grad.item() == 5.0


def test_writes_to_saved_tensors_are_the_hooks_business():
    x = leaf(2.0)
    y = x.clone()
    with saved_tensors_hooks(lambda t: t.detach().clone(), lambda t: t):
        z = y * y
    y.add_(1)
    z.backward()
    assert x.grad.item() == 4.0


def test_packed_values_die_with_the_graph():
    class Parcel:
        pass

    alive = []

    def pack(t):
        parcel = Parcel()
        alive.append(weakref.ref(parcel))
        return parcel

    def held():
        return sum(reference() is not None for reference in alive)

    x = leaf(1.0)
    with saved_tensors_hooks(pack, lambda p: x.detach()):
        y = x.exp().sin().exp()
    assert held() == 3
    y.backward(retain_graph=True)
    assert held() == 3
    y.backward()
    assert held() == 0
    gc.disable()
    try:
        with saved_tensors_hooks(pack, lambda p: x.detach()):
            y = x.exp().exp()
        del y
        assert held() == 0
    finally:
        gc.enable()


def test_other_threads_are_left_alone():
    hooks = Counting()
    found = []

    def work():
        x = leaf(3.0)
        y = x * x
        y.backward()
        found.append((x.grad.item(), y.grad_fn.name()))

    with hooks:
        thread = threading.Thread(target=work)
        thread.start()
        thread.join()
    assert found == [(6.0, "MulBackward0")]
    assert not hooks.packed


def test_each_thread_has_hooks_of_its_own():
    counts = {}

    def work(name, n):
        hooks = Counting()
        x = leaf(1.0)
        with hooks:
            for _ in range(n):
                x = x.exp()
        x.backward()
        counts[name] = len(hooks.packed), len(hooks.unpacked)

    threads = [threading.Thread(target=work, args=(i, 20 + i)) for i in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert counts == {i: (20 + i, 20 + i) for i in range(4)}


# ----- keeping on the CPU, refusing, edges, versions -------------------------------------


@pytest.mark.parametrize("pinned", [False, True])
def test_save_on_cpu(pinned):
    x = leaf(1.0, 2.0)
    with save_on_cpu(pin_memory=pinned):
        y = x * x
    device, kept = y.grad_fn._raw_saved_self.data
    assert device.type == "cpu"
    assert (kept is x) is not pinned
    y.sum().backward()
    assert x.grad.tolist() == [2.0, 4.0]


def test_hooks_can_be_refused():
    with disable_saved_tensors_hooks("outer"):
        with disable_saved_tensors_hooks("inner"), pytest.raises(RuntimeError, match=r"^inner$"), Counting():
            pass
        with pytest.raises(RuntimeError, match=r"^outer$"), Counting():
            pass
    with Counting(), pytest.raises(RuntimeError, match=r"^late$"), disable_saved_tensors_hooks("late"):
        pass
    with Counting():
        pass


def test_refusing_decorates_functions():
    @disable_saved_tensors_hooks("not in here")
    def function():
        with Counting():
            pass

    with pytest.raises(RuntimeError, match="not in here"):
        function()


def test_an_edge_is_a_named_tuple():
    x = leaf(1.0)
    edge = graph.get_gradient_edge(x * 2)
    assert edge._fields == ("node", "output_nr", "ownership_token")
    assert edge.node.name() == "MulBackward0"
    assert torch.autograd.grad(x * 2, graph.get_gradient_edge(x))[0].item() == 2.0
    with pytest.raises(RuntimeError, match="does not require gradients"):
        graph.get_gradient_edge(torch.ones(1))


def test_increment_version():
    x, y = torch.zeros(2), torch.zeros(2)
    graph.increment_version(x)
    graph.increment_version([x, y])
    assert (x._version, y._version) == (2, 1)
    with pytest.raises(RuntimeError, match=r"Iterable\[Tensor\]"):
        graph.increment_version(1)
    with pytest.raises(RuntimeError, match="element"):
        graph.increment_version([1])
    z = leaf(1.0).clone()
    w = z * z
    graph.increment_version(z)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        w.backward()


def test_nodes_are_nodes():
    x = leaf(1.0)
    assert isinstance((x * x).grad_fn, graph.Node)
    assert isinstance(Cube.apply(x, x).grad_fn, graph.Node)
    assert not isinstance(x, graph.Node)


def test_every_public_name_is_there():
    assert all(hasattr(graph, name) for name in graph.__all__)
    graph.set_warn_on_accumulate_grad_stream_mismatch(False)
    graph.set_override_stale_capture_stream(True)


@pytest.mark.parametrize("name", ["sin", "cos", "tanh", "erf", "sinc", "i0"])
def test_packed_values_of_many_elements_have_the_same_gradient(name):
    values = torch.randn(30, 200) * 10
    unpacked = []

    def unpack(x):
        unpacked.append(x)
        return x

    def gradient():
        x = values.clone().requires_grad_()
        y = getattr(torch, name)(x)
        return x, y.sum()

    plain, total = gradient()
    total.backward()
    with torch.autograd.graph.saved_tensors_hooks(lambda x: x, unpack):
        packed, total = gradient()
    total.backward()
    assert torch.equal(plain.grad, packed.grad)
    assert len(unpacked) == 1
