"""Transformers and multi-head attention compared with PyTorch: parameters, outputs, gradients, warnings, errors."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

import flambeau

torch = pytest.importorskip("torch")
pytestmark = [pytest.mark.parity, pytest.mark.filterwarnings("ignore::UserWarning")]

BOTH = (torch, flambeau)


def close(theirs, ours):
    if theirs is None or ours is None:
        assert theirs is ours
        return
    assert tuple(theirs.shape) == tuple(ours.shape)
    assert str(theirs.dtype) == str(ours.dtype).replace("flambeau", "torch")
    np.testing.assert_allclose(ours.detach().numpy(), theirs.detach().numpy(), rtol=2e-5, atol=5e-6)


def run(program):
    """`program(lib)` on both sides from one seed: results, then warnings, then the error, must agree."""
    outcomes = []
    for lib in BOTH:
        lib.manual_seed(7)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            try:
                outcome = program(lib)
            except Exception as error:
                outcome = (type(error).__name__, str(error).replace("flambeau.", "torch."))
        messages = [str(w.message) for w in caught if "nested tensors" not in str(w.message)]
        outcomes.append((outcome, messages))
    (theirs, their_messages), (ours, our_messages) = outcomes
    assert our_messages == their_messages
    if isinstance(theirs, tuple) and theirs and isinstance(theirs[0], str):
        assert ours == theirs
        return theirs
    assert not (isinstance(ours, tuple) and ours and isinstance(ours[0], str)), ours
    assert len(theirs) == len(ours)
    for a, b in zip(theirs, ours, strict=True):
        if isinstance(a, (str, bool, list)):
            assert b == a
        else:
            close(a, b)
    return None


def trained(lib, module, *inputs, **kwargs):
    """Parameters, output and gradients."""
    output = module(*inputs, **kwargs)
    tensors = [x for x in (output if isinstance(output, tuple) else (output,)) if x is not None]
    sum((x.sin() * x).sum() for x in tensors).backward()
    own = dict(module.named_parameters())
    return [list(module.state_dict()), repr(module).replace("flambeau", "torch"), *own.values(), *tensors,
            *[x.grad for x in own.values()], *[x.grad for x in inputs if x.requires_grad]]


@pytest.mark.parametrize("options", [
    {}, {"norm_first": True}, {"activation": "gelu", "batch_first": True}, {"bias": False}, {"dropout": 0.5},
    {"layer_norm_eps": 1e-3, "activation": "relu"},
])
@pytest.mark.parametrize("kind", ["TransformerEncoderLayer", "TransformerDecoderLayer"])
def test_layer(kind, options):
    def program(lib):
        layer = getattr(lib.nn, kind)(8, 2, 12, **options)
        x = lib.randn(3, 4, 8, requires_grad=True)
        memory = [lib.randn(3, 4, 8, requires_grad=True)] if "Decoder" in kind else []
        return trained(lib, layer, x, *memory)
    assert run(program) is None


@pytest.mark.parametrize("batch_first", [False, True])
@pytest.mark.parametrize("norm_first", [False, True])
def test_whole_transformer_with_masks(batch_first, norm_first):
    def program(lib):
        model = lib.nn.Transformer(8, 2, 2, 2, 12, 0.1, batch_first=batch_first, norm_first=norm_first)
        model.eval()
        shape = (2, 4, 8) if batch_first else (4, 2, 8)
        x, y = lib.randn(shape, requires_grad=True), lib.randn(shape, requires_grad=True)
        mask = model.generate_square_subsequent_mask(4)
        padding = lib.tensor([[False, False, False, True], [False, False, True, True]])
        return trained(lib, model, x, y, tgt_mask=mask, src_key_padding_mask=padding,
                       memory_key_padding_mask=padding)
    assert run(program) is None


MASKS = {
    "none": lambda lib: {},
    "bool": lambda lib: {"src_mask": lib.eye(4) > 0},
    "float": lambda lib: {"src_mask": lib.eye(4)},
    "causal": lambda lib: {"src_mask": lib.nn.Transformer.generate_square_subsequent_mask(4), "is_causal": True},
    "padding": lambda lib: {"src_key_padding_mask": lib.tensor([[False, False, False, True], [False] * 4])},
    "not left aligned": lambda lib: {"src_key_padding_mask": lib.tensor([[True, False, False, True], [False] * 4])},
    "everything padded": lambda lib: {"src_key_padding_mask": lib.tensor([[False, False, False, True], [True] * 4])},
    "both": lambda lib: {"src_mask": lib.eye(4) > 0,
                         "src_key_padding_mask": lib.tensor([[False, False, False, True], [False] * 4])},
    "mixed": lambda lib: {"src_mask": lib.eye(4),
                          "src_key_padding_mask": lib.tensor([[False, False, False, True], [False] * 4])},
    "one per head": lambda lib: {"src_mask": lib.eye(4).expand(4, 4, 4) > 0},
    "wrong size": lambda lib: {"src_mask": lib.zeros(3, 4)},
    "wrong padding": lambda lib: {"src_key_padding_mask": lib.zeros(2, 3).bool()},
    "padding of another rank": lambda lib: {"src_key_padding_mask": lib.zeros(4).bool()},
    "integers": lambda lib: {"src_key_padding_mask": lib.zeros(2, 4).int()},
    "causal without a mask": lambda lib: {"is_causal": True},
}


@pytest.mark.parametrize("training", [False, True])
@pytest.mark.parametrize("mask", MASKS)
def test_encoder_masks(mask, training):
    """With and without the inference path."""
    def program(lib):
        layer = lib.nn.TransformerEncoderLayer(8, 2, 12, 0.0, batch_first=True)
        encoder = lib.nn.TransformerEncoder(layer, 2, lib.nn.LayerNorm(8)).train(training)
        layer.train(training)
        x = lib.randn(2, 4, 8)
        arguments = MASKS[mask](lib)
        results = []
        with lib.no_grad():
            results.append(layer(x, **arguments))
            if "src_mask" in arguments:
                arguments["mask"] = arguments.pop("src_mask")
            results.append(encoder(x, **arguments))
        return results
    run(program)


@pytest.mark.parametrize("options", [
    {"norm_first": True}, {"batch_first": False}, {"activation": "gelu"}, {"activation": "tanh"}, {"bias": False},
    {"nhead": 1},
])
def test_why_not_nested(options):
    def program(lib):
        layer = lib.nn.TransformerEncoderLayer(**{"d_model": 8, "nhead": 2, "batch_first": True, **options})
        encoder = lib.nn.TransformerEncoder(layer, 1)
        return [encoder.use_nested_tensor, layer.activation_relu_or_gelu == 2]
    run(program)


def test_fast_path_disabled():
    def program(lib):
        layer = lib.nn.TransformerEncoderLayer(8, 2, 12, 0.0, batch_first=True).eval()
        lib.backends.mha.set_fastpath_enabled(False)
        try:
            with lib.no_grad():
                return [layer(lib.randn(2, 4, 8), src_mask=lib.eye(4))]
        finally:
            lib.backends.mha.set_fastpath_enabled(True)
    assert run(program) is None


def test_detected_causal_masks():
    def program(lib):
        from importlib import import_module
        module = import_module(f"{lib.__name__}.nn.modules.transformer")
        causal = lib.nn.Transformer.generate_square_subsequent_mask(3)
        detect = module._detect_is_causal_mask
        return [detect(causal), detect(causal, size=4), detect(lib.zeros(3, 3)), detect(None), detect(causal, False),
                detect(None, True), detect(causal.expand(2, 3, 3))]
    assert run(program) is None


ATTENTION = [{}, {"bias": False}, {"add_bias_kv": True}, {"add_zero_attn": True}, {"kdim": 6, "vdim": 5},
             {"kdim": 6, "bias": False, "add_bias_kv": True, "add_zero_attn": True}, {"batch_first": True},
             {"dropout": 0.3}]


@pytest.mark.parametrize("call", [
    {}, {"need_weights": False}, {"average_attn_weights": False}, {"mask": "bool"}, {"mask": "float"},
    {"mask": "heads"}, {"padding": "bool"}, {"padding": "float"}, {"mask": "float", "padding": "bool"},
    {"mask": "bool", "padding": "bool", "need_weights": False}, {"mask": "causal", "is_causal": True},
    {"mask": "causal", "is_causal": True, "need_weights": False}, {"is_causal": True}, {"unbatched": True},
    {"unbatched": True, "padding": "bool"}, {"mask": "wrong"}, {"padding": "wrong"}, {"self": True},
    {"self": True, "eval": True}, {"self": True, "eval": True, "mask": "bool", "padding": "bool"},
    {"self": True, "eval": True, "average_attn_weights": False}, {"self": True, "eval": True, "mask": "float"},
    {"self": True, "eval": True, "need_weights": False, "padding": "bool"},
], ids=lambda call: "-".join(f"{k}={v}" for k, v in call.items()))
@pytest.mark.parametrize("options", ATTENTION, ids=lambda o: "-".join(o))
def test_attention(options, call):
    def program(lib):
        arguments = dict(call)
        module = lib.nn.MultiheadAttention(8, 2, **options)
        unbatched, is_self = arguments.pop("unbatched", False), arguments.pop("self", False)
        shape = () if unbatched else (2,)
        def sequence(length, size):
            dims = (*shape, length, size) if options.get("batch_first") or unbatched else (length, *shape, size)
            return lib.randn(dims)
        q = sequence(4, 8)
        k, v = (q, q) if is_self else (sequence(4, options.get("kdim", 8)), sequence(4, options.get("vdim", 8)))
        mask, padding = arguments.pop("mask", None), arguments.pop("padding", None)
        arguments["attn_mask"] = {
            None: None, "bool": lib.eye(4) > 0, "float": lib.randn(4, 4), "heads": lib.randn(4, 4, 4),
            "causal": lib.nn.Transformer.generate_square_subsequent_mask(4), "wrong": lib.zeros(3, 4)}[mask]
        rows = lib.zeros(*shape, 4)
        rows[..., 3] = 1
        arguments["key_padding_mask"] = {None: None, "bool": rows > 0, "float": rows,
                                         "wrong": lib.zeros(2, 3) > 0}[padding]
        if arguments.pop("eval", False):
            module.eval()
            with lib.no_grad():
                return [x for x in module(q, k, v, **arguments) if x is not None]
        return trained(lib, module, q, k, v, **arguments)
    run(program)


@pytest.mark.parametrize("source", [
    "lib.nn.TransformerEncoderLayer(8, 2, activation='x')", "lib.nn.TransformerEncoderLayer(8, 3)",
    "lib.nn.Transformer(8, 2, 1, 1, 8)(lib.zeros(3, 2, 8), lib.zeros(3, 1, 8))",
    "lib.nn.Transformer(8, 2, 1, 1, 8)(lib.zeros(3, 2, 7), lib.zeros(3, 2, 8))",
    "lib.nn.TransformerEncoderLayer(8, 2, batch_first=True).eval().requires_grad_(False)(lib.zeros(1, 2, 7))",
    "lib.nn.MultiheadAttention(8, 2)(lib.zeros(1, 1, 2, 8), lib.zeros(1), lib.zeros(1))",
    "lib.nn.MultiheadAttention(8, 2)(lib.zeros(2, 8), lib.zeros(1), lib.zeros(1))",
    "lib.nn.MultiheadAttention(8, 2, kdim=3)(lib.zeros(2, 8), lib.zeros(2, 4), lib.zeros(2, 8))",
    "lib.nn.MultiheadAttention(8, 2)(*[lib.zeros(2, 1, 7)] * 3)",
])
def test_error(source):
    assert run(lambda lib: eval(source)) is not None


@pytest.mark.parametrize("options", [{}, {"need_weights": False}, {"average_attn_weights": False}], ids=str)
def test_attention_of_nested_tensors(options):
    def program(lib):
        mha = lib.nn.MultiheadAttention(4, 2, batch_first=True).eval()
        x = lib.nested.nested_tensor([lib.randn(3, 4), lib.randn(2, 4)])
        with lib.no_grad():
            output, weights = mha(x, x, x, **options)
        return output.is_nested, *output.unbind(), weights

    run(program)


@pytest.mark.parametrize("why", ["grad", "mask", "other value", "training"])
def test_attention_of_nested_tensors_is_refused(why):
    def program(lib):
        mha = lib.nn.MultiheadAttention(4, 2, batch_first=True).train(why == "training")
        x = lib.nested.nested_tensor([lib.randn(3, 4), lib.randn(2, 4)])
        with lib.set_grad_enabled(why == "grad"):
            mask = lib.zeros(2, 3).bool() if why == "mask" else None
            return mha(x, x, x.clone() if why == "other value" else x, key_padding_mask=mask)

    run(program)
