"""Statements that call what the other tables lack: rarer functions, their gradients, modules, shared memory."""

from __future__ import annotations

from .generation import WIDE, Unfit, Writer, statement

#: of real tensors, recorded
_RECORDED = (
    "torch.logaddexp({}, {} * 2)", "torch.logaddexp2({}, {})", "torch.sinc({})", "torch.expm1({})",
    "torch.exp2({})", "torch.log2({}.abs() + 1)", "torch.log10({}.abs() + 1)", "torch.asinh({})", "torch.atan({})",
    "torch.frac({})", "torch.special.entr({}.abs())", "torch.special.i0e({})", "torch.special.erfcx({}.abs())",
    "torch.lgamma({}.abs() + 1)", "torch.digamma({}.abs() + 1)", "torch.special.log_ndtr({})",
    "torch.logit({}.sigmoid())", "torch.deg2rad({})", "torch.nan_to_num({})", "torch.copysign({}, -{})",
    "torch.fmod({}, 0.7)", "torch.remainder({}, 0.7)", "torch.xlogy({}, {}.abs() + 1)",
    "torch.float_power({}.abs() + 1, 1.5)", "torch.true_divide({}, 3)", "torch.rsub({}, 1)",
    "torch.addcdiv({}, {}, {}.abs() + 1)", "torch.clamp_min({}, 0.1)", "torch.clamp({}, -{}, {})",
    "torch.lerp({}, {} * 2, {})", "torch.heaviside({}.detach(), {}.detach())",
    "torch.special.xlog1py({}, {}.abs())", "torch.nextafter({}.detach(), {}.detach() + 1)",
    "torch.ldexp({}, torch.tensor(2))", "torch.rad2deg({})", "torch.trunc({})", "torch.sgn({})",
    "torch.positive({})", "torch.mvlgamma({}.abs() + 3, 2)", "torch.polygamma(1, {}.abs() + 1)",
    "torch.special.ndtri(({} * 0.1).sigmoid())", "torch.acos({} * 0.3)", "torch.atanh({} * 0.3)", "torch.square({})",
    "torch.special.bessel_j0({}.detach())", "torch.cosh({} * 0.3)", "torch.erfinv({} * 0.3)",
    "torch.round({}, decimals=1)", "torch.nn.functional.hardtanh({})",
    "torch.nn.functional.rrelu({}, 0.2, 0.2, training=True)", "torch.nn.functional.threshold({}, 0.1, 0.5)",
    "torch.nn.functional.feature_alpha_dropout({}, 0.0)")
#: of a real or complex tensor along a dimension
_ALONG = (
    "{}.cumprod({dim})", "{}.logcumsumexp({dim})", "{}.prod({dim})", "{}.nansum({dim})", "torch.nanmean({}, {dim})",
    "{}.diff(dim={dim})", "{}.unbind({dim})[-1]", "{}.index_fill({dim}, torch.tensor([0]), 0.5)",
    "{}.roll(1, {dim})", "torch.linalg.vector_norm({}, 3, {dim})", "{}.norm(1, {dim})", "{}.norm(2, {dim}, True)",
    "torch.cumulative_trapezoid({}, dim={dim})", "torch.trapezoid({}, dim={dim})", "{}.narrow({dim}, 0, 1)",
    "{}.repeat_interleave(2, {dim})", "{}.select({dim}, 0)", "torch.std_mean({}, {dim})[0]",
    "torch.var_mean({}, {dim})[1]", "{}.renorm(2, {dim}, 1.0)", "{}.sum({dim}).expand_as({})",
    "torch.nn.functional.normalize({}, dim={dim})", "torch.nn.functional.softmin({}, {dim})",
    "{}.std({dim}, unbiased=False)", "torch.stack([{}, {}], {dim})",
    "torch.gather({}, {dim}, torch.zeros_like({}, dtype=torch.int64))", "{}.split(1, {dim})[0]",
    "{}.index_select({dim}, torch.tensor([0, 0]))", "torch.cat([{}, {}.detach()], {dim})",
    "{}.flip({dim}).cumsum({dim})", "{}.tensor_split(2, {dim})[0]",
    "torch.take_along_dim({}, torch.zeros_like({}, dtype=torch.int64), {dim})",
    "{}.scatter_add({dim}, torch.zeros_like({}, dtype=torch.int64), {})",
    "{}.index_add({dim}, torch.tensor([0]), {}.narrow({dim}, 0, 1))",
    "{}.index_copy({dim}, torch.tensor([0]), {}.narrow({dim}, 0, 1))",
    "{}.select_scatter({}.select({dim}, 0), {dim}, 0)", "{}.slice_scatter({}.narrow({dim}, 0, 1), {dim}, 0, 1)",
    "{}.scatter({dim}, torch.zeros_like({}, dtype=torch.int64), 0.5)")
#: the same of real tensors only
_REAL_ALONG = (
    "{}.cummax({dim})[0]", "{}.cummin({dim}).values", "{}.median({dim})[0]", "{}.mode({dim})[0]",
    "{}.kthvalue(1, {dim})[0]", "{}.aminmax(dim={dim})[0]", "{}.quantile(0.3, {dim})",
    "{}.nanquantile(0.3, {dim}, True)", "{}.nanmedian({dim})[0]", "{}.sort({dim}, descending=True)[0]",
    "{}.sort(dim={dim}, stable=True)[0]", "{}.topk(1, {dim}, False)[0]", "{}.argsort({dim})",
    "{}.logsumexp({dim}, True)", "{}.amin({dim}, True)", "{}.argmax({dim}, True)", "{}.msort()",
    "{}.max({dim}, True)[0]", "torch.nn.functional.glu(torch.cat([{}, {}], {dim}), {dim})",
    "{}.scatter_reduce({dim}, torch.zeros_like({}, dtype=torch.int64), {}, 'amax')", "{}.log_softmax({dim}).exp()",
    "torch.nn.functional.gumbel_softmax({}, dim={dim}) * 0", "{}.any({dim})", "{}.isnan().all({dim})")
#: of tensors of any shape: other shapes of them, and what is made of all elements
_RESHAPED = (
    "{}.tile(2)", "{}.repeat(*[2] * max({}.ndim, 1))", "{}.ravel()", "{}.view(-1)[:2]", "{}.reshape(1, -1)",
    "{}.flatten().diag()", "torch.atleast_2d({})", "torch.atleast_3d({})", "{}.unsqueeze(-1).mT",
    "{}.tril(-1) if {}.ndim > 1 else {}.neg()", "torch.block_diag({}.reshape(1, -1), {}.reshape(-1, 1))",
    "torch.cartesian_prod({}.flatten(), {}.flatten())[:2]",
    "torch.meshgrid({}.flatten(), {}.flatten(), indexing='xy')[1]", "torch.kron({}, {})",
    "torch.outer({}.flatten(), {}.flatten())", "torch.einsum('...,...->', {}, {})",
    "torch.tensordot({}, {}, {}.ndim)", "{}.new_ones(2)",
    "torch.combinations({}.flatten())", "{}.masked_select({}.detach().abs() > 0.4)", "{}.take(torch.tensor([0]))",
    "{}.put(torch.tensor([0]), torch.ones(1, dtype={}.dtype))",
    "{}.masked_scatter({}.detach().abs() > 0.4, {} * 2)", "{}.flatten().unfold(0, 1, 1)",
    "torch.rot90({}) if {}.ndim > 1 else {} * 1", "{}.swapaxes(0, -1)", "torch.movedim({}, 0, -1)",
    "{}.diagonal_scatter({}.diagonal() * 2) if {}.ndim > 1 else {} * 1", "torch.hstack([{}, {}])",
    "torch.column_stack([{}, {}])", "torch.dstack([{}, {}])",
    "torch.unravel_index(torch.tensor(0), {}.shape)[0] if {}.ndim else {} * 1", "{}.sum_to_size({}.shape)",
    "{}.expand(2, *{}.shape).sum(0)", "torch.broadcast_tensors({}, {})[0]", "{}.count_nonzero()",
    "{}.new_full((2,), 3)", "{}.resolve_conj()", "{}.clone(memory_format=torch.contiguous_format)",
    "torch.empty_like({}).copy_({})", "{}.view({}.dtype)",
    "{}.detach().view(torch.int32 if {}.dtype == torch.float32 else torch.int64) if {}.is_floating_point() else {} * 1",
    "torch.linalg.vector_norm({})", "torch.dist({}, {} * 2)", "{}.type_as({})", "{}.to({})",
    "{}.unflatten(-1, (1, -1))", "torch._foreach_mul([{}.detach(), {}.detach()], 2)[1]",
    "torch._foreach_add([{}.detach()], [{}.detach()])[0]",
    "torch.utils.checkpoint.checkpoint(torch.sin, {}, use_reentrant=False)")
#: modules for vectors of n features, and for sequences of c channels
_MODULES = (
    "Linear({n}, 2)", "Linear({n}, 1, bias=False)", "LayerNorm({n})", "RMSNorm({n})", "Softmax(-1)",
    "LogSoftmax(0)", "GELU()", "SiLU()", "PReLU()", "PReLU({n})", "ELU(0.5)", "Hardtanh()", "Softplus()",
    "Threshold(0.1, 2.0)", "Bilinear({n}, {n}, 2)", "Identity()",
    "Sequential(torch.nn.Linear({n}, 3), torch.nn.ReLU(), torch.nn.Linear(3, 1))", "BatchNorm1d({n})",
    "BatchNorm1d({n}, affine=False)", "GroupNorm(1, {n})", "Dropout(0.0)", "CosineSimilarity(dim=0)",
    "PairwiseDistance()", "MSELoss()", "L1Loss(reduction='none')", "SmoothL1Loss(beta=0.5)", "HuberLoss()",
    "Flatten(0)", "Unflatten(-1, (1, {n}))", "Softshrink(0.2)", "Tanhshrink()", "LogSigmoid()", "ReLU6()",
    "Hardsigmoid()", "Mish()", "RNNCell({n}, 2)", "GRUCell({n}, 2)", "LSTMCell({n}, 2)",
     "ReLU()")
_SEQUENCE_MODULES = (
    "Conv1d({c}, 2, 1)", "Conv1d({c}, {c}, 1, groups={c})", "ConvTranspose1d({c}, 2, 2)", "BatchNorm1d({c})",
    "InstanceNorm1d({c})", "GroupNorm(1, {c})", "AvgPool1d(1)", "MaxPool1d(1)", "AdaptiveAvgPool1d(2)",
    "AdaptiveMaxPool1d(1)", "ConstantPad1d(1, 0.5)", "ReplicationPad1d(1)", "CircularPad1d(1)", "ZeroPad1d(1)",
    "Upsample(scale_factor=2)", "LPPool1d(2, 1)", "Dropout1d(0.0)", "LocalResponseNorm(2)",
    "MultiheadAttention({n}, 1, batch_first=True)", "TransformerEncoderLayer({n}, 1, 4, dropout=0.0)")


@statement(3, WIDE)
def _recorded(w: Writer) -> str:
    x = w.real(lambda t: t.dtype.itemsize > 2 and not t.is_inference())
    return f"{w.fresh()} = " + w.choose(*_RECORDED).replace("{}", x)


@statement(3, WIDE)
def _along(w: Writer) -> str:
    x = w.floating(lambda t: t.dtype.itemsize > 2 and t.ndim > 0 and t.numel() > 0 and not t.is_inference())
    t = w.value(x)
    text = w.choose(*(_ALONG if t.is_complex() else _ALONG + _REAL_ALONG))
    if "median" in text and 0 in t.stride():  # PyTorch partitions in the expanded memory
        raise Unfit
    return f"{w.fresh()} = " + text.replace("{}", x).replace("{dim}", str(w.dim(t, 0.0)))


@statement(3, WIDE)
def _reshaped(w: Writer) -> str:
    x = w.floating(lambda t: t.dtype.itemsize > 2 and 0 < t.numel() < 10 and not t.is_inference())
    return f"{w.fresh()} = " + w.choose(*_RESHAPED).replace("{}", x)


@statement(2, WIDE)
def _module(w: Writer) -> str:
    x = w.real(lambda t: t.dtype.itemsize > 2 and t.ndim in (2, 3) and t.numel() > 0 and not t.is_inference())
    t = w.value(x)
    if w.session.library.is_inference_mode_enabled():
        raise Unfit
    text = w.choose(*(_SEQUENCE_MODULES if t.ndim == 3 else _MODULES))
    text = text.replace("{n}", str(t.shape[-1])).replace("{c}", str(t.shape[-2]))
    second = ", " + x if text.startswith(("Bilinear", "Cosine", "Pairwise", "MSE", "L1", "SmoothL1", "Huber")) else (
        f", {x}, {x}" if text.startswith("Multihead") else "")
    name = w.fresh()
    return (f"torch.manual_seed({w.random.randrange(99)})\nm{w.count} = torch.nn.{text}.to({x}.dtype)\n"
            f"{name} = m{w.count}({x}{second})\n{name} = {name}[0] if isinstance({name}, tuple) else {name}")


@statement(1, WIDE)
def _indexed_in_reverse(w: Writer) -> str:
    """Keys that Python's sequences know and tensors do not, and the reverse."""
    x = w.floating(lambda t: t.ndim > 0 and t._base is None and not t.is_inference())
    key = w.choose(
        "::-1", "-1::2", "None, None", "..., None", "True", "False", "None, ..., 0", "1:0", "-9:9", "9:", "slice(None)",
        "torch.tensor(0)", "(0,)", "[0]", "[True] * 2", "torch.tensor([0]), None", "None, torch.tensor([0])", "..., -1",
        "True, 0", "0, True", "torch.tensor(0), ...", "[[0]]", "[0], None", "::torch.tensor(2)", "torch.tensor(0):2")
    return f"{w.fresh()} = {x}[{key}]"


@statement(1, WIDE)
def _memory_shared(w: Writer) -> str:
    """A tensor on the memory of another: by `set_`, `.data`, an alias of part of its storage.

    Of memory that a tensor fills: PyTorch's means of losses are in that of all the losses.
    """
    x = w.floating(lambda t: t.numel() > 0 and t._base is None and not t.is_inference() and t.is_contiguous()
                   and t.untyped_storage().nbytes() == t.nbytes)
    name = w.fresh()
    return w.choose(
        f"{name} = torch.empty(0, dtype={x}.dtype).set_({x}.detach())", f"{name} = {x}.detach()[None].data",
        f"{name} = {x}.detach().view(-1)[:1].squeeze(0)", f"{name} = {x}.detach().as_strided((1,), (1,))",
        f"{name} = torch.empty(0, dtype={x}.dtype).set_({x}.detach().untyped_storage())",
        f"{name} = {x}.new_empty(0).resize_(0)", f"{name} = torch.from_numpy({x}.detach().numpy())")
