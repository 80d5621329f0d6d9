"""Calls that PyTorch's argument parser refuses or takes in another form: errors, results and warnings."""

from __future__ import annotations

import importlib.util
import warnings

import numpy as np
import pytest

import flambeau

pytestmark = [pytest.mark.parity,
              pytest.mark.skipif(importlib.util.find_spec("torch") is None, reason="PyTorch is the oracle")]

#: expressions of `torch`, `F`, and new tensors `x` (2, 3), `n` of integers, `z` complex, and `img` (1, 2, 4, 4)
CALLS = (
    # NumPy's names of parameters
    "torch.fft.fft(x, axis=0)", "torch.fft.fftn(x, axis=0)", "torch.fft.rfft2(x, axis=(0, 1))", "x.kthvalue(1, axis=0)",
    "torch.fft.fftshift(x, axis=1)", "torch.cosine_similarity(x, x, axis=0)", "torch.fft.fft(x, dim=0, axis=0)",
    # integers beyond 64 bits
    "x + 2**70", "x * -2**70", "x > 2**70", "n + 2**70", "n == -2**70", "torch.eq(x, 2**64 - 1)", "x.fill_(2**70)",
    "x.size(2**70)", "x.stride(2**70)", "x.sum(2**70)", "x.unsqueeze(2**70)", "x.tensor_split(2**70)", "x.add_(2**70)",
    # dimensions and sizes of other classes
    "x.stride(2.)", "x.size(dim=2.)", "x.chunk(True)", "torch.chunk(x, torch.tensor(True))", "x.chunk(2.)",
    "x.unsqueeze(torch.tensor(True))", "x.unsqueeze(np.int64(1))", "x.chunk(np.int64(2))",
    # functions that PyTorch writes in Python
    "F.unfold(img, True)", "F.unfold(img, 2, (1, 'a'))", "F.unfold([1], 2)",
    "F.fold(img[0, 0], True, 1)", "F.adaptive_avg_pool2d(2., 1)", "F.adaptive_avg_pool2d(img, 'a')",
    "F.adaptive_avg_pool2d(img, [1])", "F.adaptive_avg_pool2d(img, ())", "F.adaptive_max_pool2d(img, (1, 'a'))",
    "F.adaptive_max_pool1d(img[0], None)", "F.adaptive_max_pool2d(img, [1])", "F.soft_margin_loss(x, 1.5)",
    "F.kl_div(x, x, log_target=1.)", "F.kl_div(x.log(), x, size_average=True, reduction='batchmean')",
    "F.max_unpool1d([1], n[None], 2)", "F.max_unpool2d(img, img.long(), torch.tensor(2))",
    "F.max_unpool2d(img, img.long(), 2, output_size=3)", "F.max_unpool2d(img, img.long(), 2, padding=[1])",
    "F.cosine_similarity([1], x)", "F.cosine_similarity(x, x, dim=(1,))", "F.pairwise_distance(1, x)",
    "torch.stft(torch.ones(16), 4, torch.ones(16)[:4].numel(), onesided=[], return_complex=True)",
    # weights that do not broadcast to the loss
    *(f"F.binary_cross_entropy{name}(x * 0.5, x, {weight}=torch.ones{shape}).shape" for shape in (
        "(2)", "(3)", "(2, 1)", "(1, 2, 3)", "()") for name, weight in (
            ("", "weight"), ("_with_logits", "weight"), ("_with_logits", "pos_weight"))),
    "torch.min(x, torch.tensor(1), True)", "torch.min(x, torch.tensor(1))", "x.max(torch.tensor(0), keepdim=True)",
    # other refusals
    "torch.lerp(x, x, 1j)", "x.lerp_(x, 1j)", "torch.lerp(x.half(), x.half(), 2j)", "torch.lerp(z, z, 1j)",
    "torch.add(x, x, alpha=torch.tensor(True))", "torch.sub(n, n, alpha=torch.tensor(1))", "x.add(2, alpha=True)",
    "n.div_(n, rounding_mode=None)", "n.div_(2, rounding_mode=None)", "x.fill_((1, 'a'))", "torch.fill_(x, [1])",
    "torch.bernoulli(z)", "torch.bernoulli(n)", "x.bernoulli_(torch.ones(2))", "x[:0].bernoulli_(torch.ones(2))",
    "torch.conj_physical([1])", "torch.softmax(x, 0, dtype=np.int64(1))", "torch.full((1,), np.array([1, 2]))",
)


def _outcome(torch, expression):
    """The error or the result, and the warnings."""
    names = {"torch": torch, "np": np, "F": torch.nn.functional, "x": torch.ones(2, 3), "img": torch.ones(1, 2, 4, 4),
             "n": torch.ones(2, 3, dtype=torch.int64), "z": torch.ones(2, 3, dtype=torch.complex64)}
    torch.manual_seed(0)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            y = eval(expression, names)
            y = [(str(v.dtype).partition(".")[2], tuple(v.shape), v.resolve_conj().tolist())
                 if isinstance(v, torch.Tensor) else v
                 for v in (y if isinstance(y, (list, tuple)) else [y])]
        except Exception as error:
            y = type(error), str(error).replace("flambeau.", "torch.")
    return y, [w.category for w in caught if "loss" not in str(w.message)]


@pytest.mark.parametrize("expression", CALLS)
def test_calls(expression):
    import torch

    ours, theirs = _outcome(flambeau, expression), _outcome(torch, expression)
    assert ours == theirs


def test_conjugate_views_of_inverse_transforms():
    import torch

    for dim in ((0,), (0, 1)):
        ours, theirs = (t.fft.ihfft2(t.ones(2, 4), dim=dim) for t in (flambeau, torch))
        assert (ours.is_conj(), ours.stride(), ours._base is None) == (theirs.is_conj(), theirs.stride(),
                                                                       theirs._base is None)


def test_step_lengths_that_are_tensors():
    """LBFGS keeps the length of its last step as PyTorch does."""
    import torch as pytorch

    for lr, steps in ((0.1, 1), (0.1, 3), ("tensor", 3)):
        kept = []
        for torch in (flambeau, pytorch):
            p = torch.tensor([1., 2.], requires_grad=True)
            optimizer = torch.optim.LBFGS([p], lr=torch.tensor(0.1) if lr == "tensor" else lr, max_iter=steps)

            def closure(p=p, optimizer=optimizer):
                optimizer.zero_grad()
                loss = (p * p).sum()
                loss.backward()
                return loss

            optimizer.step(closure)
            t = optimizer.state_dict()["state"][0]["t"]
            kept.append((isinstance(t, torch.Tensor), float(t), p.tolist()))
        assert kept[0][0] == kept[1][0]
        assert kept[0][1] == pytest.approx(kept[1][1])
        assert kept[0][2] == pytest.approx(kept[1][2])


def test_hooks_before_steps_are_shown_the_optimizer():
    """It is the first of the arguments, also of those that a hook returns."""
    import torch as pytorch

    for torch in (flambeau, pytorch):
        p = torch.ones(1, requires_grad=True)
        optimizer, seen = torch.optim.SGD([p], 0.1), []

        def replace(optimizer, args, kwargs, seen=seen):
            seen.append((args[0] is optimizer, len(args), sorted(kwargs)))
            return (args[0], lambda: 3.), {}

        optimizer.register_step_pre_hook(replace)
        optimizer.register_step_post_hook(lambda optimizer, args, kwargs, seen=seen: seen.append(len(args)))
        assert optimizer.step() == optimizer.step(closure=lambda: 2.) == 3.
        assert seen == [(True, 1, []), 2, (True, 1, ["closure"]), 2]


@pytest.mark.parametrize("conversion", ["to_sparse", "to_sparse_csr", "to_sparse_csc"])
def test_sparse_tensors_keep_their_layout_when_set_to_zero(conversion):
    import torch as pytorch

    for torch in (flambeau, pytorch):
        x = getattr(torch.eye(3), conversion)()
        assert x.zero_() is x
        assert (str(x.layout).partition(".")[2], x._nnz(), x.to_dense().sum()) == (
            conversion.replace("to_sparse", "sparse_coo" if conversion == "to_sparse" else "sparse"), 0, 0)
        z = torch.ones(2, 2, dtype=torch.complex64, requires_grad=True)
        with pytest.raises(RuntimeError, match=f"^_{conversion} does not support automatic differentiation for"):
            getattr(z, conversion)()


def test_warning_of_strided_nested_tensors():
    import torch as pytorch

    for torch in (flambeau, pytorch):
        torch.set_warn_always(True)
        try:
            with pytest.warns(UserWarning, match="nested tensors is in prototype stage"):
                torch.nested.nested_tensor([torch.ones(2), torch.ones(3)])
        finally:
            torch.set_warn_always(False)
