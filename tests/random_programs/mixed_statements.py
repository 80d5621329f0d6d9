"""Statements that mix: operands of NumPy, of other dtypes and devices; results written to views; nested transforms."""

from __future__ import annotations

from .generation import MIXED, Unfit, Writer, statement

#: NumPy's scalars and arrays, and Python's numbers of other kinds
_NUMBERS = (
    "np.float32(0.5)", "np.float64(1.5)", "np.float16(2)", "np.int64(2)", "np.int32(-1)", "np.uint8(3)",
    "np.bool_(True)", "True", "2", "1j", "torch.tensor(2)", "torch.tensor(0.5, dtype=torch.float64)",
    "torch.tensor(True)", "torch.tensor(1j)")
_WITH_NUMBER = (
    "{} + {n}", "{} * {n}", "{n} * {}", "{n} - {}", "{} / {n}", "{} ** {n}", "{} // {n}", "{} % {n}", "{} > {n}",
    "{n} == {}", "torch.maximum({}, torch.as_tensor({n}))", "torch.where({}.abs() > 0.5, {}, {n})",
    "{}.clamp(max={n})", "torch.full_like({}, {n})", "{}.new_tensor({n})", "torch.add({}, {}, alpha={n})",
    "{}.masked_fill({}.abs() > 0.5, {n})", "torch.pow({n}, {})", "torch.lerp({}, {} * 2, {n})",
    "torch.result_type({}, {n})", "{}.index_fill(0, torch.tensor([0]), {n})", "torch.true_divide({n}, {})",
    "torch.xlogy({n}, {}.abs() + 1)", "{}.sub({n}, alpha=2)", "{}.addcmul({}, {}, value={n})",
    "torch.as_tensor({n}, dtype={}.dtype) * {}", "{}.fmod({n})", "torch.isclose({}, torch.tensor({n}))")
_WRITE_NUMBER = (
    "add_({n})", "mul_({n})", "div_({n})", "pow_({n})", "fill_({n})", "copysign_({n})", "sub_({n}, alpha=2)",
    "remainder_({n})", "floor_divide_({n})", "clamp_(min={n})", "masked_fill_({}.detach().abs() > 0.5, {n})",
    "eq_({n})", "__setitem__(..., {n})", "lerp_({}.detach() * 2, {n})", "index_fill_(-1, torch.tensor([0]), {n})")
_OTHER = (
    "torch.arange({n}).view({s})", "(torch.arange({n}).view({s}) % 2).bool()",
    "torch.ones({s}, dtype=torch.complex64)", "torch.ones({s}, dtype=torch.bfloat16)",
    "torch.ones({s}, dtype=torch.float16)", "torch.arange({n}, dtype=torch.uint8).view({s})",
    "torch.ones({s}, dtype=torch.float64)", "torch.ones({s}, dtype=torch.int8)", "torch.tensor(2, dtype=torch.int16)")
_WITH_OTHER = (
    "{} + {o}", "{o} - {}", "{} * {o}", "{} / ({o} + 1)", "torch.where({o} > 0, {}, {o})", "{o} ** {}.abs()",
    "torch.stack([{}, {o}.expand({}.shape)])", "torch.cat([{}.flatten(), {o}.flatten()])", "{} >= {o}",
    "{}.copy_({o})", "{}.mul_({o})", "{}.add_({o}, alpha=2)", "{o}.clone().add_({})", "{o}.clone().mul_({}.detach())",
    "torch.maximum({}, {o})", "{}.type_as({o}) * 1", "torch.atan2({}, {o})", "{}.to({o}.dtype)", "{o}.to({})",
    "torch.addcmul({}, {o}, {o})", "torch.lerp({}, {o}, 0.5)",
    "torch.dot({}.flatten(), {o}.expand({}.shape).flatten())", "{o}.logical_and({})", "torch.logical_xor({}, {o})",
    "{o}.bitwise_not()", "torch.fmod({o}, {}.abs() + 1)", "{}.sum(dtype={o}.dtype)", "{}.cumsum(0, dtype={o}.dtype)",
    "{}.mean(dtype=torch.float64) * {o}", "{}.masked_fill({o}.bool(), 0)",
    "torch.bucketize({}.detach(), {o}.flatten().sort()[0])")
#: what a result is written to, of shape s
_TARGETS = (
    "torch.empty({s})", "torch.zeros(*{s}[::-1]).permute(*range(len({s}))[::-1])", "torch.zeros(*{s}, 2)[..., 0]",
    "torch.zeros(1, *{s}).expand(1, *{s})[0]", "torch.zeros(0)", "torch.zeros({s}, dtype=torch.float64)",
    "torch.zeros({s}, dtype=torch.int64)", "torch.zeros({s}, dtype=torch.complex128)", "torch.zeros(2, *{s})[1]",
    "torch.zeros(1)[:0]", "torch.zeros({s}, requires_grad=True)", "torch.zeros({s}, device='meta')",
    "torch.zeros({s})[None]")
_INTO = (
    "torch.add({}, 1, out={o})", "torch.mul({}, {}, out={o})", "torch.exp({}, out={o})", "torch.sum({}, -1, out={o})",
    "torch.cumsum({}, -1, out={o})", "torch.where({} > 0, {}, 0, out={o})", "torch.cat([{}], out={o})",
    "torch.stack([{}, {}], out={o})", "torch.sort({}, out=({o}, torch.zeros(0, dtype=torch.int64)))",
    "torch.max({}, -1, out=({o}, torch.empty(0, dtype=torch.int64)))", "torch.clamp({}, 0, 1, out={o})",
    "torch.matmul({}, {}.mT, out={o})", "torch.abs({}, out={o})", "torch.mean({}, -1, out={o})",
    "torch.index_select({}, 0, torch.tensor([0]), out={o})",
    "torch.gather({}, 0, torch.zeros(1, *[1] * ({}.ndim - 1)).long(), out={o})", "torch.softmax({}, -1, out={o})",
    "torch.pow({}, 2, out={o})", "torch.gt({}, 0, out={o})", "torch.tril({}, out={o})",
    "torch.linalg.vector_norm({}, out={o})", "torch.prod({}, -1, out={o})", "torch.var({}, -1, out={o})",
    "torch.amax({}, -1, out={o})", "torch.nan_to_num({}, out={o})", "torch.masked_select({}, {} > 0, out={o})",
    "torch.real({})", "torch.diag({}, out={o})")
#: on the device without elements
_META = (
    "{}.to('meta') * 2", "torch.empty_like({}, device='meta').sum(0)", "{}.to('meta') + {}",
    "{}.to('meta').view(-1)[1:]", "{}.to('meta').to('cpu')", "{}.to('meta').item()", "torch.cat([{}.to('meta')] * 2)",
    "{}.to('meta') + 1j", "{}.to('meta').mT", "{}.to('meta').nonzero()", "{}.to('meta').tolist()",
    "torch.zeros(2, device='meta').copy_({})", "{}.copy_(torch.zeros_like({}, device='meta'))", "{}.to('meta') > 0",
    "{}.to('meta').max(-1)[1]", "{}.to('meta').double()", "torch.ones(1, device='meta') * {}",
    "torch.tensor(2., device='meta') * {}", "{} * torch.tensor(2., device='meta')", "{}.to('meta')[{} > 0]",
    "{}.to('meta').contiguous()", "{}.to('meta').expand(2, *{}.shape)", "{}.to('meta').softmax(-1)",
    "{}.to('meta').unique()", "bool({}.to('meta').any())", "{}.to('meta').detach().requires_grad_()",
    "repr({}.to('meta'))", "torch.equal({}.to('meta'), {})", "{}.to('meta').numpy()", "{}.to('meta').is_contiguous()",
    "{}.cpu().to('meta', torch.int32)")
#: functions of a tensor whose derivatives are taken
_FUNCTIONS = (
    "lambda x: (x * x).sum()", "lambda x: x.sin() * x", "lambda x: x.clone().mul_(x).sum(0)",
    "lambda x: (x.view(-1) ** 3)[:1].sum()", "lambda x: x.exp().cumsum(-1).sum()",
    "lambda x: x.clone().view(-1).index_fill_(0, torch.tensor([0]), 2.).pow(2).sum()",
    "lambda x: torch.where(x > 0, x, x * x).sum()", "lambda x: x.flatten().dot(x.flatten())",
    "lambda x: x.unsqueeze(0).mT.sum() ** 2", "lambda x: (x.detach() * x).sum()", "lambda x: x.softmax(-1)",
    "lambda x: x.tanh().prod()", "lambda x: x.abs().max()", "lambda x: torch.stack([x, x * 2]).norm()",
    "lambda x: x.expand(2, *x.shape).clone().mul_(2).sum()",
    "lambda x: torch.cat([x.flatten(), x.flatten() ** 2]).sum()", "lambda x: x.sort(-1)[0].cumprod(-1).sum()",
    "lambda x: (x.new_ones(2).outer(x.flatten()) ** 2).sum()", "lambda x: x.sum() if x.ndim else x * x",
    "lambda x: torch.nn.functional.gelu(x).mean()", "lambda x: x.reshape(-1).roll(1).sub_(x.flatten()).square().sum()",
    "lambda x: torch.func.grad(lambda z: (z ** 3).sum())(x).sum()",
    "lambda x: x.clone().t_().sum() if x.ndim == 2 else x.sum()", "lambda x: x.clone().zero_().add_(x).sum()")
_TRANSFORMS = (
    "torch.func.grad({f})({})", "torch.func.vmap({f})({})", "torch.func.jacrev({f})({})", "torch.func.jacfwd({f})({})",
    "torch.func.hessian({f})({})", "torch.func.vmap(torch.func.grad({f}))({})",
    "torch.func.grad_and_value({f})({})[1]", "torch.func.jacfwd(torch.func.jacrev({f}))({})",
    "torch.func.vmap(torch.func.jacrev({f}))({})", "torch.func.jvp({f}, ({},), ({},))[1]",
    "torch.func.jvp(torch.func.grad({f}), ({},), ({},))[1]", "torch.func.vjp({f}, {})[0]",
    "torch.func.vmap({f}, in_dims=-1, out_dims=-1)({})", "torch.func.vmap(torch.func.vmap({f}))({})",
    "torch.func.functionalize({f})({})", "torch.autograd.functional.hessian({f}, {})",
    "torch.autograd.functional.vhp({f}, {}, {})[1]", "torch.autograd.functional.jacobian({f}, {}, create_graph=True)",
    "torch.func.vmap({f}, chunk_size=1)({})", "torch.func.grad(lambda y: torch.func.vmap({f})(y).sum())({})",
    "torch.func.vjp(torch.func.grad({f}), {})[1]({})[0]", "torch.func.jacrev({f}, has_aux=False)({})")
#: gradients of gradients through views that are written to; x is the input, recorded
_WRITTEN_VIEWS = (
    "y = {} * 1; y.view(-1)[:1].mul_({}.sum())", "y = {} * 2; v = y.unsqueeze(0); v += {}",
    "y = {}.clone(); y.flatten()[0] = y.sum()", "y = {} ** 2; y.mT.add_({}.mT)",
    "y = {}.exp(); y[..., 0].mul_(y[..., 0].detach())", "y = {} * 3; y.detach().mul_(1)",
    "y = {}.sin(); y.expand(2, *y.shape)[0].square_()", "y = torch.zeros_like({}); y[...] = {} ** 3",
    "y = {} * 1; a, *b = y.view(-1).split(1); y.mul_(y)",
    "y = torch.zeros_like({}); y.view(-1).copy_({}.flatten() ** 2); y.mul_({})",
    "y = {} * 1; y.view(-1).index_put_((torch.tensor([0]),), {}.sum())",
    "y = {}.tanh(); v = y[...]; y.mul_(2); v.mul_(v)",
    "y = {} * 2; v = y.view(-1); y.pow_(2); v = v * y.flatten(); y = v",
    "y = {} * 1; y.diagonal().fill_(2) if y.ndim > 1 else y.zero_(); y = y * {}",
    "y = {}.clone(); y.masked_fill_(y > 0, 0.5); y = y * y")
_HOOKED = (
    "y.register_hook(lambda g: g * 2)", "y.retain_grad()", "y.register_hook(lambda g: note(g))",
    "{}.register_hook(lambda g: g + 1)", "y.grad_fn.register_hook(lambda i, o: note(len(i), o[0]))",
    "y.grad_fn.register_prehook(lambda g: (g[0] * 2,))", "pass",
    "{}.register_post_accumulate_grad_hook(lambda t: note(t.grad)) if {}.is_leaf else 0",
    "torch.autograd.graph.register_multi_grad_hook([y], lambda g: note(g))",
    "y.register_hook(lambda g: None); y.register_hook(lambda g: g.neg())", "y.register_hook(lambda g: g.sum())",
    "y.register_hook(lambda g: g.double())")


@statement(2, MIXED)
def _with_number(w: Writer) -> str:
    x = w.real(lambda t: t.dtype.itemsize > 2 and t.ndim > 0 and not t.is_inference())
    text = w.choose(*_WITH_NUMBER).replace("{n}", w.choose(*_NUMBERS)).replace("{}", x)
    return f"import numpy as np\n{w.fresh()} = {text}"


@statement(1, MIXED)
def _written_number(w: Writer) -> str:
    x = w.writable(lambda t: not t.is_complex() and t.dtype.itemsize > 2 and t.ndim > 0)
    text = w.choose(*_WRITE_NUMBER).replace("{n}", w.choose(*_NUMBERS)).replace("{}", x)
    mode = w.choose("", "", "with torch.no_grad(): ", "with torch.inference_mode(): ")
    return f"import numpy as np\n{mode}{x}.{text}"


@statement(2, MIXED)
def _with_other(w: Writer) -> str:
    x = w.writable(lambda t: not t.is_complex() and t.dtype.itemsize > 2 and t.ndim > 0 and t.numel() > 0
                   and not t.is_inference())
    t = w.value(x)
    other = w.choose(*_OTHER).replace("{s}", str(tuple(t.shape))).replace("{n}", str(t.numel()))
    text = w.choose(*_WITH_OTHER).replace("{o}", "o").replace("{}", x)
    return f"{w.fresh()} = (lambda o: {text})({other})"


@statement(2, MIXED)
def _into(w: Writer) -> str:
    x = w.real(lambda t: t.dtype.itemsize > 2 and t.ndim > 0 and t.numel() > 0 and not t.is_inference())
    target = w.choose(*_TARGETS).replace("{s}", str(tuple(w.value(x).shape)))
    operand = x + w.choose("", ".detach()", ".detach()")
    result = w.choose(*_INTO).replace("{o}", "o").replace("{}", operand)
    return f"{w.fresh()} = (lambda o: [{result}, o][1])({target})"


@statement(1, MIXED)
def _meta(w: Writer) -> str:
    x = w.real(lambda t: t.dtype.itemsize > 2 and t.numel() > 0 and not t.is_inference())
    text = w.choose(*_META).replace("{}", x)
    return f"note(described({text}))"


@statement(2, MIXED)
def _transformed(w: Writer) -> str:
    x = w.real(lambda t: t.dtype.itemsize > 2 and 0 < t.numel() < 7 and t.ndim > 0 and not t.is_inference())
    text = w.choose(*_TRANSFORMS).replace("{f}", w.choose(*_FUNCTIONS)).replace("{}", x)
    return f"note(numbers_of(described({text})))"


@statement(2, MIXED)
def _written_views(w: Writer) -> str:
    x = w.real(lambda t: t.dtype.itemsize > 2 and 0 < t.numel() < 7 and t.ndim > 0 and t.requires_grad
               and not t.is_inference())
    if w.session.library.is_inference_mode_enabled() or not w.session.library.is_grad_enabled():
        raise Unfit
    make = w.choose(*_WRITTEN_VIEWS).replace("{}", x).replace("; ", "\n")
    hook = w.choose(*_HOOKED).replace("{}", x).replace("; ", "\n")
    hook = hook.replace("\n", "\n    ")
    return (f"{make}\nif y.requires_grad:\n    {hook}\n"
            f"g, = torch.autograd.grad((y ** 2).sum(), {x}, create_graph=True)\n"
            f"note(described(g.detach()), y.grad_fn.name(), g.requires_grad)\n"
            f"note(torch.autograd.grad(g.pow(2).sum(), {x}, allow_unused=True) if g.requires_grad else 0)\n"
            + w.choose("", "y.sum().backward()\nnote(y.grad if y.retains_grad else 0)\n") + "del y, g")
