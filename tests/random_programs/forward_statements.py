"""Statements that make tensors: from numbers, and from other tensors by operators that make something new."""

from __future__ import annotations

from .generation import Unfit, Writer, statement

_UNARY = ("torch.tanh({})", "torch.sin({})", "torch.cos({})", "torch.sigmoid({})", "-{}", "{} * {}", "{}.clone()",
          "{}.square()", "torch.exp(-{} * {})", "torch.neg({})", "{}.contiguous()", "{} ** 2", "{} * 0.5", "2 - {}",
          "{} / 3", "torch.sinh(0.1 * {})", "{}.pow(3) * 0.1", "1 / ({} * {} + 2)", "torch.zeros_like({})",
          "torch.ones_like({})", "{}.type(torch.complex128)")
_REAL = ("torch.relu({})", "{}.abs()", "torch.log1p({} * {})", "torch.sqrt({} * {} + 1)", "torch.erf({})",
         "{}.clamp(-0.51, 0.73)", "torch.nn.functional.softplus({})", "{}.to(torch.float64)", "{}.double()",
         "{} > 0.123", "torch.where({} > 0.123, {}, -{})", "torch.nn.functional.gelu({})", "{} * (0.5 + 2j)",
         "{}.floor()", "torch.nn.functional.leaky_relu({})", "{}.sign()", "torch.atan2({}, {} * {} + 1)",
         "{}.to(torch.int64)", "torch.hypot({}, {} + 1)")
_NARROWER = ("{}.float()", "{}.half()", "{}.to(torch.float32)")
_COMPLEX = ("{}.abs()", "{}.conj() * 1", "torch.exp({} * 0.1)", "{} * 1j", "{} * {}.conj()")
_BINARY = ("{} + {}", "{} - {}", "{} * {}", "{} * {}", "torch.add({}, {}, alpha=2)", "{} / ({} * {} + 2)",
           "torch.mul({}, {})", "torch.sub({}, {}, alpha=0.5)", "torch.lerp({}, {}, 0.3)",
           "torch.addcmul({}, {}, {}, value=0.5)")
_REAL_BINARY = ("torch.maximum({}, {})", "torch.where({} > {}, {}, {})", "torch.nn.functional.mse_loss({}, {})",
                "{} == {}", "torch.fmin({}, {})", "torch.atan2({}, {} * {} + 1)")
_REDUCED = ("{}.sum()", "{}.mean()", "{}.sum({dim})", "{}.sum({dim}, keepdim=True)", "{}.mean({dim})",
            "{}.cumsum({dim})",
            "{}.prod()", "{}.flip({dim})", "{}.roll(1)", "torch.cat([{}, {}], {dim})", "torch.stack([{}, {}])")
_REAL_REDUCED = ("torch.softmax({}, {dim})", "{}.logsumexp({dim})", "{}.amax({dim})", "{}.var()", "{}.std({dim})",
                 "{}.norm()", "torch.log_softmax({}, {dim})", "{}.amin()")


def created(w: Writer, leaf: bool = False) -> str:
    """A tensor of numbers."""
    shape = w.shape()
    name = w.fresh()
    kind = w.random.random()
    if leaf:
        kind *= 0.8
    if kind < 0.7:
        dtype = w.choose("torch.float32", "torch.float64") if not w.double else "torch.float64"
        text = f"torch.tensor({w.literal(shape, w.number)}, dtype={dtype}"
    elif kind < 0.8:
        make = w.choose("zeros", "ones", "full")
        fill = f", {w.number()}" if make == "full" else ""
        text = f"torch.{make}({shape}{fill}, dtype=torch.float{64 if w.double else 32}"
    elif kind < 0.88:
        number = lambda: complex(w.number(), w.number())
        text = f"torch.tensor({w.literal(shape, number)}, dtype=torch.complex{128 if w.double else w.choose(64, 128)}"
    elif kind < 0.96:
        number = lambda: w.random.randrange(-1, 2)
        text = f"torch.tensor({w.literal(shape, number)}, dtype=torch.int64"
    else:
        number = lambda: w.chance(0.5)
        text = f"torch.tensor({w.literal(shape, number)}, dtype=torch.bool"
    if leaf or w.chance(0.4):
        text += ", requires_grad=True"
    return f"{name} = {text})"


@statement(5)
def _creation(w: Writer) -> str:
    return created(w)


@statement(2)
def _empty_like(w: Writer) -> str:
    x = w.floating()
    return w.choose(f"{w.fresh()} = torch.zeros_like({x}, requires_grad={w.chance(0.5)})",
                    f"{w.fresh()} = {x}.new_zeros({w.shape()})", f"{w.fresh()} = torch.full_like({x}, {w.number()})")


@statement(14)
def _unary(w: Writer) -> str:
    x = w.floating()
    if w.value(x).dtype.itemsize == 2:
        return f"{w.fresh()} = {x}.to(torch.float32)"
    options = _UNARY + (_COMPLEX if w.value(x).is_complex() else _REAL if w.double else _REAL + _NARROWER)
    return f"{w.fresh()} = " + w.choose(*options).replace("{}", x)


@statement(14)
def _binary(w: Writer) -> str:
    x = w.floating()
    y = w.beside(x) if w.chance(0.97) or w.value(x)._base is not None else w.pick(
        lambda t: t._base is None and not t.is_inference())
    real = w.value(x).is_floating_point() and w.value(y).is_floating_point()
    text = w.choose(*(_BINARY + _REAL_BINARY if real else _BINARY))
    a, b = w.value(x), w.value(y)
    if ("lerp" in text and a.dtype != b.dtype) or (not real and 2 in (a.dtype.itemsize, b.dtype.itemsize)) or (
            (a.is_inference() or b.is_inference()) and (a._base is not None or b._base is not None)):
        raise Unfit
    if x != y and not (w.value(x).is_contiguous() and w.value(y).is_contiguous()):  # whose layout wins is not said
        return f"{w.fresh()} = " + _alternating(text, f"{x}.contiguous()", f"{y}.contiguous()")
    return f"{w.fresh()} = " + _alternating(text, x, y)


def _alternating(text: str, x: str, y: str) -> str:
    parts = text.split("{}")
    found = parts[0]
    for i, part in enumerate(parts[1:]):
        found += (x if i == 0 else y if i == 1 else (x, y)[i % 2]) + part
    return found


@statement(9)
def _reduced(w: Writer) -> str:
    x = w.floating(lambda t: not t.is_inference())
    t = w.value(x)
    options = _REDUCED if t.is_complex() else _REDUCED + _REAL_REDUCED
    if not t.ndim or not t.numel():
        options = tuple(text for text in options if "cat" not in text and "amin" not in text)
    name, text = w.fresh(), w.choose(*options)
    dim = w.dim(t, 0.0 if t._base is not None else 0.01)
    return f"{name} = " + text.replace("{}", x).replace("{dim}", str(dim))


@statement(1.5)
def _ordered(w: Writer) -> str:
    x = w.real(lambda t: t.ndim > 0 and t.numel() > 0 and t._base is None)
    dim = w.dim(w.value(x), 0)
    return f"{w.fresh()}, {w.fresh()} = " + w.choose(
        f"{x}.max({dim})", f"{x}.sort({dim})", f"torch.topk({x}, 1, {dim})", f"{x}.min({dim})")


@statement(4)
def _product(w: Writer) -> str:
    x = w.floating(lambda t: t.ndim in (1, 2, 3))
    a = w.value(x)
    kind = w.choose("matmul", "matmul", "matmul", "outer", "self", "addmm")
    if kind == "outer":
        x = w.floating(lambda t: t.ndim == 1 and t.is_contiguous())
        y = w.floating(lambda t: t.ndim == 1 and t.dtype == a.dtype and t.is_contiguous())
        return f"{w.fresh()} = torch.outer({x}, {y})"
    if kind == "self":
        return f"{w.fresh()} = {x} @ {x}.mT" if a.ndim > 1 else f"{w.fresh()} = torch.dot({x}, {x})"
    if a.dtype.itemsize == 2:
        raise Unfit
    y = w.floating(lambda t: t.ndim in (1, 2, 3) and t.dtype == a.dtype
                   and t.shape[-2 if t.ndim > 1 else 0] == a.shape[-1])
    if kind == "addmm":
        if a.ndim != 2 or w.value(y).ndim != 2:
            raise Unfit
        z = w.floating(lambda t: t.ndim == 2 and t.shape == (a.shape[0], w.value(y).shape[1]) and t.dtype == a.dtype)
        return f"{w.fresh()} = torch.addmm({z}, {x}, {y}, beta=0.5)"
    return f"{w.fresh()} = {x} @ {y}"


@statement(3)
def _gathered(w: Writer) -> str:
    x = w.floating(lambda t: t.ndim > 0 and t.numel() > 0 and t.is_contiguous())
    t = w.value(x)
    dim = w.random.randrange(t.ndim)
    places = [w.random.randrange(-t.shape[0], t.shape[0]) for _ in range(w.choose(1, 2, 3))]
    along = [w.random.randrange(t.shape[dim]) for _ in range(w.choose(1, 2, 3))]
    return f"{w.fresh()} = " + w.choose(
        f"{x}[torch.tensor({places})]", f"{x}[{places}]", f"{x}[{x}.detach().abs() > 0.3]",
        f"{x}.index_select({dim}, torch.tensor({along}))", f"{x}[..., torch.tensor([0])]",
        f"{x}.masked_fill({x}.detach().abs() > 0.4, 0.25)")


@statement(1.5)
def _misindexed(w: Writer) -> str:
    """Indices and sources whose shapes, dtypes or values may be wrong."""
    x = w.floating(lambda t: t._base is None and not t.is_inference() and t.numel() > 0)
    t = w.value(x)
    dim = w.choose(0, 0, -1, 1, t.ndim)
    index = w.choose("torch.tensor([0])", "torch.tensor(0)", "torch.tensor([1, 0])", "torch.tensor([7])",
                     "torch.tensor([-1])", "torch.tensor([[0]])", "torch.tensor([0.5])",
                     "torch.tensor([0], dtype=torch.int32)")
    source = w.choose(f"{x}.detach()", f"{x}.detach().narrow(0, 0, 1)" if t.ndim else f"{x}.detach()",
                      f"torch.ones((), dtype={t.dtype})", f"torch.ones(1, dtype={t.dtype})",
                      f"torch.ones(1, 3, dtype={t.dtype})", "torch.ones(1, dtype=torch.int64)")
    call = w.choose(f"index_select({dim}, {index})", f"gather({dim}, {index})", f"take_along_dim({index}, {dim})",
                    f"index_add({dim}, {index}, {source})", f"index_copy({dim}, {index}, {source})",
                    f"scatter_add({dim}, {index}, {source})", f"index_fill({dim}, {index}, 0.5)")
    return f"{w.fresh()} = {x}.{call}"


@statement(1.5)
def _layered(w: Writer) -> str:
    """Operators whose gradients PyTorch computes together."""
    x = w.real(lambda t: t.ndim == 3 and t.numel() > 0 and t.dtype.itemsize > 2 and t._base is None)
    _, c, length = w.value(x).shape
    dtype = w.value(x).dtype
    learned = w.choose("False", "True", "True")
    ones = f"torch.ones({{}}, dtype={dtype}, requires_grad={learned})"
    function = w.choose(
        f"torch.nn.functional.conv1d({x}, {ones.format(f'2, {c}, 1')}, {ones.format('2')})",
        f"torch.nn.functional.layer_norm({x}, ({length},), {ones.format(length)}, {ones.format(length)}, 0.5)",
        f"torch.nn.functional.batch_norm({x}, torch.zeros({c}, dtype={dtype}), torch.ones({c}, dtype={dtype}), "
        f"{ones.format(c)}, {ones.format(c)})")
    return f"{w.fresh()} = {function}"


@statement(5)
def _custom(w: Writer) -> str:
    x = w.floating()
    kind = w.choose("Square", "Square", "Tanh", "SinCos", "SinCos", "Halves", "Same", "Flat", "Doubled", "Doubled",
                    "DoubledAndMore", "WithSigns", "Scaled", "Once", "TooMany", "WrongShape", "Nothing", "Failing")
    if w.session.library.is_inference_mode_enabled():
        raise Unfit  # grad mode that is on there counts for Functions alone
    if kind.startswith("Doubled"):
        x = w.writable()
    if kind in ("SinCos",):
        return f"{w.fresh()}, {w.fresh()} = {kind}.apply({x})"
    if kind == "WithSigns":
        return f"{w.fresh()}, {w.fresh()} = {kind}.apply({w.real()})"
    if kind == "Halves":
        shape = w.value(x).shape
        # where it gives None, PyTorch runs what is below too
        x = w.floating(lambda t: t._base is None and t.is_leaf and t.is_contiguous())
        shape = w.value(x).shape
        y = w.floating(lambda t: t.shape == shape and t._base is None and t.is_leaf and t.is_contiguous())
        return f"{w.fresh()}, {w.fresh()}, {w.fresh()} = {kind}.apply({x}, {y})"
    if kind == "DoubledAndMore":
        y = w.floating(w.apart(x))
        if x == y:
            raise Unfit  # a node that leads to itself: PyTorch crashes
        return f"{w.fresh()}, {w.fresh()} = {kind}.apply({x}, {y})"
    if kind == "Scaled":
        shape, dtype = w.value(x).shape, w.value(x).dtype
        if not w.value(x).is_contiguous():
            raise Unfit
        y = w.floating(lambda t: t.shape == shape and t.dtype == dtype and t.is_contiguous())
        return f"{w.fresh()} = {kind}.apply({x}, {w.number()}, {y})"
    if kind == "Nothing":  # PyTorch runs what is below it too, and frees it
        x = w.floating(lambda t: t._base is None and t.is_leaf)
    if kind == "Flat":
        x = w.floating(lambda t: t.is_contiguous())
    return f"{w.fresh()} = {kind}.apply({x})"


@statement(1.5)
def _rebound(w: Writer) -> str:
    x = w.floating()
    return f"{x} = " + w.choose(
        f"{x} * {w.number()}", f"torch.tanh({x})", f"{x}.detach().requires_grad_()",
        f"{x}.contiguous() + {w.beside(x)}.contiguous()")


@statement(1)
def _deep_copy(w: Writer) -> str:
    return f"import copy\n{w.fresh()} = copy.{w.choose('deepcopy', 'copy')}({w.pick()})"


@statement(1)
def _forgotten(w: Writer) -> str:
    return f"del {w.pick()}"
