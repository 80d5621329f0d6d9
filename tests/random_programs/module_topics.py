"""Random programs about modules and losses with random options; a table of `objects`."""

from __future__ import annotations

import random
from collections.abc import Callable

from .topics import BOOL, FLOAT, INT, Lines, call_of, given_of, options_of, topic

# ----- modules -----

_MODES = ("'mean'", "'sum'", "'none'", "'x'")
_PADDING = ("'zeros'", "'reflect'", "'replicate'", "'circular'", "'x'")


def _convolution(n: int, transposed: bool = False) -> Callable[[random.Random], tuple[str, tuple[int, ...]]]:
    def make(r: random.Random) -> tuple[str, tuple[int, ...]]:
        options = options_of(r, 0.3, stride=("1", "2", "(1, 2)", "0"),
            padding=("0", "1", "2", "'same'", "'valid'", "-1"),
                           dilation=("1", "2"), groups=("1", "2", "3", "0"), bias=BOOL, padding_mode=_PADDING,
                           dtype=("torch.float64",), **({"output_padding": ("0", "1", "5")} if transposed else {}))
        name = f"Conv{'Transpose' if transposed else ''}{n}d"
        channels = r.choice((2, 2, 4))
        return call_of(name, str(channels), r.choice(("2", "4", "3")), r.choice(("1", "2", "3", "(1, 2)")), options), (
            2, channels, *(6, 5, 4)[:n])
    return make


def _pooling(kind: str, n: int) -> Callable[[random.Random], tuple[str, tuple[int, ...]]]:
    def make(r: random.Random) -> tuple[str, tuple[int, ...]]:
        own: dict[str, tuple[str, ...]] = {"ceil_mode": BOOL}
        own |= {"return_indices": BOOL, "dilation": ("1", "2")} if kind == "Max" else {"count_include_pad": BOOL}
        if kind == "Avg" and n > 1:
            own["divisor_override"] = ("1", "3", "0")
        options = options_of(r, 0.35, stride=("1", "2", "None", "0"), padding=("0", "1", "2"), **own)
        return call_of(f"{kind}Pool{n}d", r.choice(("1", "2", "3", "(2, 2)", "7")), options), (2, 2, *(6, 5, 4)[:n])
    return make


def _plain(name: str, shape: tuple[int, ...], *positional: tuple[str, ...],
           **options: tuple[str, ...]) -> Callable[[random.Random], tuple[str, tuple[int, ...]]]:
    def make(r: random.Random) -> tuple[str, tuple[int, ...]]:
        return call_of(name, *(r.choice(values) for values in positional), options_of(r, 0.35, **options)), shape
    return make


_NUMBERS = ("1", "2", "3", "4", "0")
_NORM = {"eps": ("1e-5", "0.1", "0.0", "-1.0"), "affine": BOOL, "track_running_stats": BOOL,
         "momentum": ("0.1", "None", "0.0", "1.0"), "dtype": ("torch.float64",)}
_MAKERS = (
    *(_convolution(n, t) for n in (1, 2, 3) for t in (False, True)),
        *(_pooling(k, n) for k in ("Max", "Avg") for n in (1, 2, 3)),
    _plain("Linear", (2, 3), ("3", "3", "4"), _NUMBERS, bias=BOOL, dtype=("torch.float64", "torch.int64")),
    _plain("LayerNorm", (2, 3), ("3", "[2, 3]", "(3,)", "4", "()"), eps=FLOAT, elementwise_affine=BOOL, bias=BOOL),
    _plain("RMSNorm", (2, 3), ("3", "[2, 3]", "4"), eps=("None", "0.1", "1e-6"), elementwise_affine=BOOL),
    _plain("GroupNorm", (2, 4, 3), ("1", "2", "4", "3"), ("4", "4", "6"), eps=("0.1",), affine=BOOL),
    _plain("BatchNorm1d", (3, 4), ("4", "4", "5"), **_NORM), _plain("BatchNorm2d", (2, 3, 2, 2), ("3", "4"), **_NORM),
    _plain("InstanceNorm1d", (2, 3, 4), ("3", "4"), **_NORM), _plain("InstanceNorm2d", (2, 3, 2, 2), ("3",), **_NORM),
    _plain("Embedding", (2, 3), ("5", "9"), ("2", "3"), padding_idx=("0", "-1", "7"), max_norm=("1.0", "0.1"),
           norm_type=("1.0", "2.0"), scale_grad_by_freq=BOOL, sparse=BOOL),
    _plain("ELU", (2, 3), alpha=FLOAT, inplace=BOOL), _plain("Hardtanh", (2, 3), min_val=FLOAT, max_val=FLOAT),
    _plain("Softplus", (2, 3), beta=FLOAT, threshold=FLOAT),
        _plain("Softmax", (2, 3), dim=("0", "1", "-1", "None", "2")),
    _plain("LeakyReLU", (2, 3), negative_slope=FLOAT, inplace=BOOL),
        _plain("PReLU", (2, 3), num_parameters=_NUMBERS, init=FLOAT),
    _plain("Threshold", (2, 3), FLOAT, FLOAT, inplace=BOOL), _plain("GLU", (2, 4), dim=("0", "1", "-1", "2")),
    _plain("GELU", (2, 3), approximate=("'none'", "'tanh'", "'x'")), _plain("Softshrink", (2, 3), lambd=FLOAT),
    _plain("CELU", (2, 3), alpha=FLOAT), _plain("SiLU", (2, 3), inplace=BOOL),
        _plain("RReLU", (2, 3), lower=FLOAT, upper=FLOAT),
    _plain("Hardshrink", (2, 3), lambd=FLOAT), _plain("Hardswish", (2, 3)), _plain("LogSoftmax", (2, 3), dim=INT),
    _plain("Dropout", (2, 3), p=("0.0", "0.5", "1.0", "1.5", "-0.1"), inplace=BOOL),
        _plain("Dropout2d", (2, 3, 2, 2), p=("0.5", "0.2")),
    _plain("AlphaDropout", (2, 3), p=("0.5", "0.2", "1.0")), _plain("FeatureAlphaDropout", (2, 3, 4), p=("0.5",)),
    _plain("Flatten", (2, 3, 4), start_dim=INT, end_dim=INT),
        _plain("Unflatten", (2, 6), INT, ("(2, 3)", "(-1, 2)", "(4,)", "[2, 3]")),
    _plain("Upsample", (1, 2, 4), size=("2", "8", "(3,)"), scale_factor=("2", "0.5", "1.5"), align_corners=BOOL,
           mode=("'nearest'", "'linear'", "'x'"), recompute_scale_factor=BOOL),
    _plain("Upsample", (1, 2, 4, 4), size=("2", "(3, 5)"), scale_factor=("2", "(0.5, 2)"), align_corners=BOOL,
           mode=("'nearest'", "'bilinear'", "'bicubic'", "'area'", "'nearest-exact'")),
    _plain("PixelShuffle", (1, 4, 2, 2), _NUMBERS), _plain("PixelUnshuffle", (1, 1, 4, 4), _NUMBERS),
    _plain("ChannelShuffle", (1, 4, 2, 2), _NUMBERS), _plain("ZeroPad2d", (1, 2, 3, 3),
        ("1", "(1, 2, 0, 1)", "(-1, 0, 0, 0)", "(1,)")),
    _plain("ReflectionPad1d", (1, 2, 4), ("1", "(1, 2)", "5")),
        _plain("ReplicationPad2d", (1, 2, 3, 3), ("1", "(0, 1, 2, 0)")),
    _plain("CircularPad2d", (1, 2, 3, 3), ("1", "(1, 2, 0, 1)", "5")),
        _plain("ConstantPad1d", (2, 3), ("1", "(1, 2)"), FLOAT),
    _plain("AdaptiveAvgPool2d", (1, 2, 4, 5), ("1", "(2, 3)", "(None, 2)", "None", "0")),
        _plain("AdaptiveMaxPool1d", (1, 2, 4), ("1", "3"), return_indices=BOOL),
    _plain("LPPool1d", (1, 2, 6), ("1", "2.0", "float('inf')"), ("2", "3"), stride=("1", "None"), ceil_mode=BOOL),
    _plain("Unfold", (1, 2, 4, 4), ("2", "(2, 3)"), dilation=_NUMBERS, padding=("0", "1"), stride=("1", "2", "0")),
    _plain("Fold", (1, 8, 4), ("(3, 3)", "(4, 4)"), ("2",), padding=("0", "1"), stride=("1", "2")),
    _plain("LocalResponseNorm", (1, 4, 3), ("1", "2", "0"), alpha=FLOAT, beta=FLOAT, k=FLOAT),
    _plain("RNN", (4, 2, 3), ("3", "4"), ("2", "0"), num_layers=("1", "2", "0"),
        nonlinearity=("'tanh'", "'relu'", "'x'"), bias=BOOL,
           batch_first=BOOL, dropout=("0.0", "0.5", "2.0"), bidirectional=BOOL),
    _plain("LSTM", (4, 2, 3), ("3",), ("2", "3"), num_layers=("1", "2"), bias=BOOL, batch_first=BOOL,
        proj_size=("1", "2", "5"),
           bidirectional=BOOL),
    _plain("GRU", (4, 2, 3), ("3",), ("2",), num_layers=("1", "2"), bias=BOOL, bidirectional=BOOL,
        dropout=("0.0", "0.5")),
    _plain("GRUCell", (2, 3), ("3", "4"), ("2",), bias=BOOL), _plain("LSTMCell", (2, 3), ("3",), ("2",), bias=BOOL),
    _plain("TransformerEncoderLayer", (2, 3, 4), ("4",), ("1", "2", "3"), ("5",), dropout=("0.0", "0.5"),
        activation=("'relu'", "'gelu'", "'x'"),
           norm_first=BOOL, bias=BOOL, batch_first=BOOL),
    _plain("Identity", (2, 3), ("1", "'a'"), other=("2",)), _plain("CosineSimilarity", (2, 3), dim=INT, eps=FLOAT),
    _plain("Softmin", (2, 3), dim=INT), _plain("Softmax2d", (1, 2, 3, 3)),
        _plain("Bilinear", (2, 3), ("3",), ("3",), ("2", "0"), bias=BOOL),
    _plain("FractionalMaxPool2d", (1, 2, 5, 5), ("2",), output_size=("2", "(2, 3)"),
        output_ratio=("0.5", "(0.5, 0.7)", "2.0"), return_indices=BOOL))
_TWO = ("CosineSimilarity", "Bilinear")


@topic
def _module(r: random.Random) -> Lines:
    text, shape = r.choice(_MAKERS)(r)
    if r.random() < 0.08:
        shape = shape[1:]
    dtype = "float64" if "float64" in text else r.choice(("float32", "float32", "float32", "float64", "int64",
        "bfloat16"))
    if text.startswith("Embedding"):
        dtype = "int64"
    more = ", 0, 4" if dtype == "int64" else ", grad=True" if dtype[0] == "f" else ""
    x = f"given({shape}, '{dtype}', {r.randrange(99)}{more})"
    lines = [f"torch.manual_seed({r.randrange(99)})", f"x = {x}", f"m = torch.nn.{text}", "note(plain(repr(m)))",
             "note([(k, described(v)) for k, v in m.state_dict().items()])"]
    if r.random() < 0.4:
        lines.append(r.choice(("m.eval()", "m.double()", "m.requires_grad_(False)", "m.half()", "m.train(False)",
            "m.to(torch.float64)",
                               "m.zero_grad(set_to_none=False)", "m.apply(lambda t: None)",
                                   "import copy; m = copy.deepcopy(m)",
                               "import pickle; m = pickle.loads(pickle.dumps(m))", "m.share_memory()", "m.to('meta')",
                                   "m.float()",
                               "m = torch.nn.utils.parametrizations.weight_norm(m)", "m.compile",
                                   "m.to(dtype=torch.int32)",
                               "m.train('a')", "m.load_state_dict({})",
                                   "m.load_state_dict({'weight': torch.ones(1)}, strict=False)")))
    lines += [f"y = m(x{', x' if text.startswith(_TWO) else ''})", "note(described(y))",
              "note(differentiated(y[0] if isinstance(y, tuple) else y, [x, *m.parameters()], False))",
              "note([(k, described(v)) for k, v in m.state_dict().items()])", "note(torch.rand(1))"]
    return lines


_LOSSES: tuple[tuple[str, str, dict[str, tuple[str, ...]]], ...] = (
    ("L1Loss", "like", {}), ("MSELoss", "like", {}), ("SmoothL1Loss", "like", {"beta": FLOAT}),
        ("HuberLoss", "like", {"delta": FLOAT}),
    ("BCELoss", "unit", {}), ("BCEWithLogitsLoss", "unit", {"pos_weight": ("torch.ones(3)", "torch.ones(2)")}),
    ("KLDivLoss", "like", {"log_target": BOOL}), ("PoissonNLLLoss", "like",
        {"log_input": BOOL, "full": BOOL, "eps": ("1e-8", "0.1")}),
    ("GaussianNLLLoss", "var", {"full": BOOL, "eps": ("1e-6", "0.0", "-1.0")}), ("SoftMarginLoss", "sign", {}),
    ("HingeEmbeddingLoss", "sign", {"margin": FLOAT}), ("CrossEntropyLoss", "index", {
        "weight": ("torch.ones(3)", "torch.ones(2)"), "ignore_index": ("0", "-1"),
            "label_smoothing": ("0.1", "1.0", "2.0")}),
    ("NLLLoss", "index", {"weight": ("torch.ones(3)",), "ignore_index": ("0", "1")}), ("MultiMarginLoss", "index", {
        "p": ("1", "2", "3"), "margin": ("0.5", "'a'"), "weight": ("torch.ones(3)",)}),
    ("MultiLabelMarginLoss", "labels", {}), ("MultiLabelSoftMarginLoss", "unit", {"weight": ("torch.ones(3)",)}),
    ("CosineEmbeddingLoss", "pair", {"margin": ("0.0", "0.5", "2.0")}),
        ("MarginRankingLoss", "pair", {"margin": FLOAT}),
    ("TripletMarginLoss", "three", {"margin": ("1.0", "0.0", "-1.0"), "p": ("1", "2.0"), "swap": BOOL,
        "eps": ("0.1",)}))


@topic
def _loss(r: random.Random) -> Lines:
    name, kind, own = r.choice(_LOSSES)
    options = options_of(r, 0.4, reduction=_MODES, size_average=("True", "False"), reduce=BOOL, **own)
    shape, dtype = r.choice(((2, 3), (2, 3), (3,), (2, 3, 4), (0, 3), ())), r.choice(("float32", "float64", "float32",
        "float16", "int64"))
    n = r.randrange(999)
    x = given_of(r, shape, dtype,
        dtype != "int64") if kind != "unit" or name != "BCELoss" else f"given({shape}, '{dtype}', {n}, 0, 1, grad=True)"
    like = f"given({shape}, '{r.choice((dtype, dtype, dtype, 'float64'))}', {n + 1}"
    y = {"like": like + ")", "unit": like + ", 0, 1)", "var": like + ")", "sign": like + ").sign()",
        "pair": like + ")",
         "three": like + ")", "index": f"given({shape[:1] + shape[2:]}, 'int64', {n}, 0, 3)",
             "labels": f"given({shape}, 'int64', {n}, -1, 3)"}[kind]
    more = {"var": ", y.abs()", "pair": r.choice((", torch.ones(2)", ", y.sign()", ", torch.tensor(1)")),
        "three": ", x * 2"}.get(kind, "")
    return [f"x = {x}", f"y = {y}", f"m = torch.nn.{call_of(name, options)}", "note(plain(repr(m)))",
        f"z = m(x, y{more})", "note(described(z))",
            "note(differentiated(z, [x], True))"]
