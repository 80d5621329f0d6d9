"""Statements about the graph itself: backward, gradients, hooks, leaves, and what keeps or cuts history."""

from __future__ import annotations

from .generation import Unfit, Writer, statement


def _differentiable(w: Writer) -> str:
    return w.floating(lambda t: t.requires_grad and not t.is_inference()) if w.chance(0.93) else w.floating(
        lambda t: not t.is_inference())


def _retainable(w: Writer) -> str:
    """A tensor whose gradient may be retained: PyTorch crashes if a later output's is and the tensor is written to."""
    return w.floating(lambda t: t.requires_grad and not t.is_inference() and t.output_nr == 0)


def _loss(w: Writer) -> str:
    x = _differentiable(w)
    t = w.value(x)
    if t.is_complex():
        return f"{x}.abs().sum()" if w.chance(0.9) else f"{x}.sum()"
    if w.chance(0.3) and t.numel() == 1:
        return x
    return str(w.choose(f"{x}.sum()", f"{x}.sum()", f"({x} * {x}).sum()", f"{x}.mean()", f"torch.tanh({x}).sum()"))


@statement(9)
def _backward(w: Writer) -> str:
    options = w.choose("", "", "", "retain_graph=True", "retain_graph=True", "create_graph=True")
    if w.chance(0.25):
        x = _differentiable(w)
        given = f"torch.ones_like({x})" if w.chance(0.6) else f"{x}.detach().clone()"
        options = ", ".join(filter(None, [given, options]))
        return f"{x}.backward({options})"
    if w.chance(0.2):
        inputs = ", ".join(_retainable(w) for _ in range(w.choose(1, 2)))
        options = ", ".join(filter(None, [options, f"inputs=[{inputs}]"]))
    return f"{_loss(w)}.backward({options})"


@statement(1.5)
def _backward_of_several(w: Writer) -> str:
    x, y = _differentiable(w), _differentiable(w)
    return f"torch.autograd.backward([{x}, {y}.sum()], [torch.ones_like({x}), None], retain_graph={w.chance(0.5)})"


@statement(8)
def _grad(w: Writer) -> str:
    inputs = [_differentiable(w) for _ in range(w.choose(1, 1, 2, 3))]
    options = [w.choose("", "", "create_graph=True", "create_graph=True", "retain_graph=True"),
               w.choose("", "allow_unused=True", "allow_unused=True", "materialize_grads=True")]
    options = ", ".join(filter(None, options))
    names = ", ".join(w.fresh() for _ in inputs)
    if w.chance(0.7):
        outputs, given = _loss(w), ""
    else:
        x = _differentiable(w)
        outputs, given = x, f", torch.ones_like({x})"
    if given and w.chance(0.2):
        given = f", {x}.detach() * 2"
    text = (f"{names}{',' if len(inputs) == 1 else ''} = torch.autograd.grad({outputs}, [{', '.join(inputs)}]{given}"
            f"{', ' + options if options else ''})")
    for name in names.split(", "):  # PyTorch's may share memory, among themselves and with what was saved
        text += f"\n{name} = None if {name} is None else {name}.contiguous().clone()"
    return text


@statement(5)
def _tensor_hook(w: Writer) -> str:
    x = _differentiable(w)
    h = w.handle()
    noted = f"note('{h}', g)"
    action = w.choose(noted, noted, noted, "g * 2", "g * 0.5", "fail(g)", "g.sum()", "3",
                      "g.clone()", f"{x}.register_hook(lambda g: note('{h} later', g)) and None", f"{h}.remove()",
                      "g.requires_grad and None")
    return f"{h} = safe({x}).register_hook(lambda g: {action})"


@statement(2)
def _post_accumulate_hook(w: Writer) -> str:
    x = _differentiable(w)
    h = w.handle()
    noted = f"note('{h}', t, t.grad)"
    action = w.choose(noted, noted, "setattr(t, 'grad', None)", "fail(t)", "t.grad.mul_(2)")
    return f"{h} = safe({x}).register_post_accumulate_grad_hook(lambda t: {action})"


@statement(3)
def _node_hook(w: Writer) -> str:
    x = _differentiable(w)
    h = w.handle()
    node = f"{x}.grad_fn" if w.chance(0.8) else f"{x}.grad_fn.next_functions[0][0]"
    if w.chance(0.5):
        noted = f"note('{h}', a, b)"
        action = w.choose(noted, noted, "fail(a)", "tuple(None if v is None else v * 2 for v in a)")
        return f"{h} = {node}.register_hook(lambda a, b: {action})"
    noted = f"note('{h}', b)"
    action = w.choose(noted, noted, "fail(b)", "tuple(None if v is None else v * 2 for v in b)")
    return f"{h} = {node}.register_prehook(lambda b: {action})"


@statement(1.5)
def _hook_removed(w: Writer) -> str:
    if not w.handles:
        raise Unfit
    return f"h{w.random.randrange(w.handles) + 1}.remove()"


@statement(3)
def _retained(w: Writer) -> str:
    return f"{_retainable(w)}.retain_grad()"


@statement(3)
def _requires_grad(w: Writer) -> str:
    if w.chance(0.2):
        return f"{w.pick(lambda t: t._base is None or w.chance(0.1))}.detach_()"
    x = w.pick()
    return str(w.choose(f"{x}.requires_grad_()", f"{x}.requires_grad_()", f"{x}.requires_grad = False",
                        f"{x}.requires_grad_(False)", f"{w.fresh()} = {x}.detach().requires_grad_()"))


@statement(3)
def _gradient_changed(w: Writer) -> str:
    x = w.floating(lambda t: t.requires_grad and t._base is None) if w.chance(0.5) else w.floating()
    return str(w.choose(
        f"{x}.grad = None", f"{x}.grad.zero_()", f"{x}.grad = torch.ones_like({x})", f"{w.fresh()} = {x}.grad",
        f"{x}.grad.mul_(0.5)", f"{x}.grad.detach_()", f"{x}.grad = {w.floating()}", f"{w.fresh()} = {x}.grad * 2"))


@statement(1)
def _accumulator_kept(w: Writer) -> str:
    x = _differentiable(w)
    return f"n{w.count} = {x}.grad_fn.next_functions"
