"""`nn.attention` compared with PyTorch: block masks, flexible attention, causal biases, selection of kernels."""

from __future__ import annotations

import importlib
import inspect
import warnings

import numpy as np
import pytest

import flambeau

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.parity

LENGTH = 21


def flex(lib):
    return importlib.import_module(f"{lib.__name__}.nn.attention.flex_attention")


def masks(lib):
    """Name -> (mask function, batch size, number of heads)."""
    docs = lib.tensor([0] * 5 + [1] * 9 + [2] * 7)

    def causal(b, h, q, k):
        return q >= k

    def window(b, h, q, k):
        return (q - k < 6) & (q >= k)

    def by_head(b, h, q, k):
        return (h < 1) | (q >= k)

    def documents(b, h, q, k):
        return docs[q] == docs[k]

    def empty_rows(b, h, q, k):
        return (q > 9) & (k < 3)

    def by_batch(b, h, q, k):
        return (q >= k) & ((b == 0) | (k > 8))

    both = flex(lib)
    return {"causal": (causal, None, None), "window": (window, 1, 1), "by head": (by_head, None, 2),
            "documents": (documents, 2, 2), "empty rows": (empty_rows, None, None), "by batch": (by_batch, 2, None),
            "and": (both.and_masks(causal, documents), None, None), "or": (both.or_masks(window, documents), 2, None),
            "noop": (both.noop_mask, None, None)}


@pytest.fixture(autouse=True)
def _uncompiled(monkeypatch):
    monkeypatch.setattr(flex(torch), "_FLEX_ATTENTION_DISABLE_COMPILE_DEBUG", True)


def text(x):
    return repr(x).replace("flambeau", "torch")


def tensors_of(mask):
    return [x.tolist() if hasattr(x, "tolist") else x for x in mask.as_tuple()[:-1]]


@pytest.mark.parametrize("block_size", [(8, 4), 128], ids=str)
@pytest.mark.parametrize("name", masks(flambeau))
def test_block_mask(name, block_size):
    seen = []
    for lib in (torch, flambeau):
        mod, batch, heads = masks(lib)[name]
        mask = flex(lib).create_block_mask(mod, batch, heads, LENGTH, LENGTH, "cpu", block_size)
        unseparated = flex(lib).create_block_mask(mod, batch, heads, LENGTH, LENGTH, "cpu", block_size,
                                                  separate_full_blocks=False)
        sliced = mask[0, -1:]
        seen.append([str(mask), text(mask), tensors_of(mask), mask.to_dense().tolist(), tensors_of(unseparated),
                     str(sliced), tensors_of(sliced), mask.to_string((2, 3), 1), mask.numel(), mask.sparsity()])
    assert seen[1] == seen[0]


def test_adjusted_blocks_and_write_order():
    seen = []
    for lib in (torch, flambeau):
        mask = flex(lib).create_block_mask(masks(lib)["causal"][0], 1, 1, LENGTH, LENGTH, "cpu", 4,
                                           compute_dq_write_order=True)
        counts, index = lib.tensor([[[1, 2]]]), lib.tensor([[[[0, 1], [0, 1]]]])
        of_blocks = flex(lib).BlockMask.from_kv_blocks(counts, index, BLOCK_SIZE=8)
        seen.append([tensors_of(x) for x in (mask, mask._adjust(9, 10), mask[0, 0, 2:4], of_blocks)])
    assert seen[1] == seen[0]


def dense(lib, q, k, v, mod, score, factor):
    """The definition, from a dense mask."""
    mask = flex(lib).create_mask(mod, 2, 2, LENGTH, LENGTH, "cpu")
    i = lib.arange(LENGTH)
    scores = q @ k.transpose(-1, -2) / q.shape[-1] ** 0.5
    if score:
        scores = scores + (i[:, None] - i) * factor[:, None, None]
    weights = lib.where(mask, scores, -float("inf")).softmax(-1)
    return lib.where(mask.any(-1, keepdim=True), weights, 0) @ v


@pytest.mark.parametrize(("score", "compiled"), [(False, False), (True, False), (True, True)])
@pytest.mark.parametrize("name", masks(flambeau))
def test_flex_attention(name, score, compiled):
    """Values and gradients are those of the definition, also of tensors that the score function uses."""
    generator = np.random.default_rng(0)
    arrays = [generator.standard_normal((2, 2, LENGTH, 4), np.float32) for _ in range(3)]
    arrays.append(generator.standard_normal(2, np.float32))
    q, k, v, factor = (torch.tensor(x, requires_grad=True) for x in arrays)
    expected = dense(torch, q, k, v, masks(torch)[name][0], score, factor)
    torch.nan_to_num(expected).sin().sum().backward()
    q2, k2, v2, factor2 = (flambeau.tensor(x, requires_grad=True) for x in arrays)
    mod, batch, heads = masks(flambeau)[name]
    mask = flex(flambeau).create_block_mask(mod, batch, heads, LENGTH, LENGTH, BLOCK_SIZE=8)
    score_mod = (lambda s, b, h, i, j: s + (i - j) * factor2[h]) if score else None

    def call(q, k, v):
        return flex(flambeau).flex_attention(q, k, v, score_mod, mask)

    call = flambeau.compile(call) if compiled else call
    for _ in range(3 if compiled else 1):
        for x in (q2, k2, v2, factor2):
            x.grad = None
        out = call(q2, k2, v2)
        out.sin().sum().backward()
    np.testing.assert_allclose(out.detach().numpy(), np.nan_to_num(expected.detach().numpy()), rtol=1e-4, atol=1e-5)
    for theirs, ours in ((q, q2), (k, k2), (v, v2), *([(factor, factor2)] if score else ())):
        np.testing.assert_allclose(ours.grad.numpy(), np.nan_to_num(theirs.grad.numpy()), rtol=1e-3, atol=1e-4)


def test_excluded_blocks_are_not_computed():
    """Values in a block that the mask excludes do not matter, not even NaN."""
    mask = flex(flambeau).create_block_mask(lambda b, h, q, k: k < 8, None, None, 16, 16, BLOCK_SIZE=8)
    q, k, v = (flambeau.randn(1, 1, 16, 4) for _ in range(3))
    before = flex(flambeau).flex_attention(q, k, v, block_mask=mask)
    k[:, :, 8:] = v[:, :, 8:] = float("nan")
    for call in (flex(flambeau).flex_attention, flambeau.compile(flex(flambeau).flex_attention)):
        for _ in range(3):
            assert call(q, k, v, block_mask=mask).equal(before)


def outcome(program):
    both = []
    for lib in (torch, flambeau):
        lib.manual_seed(0)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            try:
                result = program(lib)
            except Exception as error:
                result = type(error).__name__, text(str(error)).partition(" <")[0].replace("\\n", " ")
        both.append((result, [text(str(w.message)) for w in caught if "without torch.compile" not in str(w.message)]))
    (theirs, their_warnings), (ours, our_warnings) = both
    assert our_warnings == their_warnings
    if hasattr(theirs, "detach"):
        np.testing.assert_allclose(ours.detach().numpy(), theirs.detach().numpy(), rtol=1e-5, atol=1e-6)
    else:
        assert text(ours) == text(theirs)


@pytest.mark.parametrize("source", [
    "attend(q, k[:, :1], v[:, :1])", "attend(q, q[:, :1].expand(2, 3, 8, 4), v, enable_gqa=True)",
    "attend(q[0], k[0], v[0])",
    "attend(q, k[..., :3], v)", "attend(q[:, :, :5], k, v, block_mask=mask)",
    "attend(cat(q, q), k, v, block_mask=mask)",
    "attend(q, k[:1], v[:1])", "attend(q, k[:1], v[:1], block_mask=mask)", "attend(q, k, v, block_mask=mask[0])",
    "attend(q, k, v, kernel_options={'BACKEND': 'x'})", "attend(q, k, v, return_aux=module.AuxRequest(True, True))",
    "attend(q, k, v, return_lse=True, return_aux=module.AuxRequest())",
    "attend(q, k[:, :1], v[:, :1], enable_gqa=True)",
    "attend(q, k, v, return_aux=module.AuxRequest(lse=True))[1].lse", "attend(q, k, v, scale=0.1)",
    "attend(q[..., 0], k[..., 0], v[..., 0])", "attend(q.half(), k.half(), v.half(), block_mask=mask).float() * 0",
    "module.create_block_mask(lambda a: a, 1, 1, 2, 2, 'cpu')", "module.and_masks(3)",
    "module.create_mask(lambda s, b, h, i, j: lib.where(i >= j, s, -float('inf')), 1, None, 3, 3, 'cpu')",
    "module.BlockMask.from_kv_blocks(lib.ones(1), lib.ones(1))", "module.AuxRequest()", "module.AuxOutput()",
])
def test_flex_calls(source):
    def program(lib):
        module = flex(lib)
        q, k, v = (lib.randn(2, 2, 8, 4) for _ in range(3))
        mask = module.create_block_mask(lambda b, h, i, j: i >= j, None, None, 8, 8, "cpu", 4)
        return eval(source, {"lib": lib, "module": module, "attend": module.flex_attention, "q": q, "k": k, "v": v,
                             "mask": mask, "cat": lambda *xs: lib.cat(xs, 2)})
    outcome(program)


@pytest.mark.parametrize("source", [
    "repr(bias.causal_upper_left(3, 4))", "repr(bias.causal_lower_right(3, 4))", "repr(bias.causal_lower_right(5, 4))",
    "bias.causal_upper_left(3)", "bias.CausalBias(1, 2, 3)", "bias.CausalVariant.LOWER_RIGHT",
    "F(q, k, k, attn_mask=bias.causal_lower_right(4, 6))", "F(q, k, k, attn_mask=bias.causal_upper_left(4, 6))",
    "F(q, k, k, attn_mask=bias.causal_lower_right(4, 6), is_causal=True)", "list(attention.SDPBackend.__members__)",
    "[attention.SDPBackend.MATH, str(attention.SDPBackend.MATH), int(attention.SDPBackend.FLASH_ATTENTION)]",
    "attention._cur_sdpa_kernel_backends(True)", "attention.list_flash_attention_impls()",
    "attention.current_flash_attention_impl()", "attention.activate_flash_attention_impl('x')",
    "attention.sdpa_kernel(3).__enter__()", "bias.causal_upper_left(3, 4).shape",
])
def test_biases_and_names(source):
    def program(lib):
        bias = importlib.import_module(f"{lib.__name__}.nn.attention.bias")
        q, k = lib.randn(1, 2, 4, 8), lib.randn(1, 2, 6, 8)
        return eval(source, {"bias": bias, "attention": lib.nn.attention, "q": q, "k": k,
                             "F": lib.nn.functional.scaled_dot_product_attention})
    outcome(program)


@pytest.mark.parametrize("kernels", ["MATH", "FLASH_ATTENTION", "EFFICIENT_ATTENTION", ""])
@pytest.mark.parametrize("options", [{}, {"dropout_p": 0.5}, {"unbatched": True}])
def test_sdpa_kernel(kernels, options):
    def program(lib):
        backends = [getattr(lib.nn.attention.SDPBackend, kernels)] if kernels else []
        x = lib.randn(1, 2, 4, 8)
        x = x[0] if options.get("unbatched") else x
        with lib.nn.attention.sdpa_kernel(backends, set_priority=True):
            out = lib.nn.functional.scaled_dot_product_attention(x, x, x, dropout_p=options.get("dropout_p", 0.0))
        assert lib.nn.attention._cur_sdpa_kernel_backends(True)[0] == lib.nn.attention.SDPBackend.FLASH_ATTENTION
        return out
    if not (kernels == "MATH" and "dropout_p" in options):
        outcome(program)


@pytest.mark.parametrize("module", ["nn.attention", "nn.attention.bias", "nn.attention.flex_attention",
                                    "nn.attention.varlen"])
def test_names(module):
    theirs, ours = (importlib.import_module(f"{lib}.{module}") for lib in ("torch", "flambeau"))
    for name in theirs.__all__:
        a, b = getattr(theirs, name), getattr(ours, name)
        if inspect.isfunction(a) and name not in ("noop_mask", "varlen_attn_out"):
            assert list(inspect.signature(b).parameters) == list(inspect.signature(a).parameters)
