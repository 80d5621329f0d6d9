"""Statements with transforms of functions, higher derivatives, and `out=` of other shapes and dtypes."""

from __future__ import annotations

from .generation import Unfit, Writer, interleaved, statement

_BODIES = ("t.sin() * t", "t * t", "t.tanh()", "t.exp() * 0.1", "t.cumsum(0)", "t.clone().mul_(2)",
           "t[..., None] * 2", "t.sum(0)", "t.softmax(0) * t", "torch.where(t > 0.1, t, -t)", "t.reshape(-1)",
           "t.mean()", "t.clone().zero_().add(t)", "t.abs()", "t.relu() * 3", "t / (t * t + 1)", "t.max()",
           "t.prod()", "t.clone().cumprod_(0)", "t.clone().sin_().mul_(t)", "t.clone().tanh_()", "t.cumprod(0)",
           "t.clone().pow_(3)", "t.logsumexp(0)", "t.var()", "t.sort(0).values", "t.flip(0).cummax(0).values",
           "t[0] * t", "t.clone().index_fill_(0, torch.tensor([0]), 2.0).exp()", "t.masked_fill(t > 0, 0.5) * t",
           "torch.nn.functional.gelu(t)", "torch.outer(t.reshape(-1), t.reshape(-1))", "t.norm()",
           "t.sigmoid().log()", "torch.nn.functional.layer_norm(t, t.shape)", "t.unbind(0)[0]", "t.reshape(-1).roll(1)",
           "t.clamp(-0.3, 0.4)", "torch.stack([t, t * 2])", "t.unsqueeze(0).expand(2, *t.shape)", "t.mul(2).sin_()")


@statement(3)
def _transformed(w: Writer) -> str:
    x = w.real(lambda t: 0 < t.numel() < 10 and t.ndim > 0 and t.dtype.itemsize > 2 and not t.is_inference()
               and not interleaved(t))  # second derivatives of which PyTorch puts at other elements
    if w.session.library.is_inference_mode_enabled():
        raise Unfit
    body = w.choose(*_BODIES)
    function, scalar = f"lambda t: {body}", f"lambda t: ({body}).sum()"
    a = f"{x}.detach()"  # the nodes of a transformed function are its implementation's
    f = "torch.func"
    # whose views its results are is the implementation's
    return f"{w.fresh()} = (%s).contiguous().clone()" % w.choose(
        f"{f}.grad({scalar})({a})", f"{f}.grad_and_value({scalar})({a})[1]", f"{f}.vmap({function})({a})",
        f"{f}.vmap({f}.grad({scalar}))({a})", f"{f}.jvp({function}, ({a},), ({a} * 2,))[1]",
        f"{f}.vjp({function}, {a})[0]", f"{f}.jacrev({function})({a})", f"{f}.jacfwd({function})({a})",
        f"{f}.hessian({scalar})({a})", f"{f}.vmap({function}, out_dims=-1)({a})",
        f"{f}.vmap({function}, in_dims={w.choose(0, -1, 1)})({a})",
        f"torch.autograd.functional.jacobian({function}, {a})",
        f"torch.autograd.functional.hvp({scalar}, {a}, {a})[1]", f"{f}.grad({f}.grad({scalar}))({a})",
        f"{f}.vmap({f}.vmap({function}))({a})", f"{f}.vmap(lambda t, s: t * s, in_dims=(0, None))({a}, {a})",
        f"{f}.vmap({function}, chunk_size=1)({a})", f"torch.autograd.functional.vjp({function}, {a})[0]")


@statement(3)
def _twice(w: Writer) -> str:
    """A gradient of a gradient."""
    x = w.floating(lambda t: t.requires_grad and not t.is_inference())
    if w.session.library.is_inference_mode_enabled():
        raise Unfit
    body = w.choose("({} ** 3).abs().sum()", "({}.sin() * {}).abs().sum()", "({}.tanh() ** 2).abs().sum()",
                    "({} / ({} * {} + 2)).abs().sum()", "{}.cumsum(0).square().abs().sum()", "{}.exp().abs().mean()",
                    "({} * {}.detach()).abs().sum()", "({}.clone().mul_({})).abs().sum()").replace("{}", x)
    name = w.fresh()
    return (f"{name}, = torch.autograd.grad({body}, [{x}], create_graph=True)\n"
            f"{name}, = torch.autograd.grad({name}.abs().sum(), [{x}], allow_unused=True, "
            f"materialize_grads={w.chance(0.5)})\n"
            f"{name} = None if {name} is None else {name}.detach().contiguous().clone()")


#: functions that write into `out=` of any dtype, and those whose `out=` has the dtype of the result
_INTO_ANY = ("torch.add({}, 1, out={o})", "torch.sin({}, out={o})", "torch.mul({}, {}, out={o})",
             "torch.cat([{}, {}], out={o})", "torch.clamp({}, 0, 1, out={o})",
             "torch.where({} != 0, {}, {}, out={o})", "torch.div({}, 2, out={o})", "torch.argmax({}, out={o})",
             "torch.all({}, out={o})", "torch.neg({}, out={o})", "torch.tril({}, out={o})",
             "torch.sum({}, 0, out={o})", "torch.full((2,), 1.5, out={o})",
             "torch.eye(2, out={o})", "torch.prod({}, 0, out={o})", "torch.any({}, 0, out={o})",
             "torch.pow({}, 2, out={o})", "torch.logical_not({}, out={o})", "torch.clamp({}, max=0.5, out={o})",
             "torch.round({}, out={o})", "torch.index_select({}, 0, torch.tensor([0]), out={o})",
             "torch.arange(3, out={o})", "torch.zeros(2, out={o})", "torch.floor_divide({}, 2, out={o})",
             "torch.remainder({}, 2, out={o})", "torch.addcmul({}, {}, {}, out={o})", "torch.hypot({}, {}, out={o})",
             "torch.div({}, 2, rounding_mode='floor', out={o})")
_INTO_SAME = (
    "torch.cumsum({}, 0, out={o})", "torch.stack([{}, {}], out={o})", "torch.abs({}, out={o})",
    "torch.amax({}, 0, out={o})", "torch.norm({}, out={o})", "torch.logsumexp({}, 0, out={o})",
    "torch.nansum({}, out={o})", "torch.maximum({}, {}, out={o})",
    "torch.mean({}, 0, out={o})", "torch.var({}, 0, out={o})", "torch.lerp({}, {}, 0.5, out={o})")


@statement(2)
def _into(w: Writer) -> str:
    """`out=` of another shape, dtype or history."""
    x = w.pick(lambda t: t.numel() < 20)
    t = w.value(x)
    same = w.chance(0.3)
    own = str(t.dtype).rpartition(".")[2]
    if same and not t.is_floating_point():
        raise Unfit
    dtype = own if same else w.choose("float32", "float64", "int64", "complex64", "bool")
    shape = w.choose("0", *[repr(tuple(t.shape))] * 3, "7")
    function = w.choose(*(_INTO_SAME if same else _INTO_ANY))
    name = w.fresh()
    source = f"{x}.detach().contiguous()" if w.chance(0.8) else x
    tail = ", requires_grad=True" if w.chance(0.1) and dtype in ("float32", "float64") else ""
    return f"{name} = torch.zeros({shape}, dtype=torch.{dtype}{tail})\n" + function.replace("{}", source).replace(
        "{o}", name)


_WRONG = ("{}.view(7)", "{}.reshape(2, 5)", "{}.sum(5)", "{} @ torch.ones(9)", "torch.cat([{}, torch.ones(9, 9)])",
          "{}.expand(3, 9)", "{} + torch.ones(9, 9, 9)", "torch.stack([{}, torch.ones(9)])", "{}.permute(0, 0)",
          "{}.transpose(0, 9)", "{}.split(-1)", "{}.chunk(0)", "{}.narrow(0, 5, 9)",
          "{}.squeeze(9)", "{}.unsqueeze(9)", "{}.roll(1, 9)", "{}.flip(9)", "{}.mean(dtype=torch.int64)",
          "{}.to('nowhere')", "{}.softmax(9)", "{}.cumsum(9)", "{}.topk(99)", "{}.kthvalue(99)", "{}.unfold(0, 9, 1)",
          "{}.backward(torch.ones(9))", "torch.autograd.grad({}, [{}], torch.ones(9))", "{}.register_hook(3)",
          "{}.requires_grad_('a')", "torch.ones(2).requires_grad_().data.grad_fn.name()",
          "{}.index_select(9, torch.tensor([0]))", "torch.nn.functional.linear({}, torch.ones(9, 9))", "{}.item()",
          "torch.nn.functional.conv1d({}, torch.ones(1, 1, 1))", "bool({})", "int({})", "float({})", "len({})",
          "list({})",
          "{}.norm(9, 9)", "{}.as_strided((9, 9), (-1, 9))", "{}.detach().backward()",
          "{}.new_zeros(-1)",
          "torch.zeros(-1)", "torch.full((2,), None)", "torch.arange(0, 1, 0)", "torch.eye(-1)",
          "torch.linspace(0, 1, -1)",
          "{}.T", "{}.mT", "{}.diagonal(0, 0, 0)", "torch.bmm({}, {})", "torch.mm({}, {})", "torch.dot({}, {})",
          "{}.median(9)", "torch.einsum('ij,jk', {}, {})", "{}.clamp()", "{}.all(9)", "{}.flatten(1, 0)",
          "{}.movedim(0, 9)", "{}.view(-1, -1)", "{}.tile(())", "{}.unbind(9)", "torch.meshgrid({}, {})",
          "{}.addmm({}, {})", "{}.tensor_split(0)", "{}.hsplit(2)", "{}.fill_diagonal_(1)", "torch.normal({}, -1.0)",
          "torch.diag({})", "torch.trace({})", "torch.cross({}, {}, dim=0)",
          "{}.gather(0, torch.zeros(9, 9, 9).long())")


@statement(2)
def _wrong(w: Writer) -> str:
    x = w.floating(lambda t: t._base is None and not t.is_inference() and t.is_contiguous() and t.dtype.itemsize > 2)
    text = w.choose(*_WRONG).replace("{}", x)
    return f"{w.fresh()} = {text}"
