"""Statements that call layers, losses, and linear algebra: with the arguments that fit, and with some that do not."""

from __future__ import annotations

from .generation import Unfit, Writer, statement

_F = "torch.nn.functional"
_ACTIVATIONS = ("relu6({})", "elu({}, 0.5)", "selu({})", "celu({})", "silu({})", "mish({})", "hardswish({})",
                "hardsigmoid({})", "hardshrink({}, 0.3)", "softshrink({}, 0.2)", "tanhshrink({})",
                "threshold({}, 0.1, 2.0)", "logsigmoid({})", "softsign({})", "softplus({}, 2.0, 1.0)",
                "gelu({}, approximate='tanh')", "leaky_relu({}, 0.3)", "hardtanh({}, -0.5, 0.5)", "glu({}, 0)",
                "normalize({}, dim=0)", "softmin({}, 0)", "rrelu({})", "dropout({}, 0.0)", "dropout({}, 1.0)",
                "pad({}, (1, 1))", "pad({}, (1, 2), value=0.5)", "pad({}, (-1, 0))", "softmax({}, -1)",
                "softmax({}, 0, dtype=torch.float64)", "elu_({} * 1)", "leaky_relu_({} * 1)", "celu({}, 0.0)",
                "gelu({}, approximate='x')", "softshrink({}, -1.0)", "dropout({}, 2.0)", "pad({}, (1,))",
                "prelu({}, torch.ones(1, dtype={}.dtype) * 0.25)", "relu({}, inplace=False)", "silu({} * 2)")
_LOSSES = ("mse_loss({}, {y}{r})", "l1_loss({}, {y}{r})", "smooth_l1_loss({}, {y}{r})", "huber_loss({}, {y}{r})",
           "smooth_l1_loss({}, {y}, beta=0.5)", "huber_loss({}, {y}, delta=0.3)", "soft_margin_loss({}, {y}{r})",
           "binary_cross_entropy_with_logits({}, {y}.detach(){r})", "poisson_nll_loss({}, {y}.detach(){r})",
           "hinge_embedding_loss({}, {y}.detach().sign(){r})",
           "kl_div({}, {y}.detach().softmax(-1), reduction='sum')",
           "kl_div({}, {y}.detach(), reduction='batchmean', log_target=True)",
           "gaussian_nll_loss({}, {y}, {y}.exp())", "binary_cross_entropy({}.sigmoid(), {y}.detach().sigmoid(){r})",
           "cosine_similarity({}, {y}, dim=0)", "cosine_similarity({}, {y}, dim=-1, eps=0.1)",
           "margin_ranking_loss({}, {y}, {y}.detach().sign(){r})", "mse_loss({}, {y}, reduction='other')",
           "huber_loss({}, {y}, delta=0.0)", "smooth_l1_loss({}, {y}, beta=0.0)",
           "smooth_l1_loss({}, {y}, beta=-1.0)", "mse_loss({}, {y}[..., None])", "pairwise_distance({}, {y})",
           "binary_cross_entropy({}, {y})", "cross_entropy({}, {y}.detach().softmax(-1){r})",
           "cross_entropy({}, {y}.detach().softmax(-1), label_smoothing=0.1)", "triplet_margin_loss({}, {y}, {} * 2)",
           "multilabel_soft_margin_loss({}, {y}.detach().sigmoid())", "cosine_embedding_loss({}, {y}, torch.ones(1))")
_OF_ROWS = ("cross_entropy({}, {labels}{r})", "nll_loss({}.log_softmax(-1), {labels}{r})",
            "cross_entropy({}, {labels}, label_smoothing=0.2)", "cross_entropy({}, {labels}, ignore_index=0)",
            "multi_margin_loss({}, {labels})", "nll_loss({}, {labels}, ignore_index=1)",
            "cross_entropy({}, {labels} + 9)", "cross_entropy({}, {labels}.int())", "cross_entropy({}, {labels}[:1])",
            "layer_norm({}, ({n},))", "layer_norm({}, ({n} + 1,))", "rms_norm({}, ({n},))", "group_norm({}, 1)",
            "batch_norm({}, None, None, training=True)", "linear({}, torch.ones(2, {n}, dtype={}.dtype))",
            "linear({}, torch.ones(2, {n} + 1, dtype={}.dtype))", "one_hot({labels}, 9)", "one_hot({labels})",
            "embedding({labels}, {})", "embedding({labels} % {}.shape[0], {}, padding_idx=0)", "pdist({})",
            "embedding({labels}.float(), {})", "bilinear({}, {}, torch.ones(2, {n}, {n}, dtype={}.dtype))")
_OF_SEQUENCES = ("avg_pool1d({}, 2)", "max_pool1d({}, 2)", "max_pool1d({}, 2, 1)", "avg_pool1d({}, 2, 1, 1)",
                 "adaptive_avg_pool1d({}, 1)", "adaptive_max_pool1d({}, 2)", "lp_pool1d({}, 2.0, 2)",
                 "pad({}, (1, 1), mode='replicate')", "instance_norm({})",
                 "pad({}, (1, 0), mode='reflect')", "pad({}, (9, 0), mode='reflect')", "avg_pool1d({}, 9)",
                 "interpolate({}, scale_factor=2.0)", "interpolate({}, size=3, mode='linear', align_corners=True)",
                 "interpolate({}, size=3, mode='other')", "max_pool1d({}, 2, return_indices=True)[1]",
                 "conv1d({}, torch.ones(2, {c}, 2, dtype={}.dtype), padding=1)",
                 "conv1d({}, torch.ones(2, {c} + 1, 2, dtype={}.dtype))",
                 "conv1d({}, torch.ones({c}, 1, 1, dtype={}.dtype), groups={c})",
                 "conv_transpose1d({}, torch.ones({c}, 2, 2, dtype={}.dtype), stride=2)", "dropout1d({}, 0.0)",
                 "local_response_norm({}, 2)", "fold({}, (2, 2), 1)", "pixel_shuffle({}, 2)")
_SQUARE = ("linalg.det({a})", "linalg.inv({a})", "linalg.slogdet({a})[1]", "linalg.solve({a}, {})",
           "linalg.qr({a})[1].abs()", "linalg.cholesky({a} @ {a}.mH + 2 * torch.eye({n}, dtype={}.dtype))",
           "linalg.svdvals({a})", "linalg.eigvalsh({a} + {a}.mH)", "linalg.matrix_power({a}, 2)", "trace({})",
           "linalg.matrix_exp({} * 0.3)", "linalg.norm({a})", "linalg.norm({a}, 1)", "linalg.matrix_norm({a}, 'nuc')",
           "linalg.pinv({a})", "logdet({a} @ {a}.mH)", "diag({})", "tril({})", "linalg.lu_factor({a})[0]",
           "linalg.solve_triangular({a}, {}, upper=True)", "linalg.cholesky(-{a} @ {a}.mH)", "inverse({} * 0)",
           "linalg.matrix_power({a}, -1)", "linalg.matrix_rank({a})", "linalg.cond({a})", "chain_matmul({}, {})",
           "einsum('ij,jk->ik', {}, {})", "einsum('ii', {})", "einsum('ij->ji', {})", "einsum('ij,kj', {}, {})",
           "tensordot({}, {}, 2)", "tensordot({}, {}, ([0], [1]))", "kron({}, {})", "block_diag({}, {})", "rot90({})",
           "linalg.multi_dot([{}, {}, {}])", "cdist({}, {})", "baddbmm({}[None], {}[None], {}[None])",
           "linalg.vector_norm({}, 3.0, dim=1)", "cov({})", "corrcoef({} + {a})", "addmv({}[0], {}, {}[0])",
           "addr({}, {}[0], {}[0])", "linalg.solve({a}, {}[0])", "linalg.solve({a}, torch.ones(9, dtype={}.dtype))")


def _reduction(w: Writer) -> str:
    return str(w.choose("", "", ", reduction='sum'", ", reduction='none'", ", reduction='mean'"))


@statement(2.5)
def _activation(w: Writer) -> str:
    x = w.real(lambda t: t.dtype.itemsize > 2 and t._base is None)
    return f"{w.fresh()} = {_F}." + w.choose(*_ACTIVATIONS).replace("{}", x)


@statement(2.5)
def _loss(w: Writer) -> str:
    x = w.real(lambda t: t.dtype.itemsize > 2 and t._base is None and not t.is_inference())
    shape, dtype = w.value(x).shape, w.value(x).dtype
    alike = w.chance(0.9)
    y = w.real(lambda t: t.dtype.itemsize > 2 and not t.is_inference() and (
        not alike or (t.shape == shape and t.dtype == dtype)))
    text = w.choose(*_LOSSES).replace("{r}", _reduction(w)).replace("{y}", y)
    return f"{w.fresh()} = {_F}." + text.replace("{}", x)


@statement(2)
def _of_rows(w: Writer) -> str:
    x = w.real(lambda t: t.dtype.itemsize > 2 and t.ndim == 2 and t.numel() > 0 and t._base is None
               and not t.is_inference() and t.is_contiguous())
    rows, n = w.value(x).shape
    labels = f"torch.tensor({[w.random.randrange(n) for _ in range(rows)]})"
    text = w.choose(*_OF_ROWS).replace("{r}", _reduction(w)).replace("{labels}", labels).replace("{n}", str(n))
    return f"{w.fresh()} = {_F}." + text.replace("{}", x)


@statement(1.5)
def _of_sequences(w: Writer) -> str:
    x = w.real(lambda t: t.dtype.itemsize > 2 and t.ndim == 3 and t.numel() > 0 and t._base is None
               and not t.is_inference() and t.is_contiguous())
    text = w.choose(*_OF_SEQUENCES).replace("{c}", str(w.value(x).shape[1]))
    return f"{w.fresh()} = {_F}." + text.replace("{}", x)


@statement(2)
def _square(w: Writer) -> str:
    """Of matrices that are far from singular, so that rounding does not grow."""
    x = w.floating(lambda t: t.dtype.itemsize > 2 and t.ndim == 2 and t.shape[0] == t.shape[1] > 1
                   and t._base is None and not t.is_inference() and t.is_contiguous())
    t = w.value(x)
    if t.abs().max() > 3:
        raise Unfit
    n = t.shape[0]
    a = f"({x} * 0.1 + torch.diag(torch.arange(1.0, {n + 1}, dtype={t.dtype})))"
    return f"{w.fresh()} = torch." + w.choose(*_SQUARE).replace("{a}", a).replace("{n}", str(n)).replace("{}", x)
