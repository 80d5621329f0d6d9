"""Rarely used modules of `nn` compared with PyTorch: adaptive softmax, bags, legacy layers, parallelism."""

from __future__ import annotations

import importlib
import inspect
import warnings

import numpy as np
import pytest

import flambeau

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.parity


def text(x):
    return repr(x).replace("flambeau.", "torch.")


def outcomes(program):
    """`program(lib)` on both sides from one seed: its results, tensors compared by value."""
    both = []
    for lib in (torch, flambeau):
        lib.manual_seed(5)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            try:
                result = program(lib)
            except Exception as error:
                result = [type(error).__name__, text(str(error))]
        both.append(([x for x in result if not hasattr(x, "detach")], [x for x in result if hasattr(x, "detach")],
                     [(w.category.__name__, text(str(w.message))) for w in caught]))
    (their_values, theirs, their_warnings), (our_values, ours, our_warnings) = both
    assert text(our_values) == text(their_values)
    assert our_warnings == their_warnings
    assert len(theirs) == len(ours)
    for a, b in zip(theirs, ours, strict=True):
        assert text(a.dtype) == text(b.dtype)
        np.testing.assert_allclose(b.detach().numpy(), a.detach().numpy(), rtol=2e-5, atol=1e-6)


@pytest.mark.parametrize("arguments", ["6, 10, [2, 5]", "6, 10, [2, 5, 8], 1.5, True", "4, 3, [1]"])
def test_adaptive_softmax(arguments):
    def program(lib):
        m = eval(f"lib.nn.AdaptiveLogSoftmaxWithLoss({arguments})", {"lib": lib})
        x = lib.randn(5, m.in_features, requires_grad=True)
        target = lib.arange(5) * 2 % m.n_classes
        result = m(x, target)
        result.loss.backward()
        one = m(x[0], target[0])
        return [text(m), list(m.state_dict()), result.output, result.loss, x.grad, *(p.grad for p in m.parameters()),
                m.log_prob(x), m.predict(x), *one, tuple(one.output.shape)]
    outcomes(program)


@pytest.mark.parametrize("source", [
    "nn.AdaptiveLogSoftmaxWithLoss(4, 5, [])", "nn.AdaptiveLogSoftmaxWithLoss(4, 5, [3, 2])",
    "nn.AdaptiveLogSoftmaxWithLoss(4, 5, [5])", "nn.AdaptiveLogSoftmaxWithLoss(4, 5, [2.5])",
    "nn.AdaptiveLogSoftmaxWithLoss(4, 5, [2])(lib.ones(2, 4), lib.tensor([0, 7]))",
    "nn.AdaptiveLogSoftmaxWithLoss(4, 5, [2])(lib.ones(2, 4), lib.tensor([0]))",
    "nn.AdaptiveLogSoftmaxWithLoss(4, 5, [2])(lib.ones(2), lib.tensor([0, 1]))",
    "nn.AdaptiveLogSoftmaxWithLoss(4, 5, [2])(lib.ones(1, 4), lib.tensor(0))",
    "nn.AdaptiveLogSoftmaxWithLoss(4, 5, [2])(lib.ones(1, 4), lib.tensor([[0]]))",
    "nn.EmbeddingBag(3, 2, padding_idx=4)", "nn.EmbeddingBag(3, 2, _weight=lib.ones(2, 2))",
    "nn.EmbeddingBag(3, 2, mode='x')(lib.tensor([[0]]))", "nn.EmbeddingBag(3, 2)(lib.tensor([0]))",
    "nn.EmbeddingBag(3, 2)(lib.tensor([0, 7]), lib.tensor([0]))", "nn.EmbeddingBag(3, 2)(lib.tensor(0))",
    "nn.EmbeddingBag(3, 2).double()(lib.tensor([0, 7]), lib.tensor([0]))",
    "nn.EmbeddingBag(3, 2, mode='max', scale_grad_by_freq=True)(lib.tensor([[0]]))",
    "nn.EmbeddingBag(3, 2, mode='max', sparse=True)(lib.tensor([[0]]))",
    "nn.EmbeddingBag(3, 2)(lib.tensor([[0]]), per_sample_weights=lib.ones(1, 1))",
    "nn.EmbeddingBag.from_pretrained(lib.ones(2))", "nn.CrossMapLRN2d(2)(lib.ones(2, 3))",
    "nn.parallel.data_parallel(nn.ReLU(), lib.ones(2))", "nn.parallel.DistributedDataParallel(nn.ReLU())",
    "nn.parallel.DistributedDataParallelCPU(nn.ReLU())", "nn.parallel.gather([lib.ones(1)], 0)",
    "nn.parallel.replicate(nn.Linear(1, 1), [0])", "nn.parallel.replicate(nn.Linear(1, 1), ['cpu'])",
    "nn.parallel.parallel_apply([nn.ReLU()], [])", "nn.parallel.parallel_apply([nn.ReLU()], [lib.ones(1)])",
    "nn.parallel.scatter((1, 2), [0, 1])", "nn.parallel.scatter({'a': 1}, [0, 1])",
    "[nn.factory_kwargs({'device': 'cpu', 'factory_kwargs': {'dtype': lib.float16}})]", "nn.factory_kwargs({'a': 1})",
    "nn.factory_kwargs({'dtype': 1, 'factory_kwargs': {'dtype': 2}})", "[nn.factory_kwargs(None)]",
    "[nn.Container(a=nn.ReLU())]", "[repr(nn.EmbeddingBag(3, 2, 1.0, 1.0, True, 'max', padding_idx=-1))]",
    "[repr(nn.CrossMapLRN2d(2, 0.1))]", "lib.embedding_bag(lib.ones(3, 2), lib.tensor([0, 1]), lib.tensor([1]))",
    "lib.embedding(lib.ones(3, 2), lib.tensor([0, 1])), lib.embedding(lib.ones(3, 2), lib.tensor([[2]]), 1)",
])
def test_calls(source):
    outcomes(lambda lib: eval(source, {"lib": lib, "nn": lib.nn}))


@pytest.mark.parametrize("padding", [(), (3,)])
def test_means_of_bags_whose_last_offset_is_not_the_end(padding):
    def program(lib):
        weight = lib.eye(4).requires_grad_()
        offsets = lib.tensor([0, 1, 2])
        results = lib.embedding_bag(weight, lib.tensor([0, 1, 2, 3]), offsets, False, 1, False, None, True,
                                    *padding)
        results[0].sum().backward()
        return *results, weight.grad

    outcomes(program)


@pytest.mark.parametrize("options", [
    {}, {"mode": "sum"}, {"mode": "max"}, {"padding_idx": 1}, {"mode": "sum", "padding_idx": 1},
    {"mode": "max", "padding_idx": 1}, {"scale_grad_by_freq": True}, {"mode": "sum", "scale_grad_by_freq": True},
    {"max_norm": 1.0}, {"mode": "sum", "include_last_offset": True}, {"include_last_offset": True, "padding_idx": 1},
    {"mode": "max", "include_last_offset": True}, {"dtype": "float64"},
    {"dtype": "float64", "include_last_offset": True},
], ids=lambda o: "-".join(f"{k}={v}" for k, v in o.items()))
def test_embedding_bag(options):
    def program(lib):
        chosen = {**options, "dtype": getattr(lib, options.get("dtype", "float32"))}
        bags = lib.nn.EmbeddingBag(5, 3, **chosen)
        index = lib.tensor([0, 1, 1, 4, 2, 1, 3])
        results = []
        last = 7 if options.get("include_last_offset") else 5  # PyTorch's gradient reads beyond the bags otherwise
        for offsets in (lib.tensor([0, 3, 3, last]), lib.tensor([0, 7]), lib.tensor([0]).int()):
            if len(offsets) == 1 and options.get("include_last_offset"):
                continue
            bags.zero_grad()
            out = bags(index, offsets)
            (out * out).sum().backward()
            results += [out, bags.weight.grad.clone()]
            mode = ("sum", "mean", "max").index(bags.mode)
            results += lib.embedding_bag(bags.weight, index, offsets, bags.scale_grad_by_freq, mode, False, None,
                                         bags.include_last_offset, bags.padding_idx)
        frozen = lib.embedding_bag(bags.weight.detach(), index, lib.tensor([0, 3, 7]), False, mode, False, None,
                                   bags.include_last_offset)
        results += frozen[:3]
        if bags.mode == "sum":
            factors = lib.arange(7, dtype=bags.weight.dtype, requires_grad=True)
            out = bags(index, lib.tensor([0, 3, 7]), factors)
            out.sin().sum().backward()
            results += [out, factors.grad]
        return [*results, bags(index.reshape(1, 7)) if not options.get("include_last_offset") else out,
                bags.weight, str(out.grad_fn).partition(" ")[0]]
    outcomes(program)


@pytest.mark.parametrize(("size", "channels"), [(2, 3), (3, 5), (5, 4), (4, 6)])
def test_cross_map_lrn(size, channels):
    def program(lib):
        x = lib.randn(2, channels, 3, 2, requires_grad=True)
        out = lib.nn.CrossMapLRN2d(size, 0.5, 0.6, 2.0)(x)
        (out * out).sum().backward()
        return [out, x.grad, type(out.grad_fn).__name__]
    outcomes(program)


def test_tuples_and_prefixes():
    def program(lib):
        utils = importlib.import_module(f"{lib.__name__}.nn.modules.utils")
        state = lib.nn.DataParallel(lib.nn.Sequential(lib.nn.Linear(1, 1))).state_dict()
        utils.consume_prefix_in_state_dict_if_present(state, "module.")
        return [list(state), list(state._metadata), utils._pair(2), utils._triple([1, 2]), utils._single.__name__,
                utils._reverse_repeat_tuple((1, 2), 2), utils._list_with_default([None, 3], [1, 2, 5]),
                utils._list_with_default(4, [])]
    outcomes(program)


@pytest.mark.parametrize("rank", [1, 2, 3])
def test_gradients_of_convolutions(rank):
    def program(lib):
        x, w = lib.randn(2, 4, *[5] * rank), lib.randn(6, 2, *[2] * rank, requires_grad=True)
        out = getattr(lib, f"conv{rank}d")(x, w, None, 2, 1, 1, 2)
        g = lib.randn(out.shape)
        of_input = getattr(lib.nn.grad, f"conv{rank}d_input")(x.shape, w, g, 2, 1, 1, 2)
        of_weight = getattr(lib.nn.grad, f"conv{rank}d_weight")(x, w.shape, g, 2, 1, 1, 2)
        (of_input ** 2).sum().backward()
        return [of_input, of_weight, w.grad]
    outcomes(program)


@pytest.mark.parametrize("module", ["nn.parallel", "nn.grad", "nn.common_types", "nn.parameter", "nn.modules.lazy",
                                    "nn.modules.transformer", "nn.modules.adaptive", "nn.modules.sparse",
                                    "nn.parallel.data_parallel", "nn.parallel.scatter_gather"])
def test_names(module):
    theirs, ours = (importlib.import_module(f"{lib}.{module}") for lib in ("torch", "flambeau"))
    names = getattr(theirs, "__all__", [n for n in vars(theirs) if n.startswith("_") and n.endswith("_t")])
    for name in names:
        a, b = getattr(theirs, name), getattr(ours, name)
        if inspect.isfunction(a):
            assert list(inspect.signature(b).parameters) == list(inspect.signature(a).parameters)


def test_skipped_initialization_and_functional_grad():
    flambeau.manual_seed(1)
    initialized = flambeau.nn.Linear(5, 1)
    flambeau.manual_seed(1)
    skipped = flambeau.nn.utils.skip_init(flambeau.nn.Linear, 5, 1)
    assert skipped.weight.device.type == "cpu"
    assert not flambeau.allclose(initialized.weight, skipped.weight)
    assert flambeau.nn.functional.grad is flambeau.nn.grad


@pytest.mark.parametrize("training", [False, True])
@pytest.mark.parametrize("duals", [(0,), (1,), (0, 1), (4, 2)])
def test_running_statistics_with_tangents(duals, training):
    def program(lib):
        forward_ad = lib.autograd.forward_ad
        x = [lib.ones(3, 2, 5), lib.zeros(2), lib.ones(2), lib.ones(2), lib.zeros(2)]
        with forward_ad.dual_level():
            x = [forward_ad.make_dual(a, lib.ones_like(a)) if k in duals else a for k, a in enumerate(x)]
            try:
                out = lib.nn.functional.batch_norm(*x, training=training)
            except RuntimeError as error:
                return [str(error)]
            return [forward_ad.unpack_dual(out).tangent is None]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # PyTorch's own use of torch.jit
        assert program(flambeau) == program(torch)


@pytest.mark.parametrize("arguments", [("none",), ("mean",), ("elementwise_mean",), ("sum",), ("other",), (None, None),
                                       (False, None), (True, False), (None, True)])
def test_numbers_of_reductions(arguments):
    def program(lib):
        numbers = lib.nn._reduction
        if len(arguments) == 2:
            return [numbers.legacy_get_string(*arguments), numbers.legacy_get_enum(*arguments, False)]
        try:
            return [numbers.get_enum(*arguments)]
        except ValueError as error:
            return [str(error)]
    outcomes(program)


def test_losses_of_torch_reduce_nothing_by_default():
    def program(lib):
        x, signs = lib.randn(3, 3), lib.tensor([1., -1., 1.])
        losses = [lib.margin_ranking_loss(x, x.t(), signs, 0.5), lib.hinge_embedding_loss(x, signs),
                  lib.cosine_embedding_loss(x, x.t(), signs), lib.triplet_margin_loss(x, x + 1, x),
                  lib.kl_div(x, x.exp()), lib.kl_div(x, x.exp(), 1)]
        with lib.autocast("cpu", dtype=lib.bfloat16):
            return [*losses, lib.margin_ranking_loss(x.bfloat16(), x.t().bfloat16(), signs)]
    outcomes(program)
