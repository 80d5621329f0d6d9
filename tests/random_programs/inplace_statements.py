"""Statements that write to memory: to leaves, bases, views and views of views, or try to."""

from __future__ import annotations

from .generation import Unfit, Writer, statement
from .view_statements import basic_key, view_of

_UNARY = ("{}.mul_({n})", "{}.add_({n})", "{}.sub_({n})", "{}.div_(2)", "{}.fill_({n})", "{}.zero_()", "{}.sin_()",
          "{}.tanh_()", "{}.neg_()", "{} *= {n}", "{} += {n}", "{}.cos_()", "{}.sigmoid_()", "{}.square_()",
          "{} -= {n}",
          "{}.pow_(2)")
_REAL = ("{}.relu_()", "{}.clamp_(-0.51, 0.73)", "{}.abs_()", "{}.exp_()", "torch.nn.functional.relu_({})",
         "torch.nn.functional.hardtanh({}, -0.4, 0.6, True)", "{}.erf_()",
         "{}.masked_fill_({}.detach().abs() > 0.4, {n})",
         "{}.clamp_min_(-0.3)", "{}.copysign_(1.0)")
_BINARY = ("{}.mul_({y})", "{}.add_({y})", "{}.copy_({y})", "{}.sub_({y}, alpha=2)", "{} *= {y}", "{} += {y}",
           "{} -= {y}",
           "{}.lerp_({y}, 0.5)", "{}.addcmul_({y}, {y})", "{}.mul_({y}).add_({y})", "{}[...] = {y}")


def _target(w: Writer) -> str:
    """What is written to: a tensor, rather one whose base is shared, or a view made on the spot."""
    x = w.writable(lambda t: t._base is not None) if w.chance(0.3) else w.writable()
    if w.chance(0.12):
        return w.choose(f"{x}.data", f"{x}.detach()", f"{x}.grad", f"{x}[0]")
    return x


@statement(8)
def _unary(w: Writer) -> str:
    x = _target(w)
    real = x in w.session.names and w.value(x).is_floating_point()
    return str(w.choose(*(_UNARY + _REAL if real else _UNARY))).replace("{n}", str(w.number())).replace("{}", x)


@statement(9)
def _binary(w: Writer) -> str:
    x = _target(w)
    name = x.partition(".")[0].partition("[")[0]
    y = w.into(name) if w.chance(0.95) else w.floating(w.apart(name))
    text = str(w.choose(*_BINARY))
    if "lerp" in text and w.value(name).dtype != w.value(y).dtype:
        raise Unfit
    return text.replace("{y}", y).replace("{}", x)


@statement(4)
def _through_a_view(w: Writer) -> str:
    x = w.writable()
    text = view_of(w, x)
    if "unfold" in text or "as_strided" in text:
        raise Unfit  # elements may overlap
    is_apart = w.apart(x)
    n = w.number()
    y = w.pick(lambda t: is_apart(t) and t._base is None)
    return text + w.choose(f".mul_({n})", f".add_({n})", ".zero_()", f".fill_({n})", ".sin_()", f".copy_({y})")


@statement(9)
def _assigned(w: Writer) -> str:
    x = w.writable(lambda t: t.ndim > 0)
    t = w.value(x)
    key = basic_key(w, t)
    other = w.into(x) if w.chance(0.5) else str(w.number())
    value = w.choose(str(w.number()), str(w.number()), f"{x}[{key}] * {w.number()}", other)
    operator = w.choose("=", "=", "=", "+=", "*=")
    return f"{x}[{key}] {operator} {value}"


@statement(5)
def _assigned_at_indices(w: Writer) -> str:
    x = w.writable(lambda t: t.ndim > 0 and t.numel() > 0 and 0 not in t.stride())
    t = w.value(x)
    places = [w.random.randrange(-t.shape[0], t.shape[0]) for _ in range(w.choose(1, 2, 2))]
    is_apart = w.apart(x)
    same = w.floating(lambda s: s.dtype == t.dtype and is_apart(s) and s is not t)
    alike = w.floating(lambda s: s.dtype == t.dtype and s.ndim == t.ndim and is_apart(s) and s is not t)
    key = w.choose(f"torch.tensor({places})", str(places), f"{x}.detach().abs() > 0.3", "True",
                   "torch.tensor([0]), ...")
    value = w.choose(str(w.number()), f"{same} * 1", f"{same}.detach()")
    dim = w.random.randrange(t.ndim)
    index = f"torch.zeros({(1,) * t.ndim}, dtype=torch.int64)"
    return str(w.choose(
        f"{x}[{key}] = {value}", f"{x}[{key}] = {value}", f"{x}[{key}] += {value}",
        f"{x}.index_put_((torch.tensor({places}),), {same} * 0.5{w.choose('', ', accumulate=True')})",
        f"{x}.scatter_({dim}, {index}, {w.number()})", f"{x}.scatter_add_({dim}, {index}, {alike}.detach())",
        f"{x}.index_fill_({dim}, torch.tensor([0]), {w.number()})", f"{x}.scatter_({dim}, {index}, {alike}.detach())",
        f"{x}.index_add_({dim}, torch.tensor([0]), ({x}.detach() * 0.5).narrow({dim}, 0, 1))",
        f"{x}.masked_fill_({x}.detach().abs() > 0.3, {w.number()})",
        f"{x}.index_copy_({dim}, torch.tensor([0]), {same}.clone())",
        f"{x}.masked_scatter_({x}.detach().abs() > 0.3, {x}.detach() * 0.5)"))


@statement(2.5)
def _reshaped_in_place(w: Writer) -> str:
    if not w.session.library.is_grad_enabled():
        raise Unfit
    bases = {id(t._base) for t in w.session.tensors().values()}
    # PyTorch's gradients fail for bases, and for views of other dtypes
    x = w.writable(lambda t: id(t) not in bases and not t.retains_grad and (
        t._base is None or t._base.dtype is t.dtype))
    t = w.value(x)
    options = [f"{x}.unsqueeze_({w.dim(t)})", f"{x}.squeeze_()", f"{x}.squeeze_({w.dim(t)})", f"{x}.t_()"]
    if t.ndim >= 2:
        a, b = w.dim(t), w.dim(t)
        options += [f"{x}.transpose_(0, 1)", f"{x}.swapaxes_({a}, {b})", f"{x}.swapdims_({a}, {b})"]
    return str(w.choose(*options))


@statement(2)
def _out(w: Writer) -> str:
    x = w.writable()
    shape, dtype = w.value(x).shape, w.value(x).dtype
    source = w.value(x)
    # of the same elements in another order, PyTorch does not notice that it reads what it wrote
    y = w.writable(lambda t: t.shape == shape and t.dtype == dtype and (
        t.stride() == source.stride() or t.data_ptr() != source.data_ptr()))
    text = w.choose(f"torch.mul({x}, 2, out={y})", f"torch.add({x}, {x}, out={y})", f"torch.sin({x}, out={y})")
    return f"with torch.no_grad():\n    {text}" if w.chance(0.6) else str(text)


@statement(1)
def _data_replaced(w: Writer) -> str:
    x = w.writable(lambda t: not t.is_inference())
    shape, dtype = w.value(x).shape, w.value(x).dtype
    y = w.floating(lambda t: t.shape == shape and t.dtype == dtype)
    if x == y:
        raise Unfit
    return f"{x}.data = {y}.detach().clone()"


@statement(1.5)
def _unrecorded(w: Writer) -> str:
    x = w.writable()
    write = w.choose(f"mul_({w.number()})", f"add_({w.number()})", "zero_()", "sin_()")
    return f"with torch.no_grad():\n    {x}.{write}"
