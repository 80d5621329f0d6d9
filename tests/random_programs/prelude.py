"""The autograd.Functions that every program may use, as source text: one for each thing a Function can do."""

from __future__ import annotations

PRELUDE = '''
class Square(torch.autograd.Function):  # saves an input
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * x
    @staticmethod
    def backward(ctx, g):
        note("Square", ctx.needs_input_grad, g)
        x, = ctx.saved_tensors
        return 2 * x * g

class Tanh(torch.autograd.Function):  # saves an output
    @staticmethod
    def forward(ctx, x):
        y = x.tanh()
        ctx.save_for_backward(y)
        return y
    @staticmethod
    def backward(ctx, g):
        y, = ctx.saved_tensors
        return g * (1 - y * y)

class SinCos(torch.autograd.Function):  # several outputs, missing gradients as zeros
    @staticmethod
    def forward(ctx, x):
        s, c = x.sin(), x.cos()
        ctx.save_for_backward(s, c)
        return s, c
    @staticmethod
    def backward(ctx, g, h):
        note("SinCos", g, h)
        s, c = ctx.saved_tensors
        return g * c - h * s

class Halves(torch.autograd.Function):  # several outputs, missing gradients as None
    @staticmethod
    def forward(ctx, x, y):
        ctx.set_materialize_grads(False)
        return x * 0.5, y * 0.5, x + y
    @staticmethod
    def backward(ctx, g, h, k):
        note("Halves", g, h, k)
        first = None if g is None else g * 0.5
        second = None if h is None else h * 0.5
        if k is not None:
            first = k if first is None else first + k
            second = k if second is None else second + k
        return first, second

class Same(torch.autograd.Function):  # returns what it was given
    @staticmethod
    def forward(ctx, x):
        return x
    @staticmethod
    def backward(ctx, g):
        note("Same", g)
        return g * 2

class Flat(torch.autograd.Function):  # returns a view of what it was given
    @staticmethod
    def forward(ctx, x):
        ctx.shape = x.shape
        return x.view(-1)
    @staticmethod
    def backward(ctx, g):
        return g.reshape(ctx.shape)

class Doubled(torch.autograd.Function):  # writes to its input
    @staticmethod
    def forward(ctx, x):
        ctx.mark_dirty(x)
        return x.mul_(2)
    @staticmethod
    def backward(ctx, g):
        note("Doubled", g)
        return g * 2

class DoubledAndMore(torch.autograd.Function):  # writes to one input, makes something new of another
    @staticmethod
    def forward(ctx, x, y):
        ctx.mark_dirty(x)
        ctx.save_for_backward(y)
        x.mul_(2)
        return x, y * y
    @staticmethod
    def backward(ctx, g, h):
        y, = ctx.saved_tensors
        return g * 2, h * 2 * y

class WithSigns(torch.autograd.Function):  # one output has no gradient
    @staticmethod
    def forward(ctx, x):
        signs = (x > 0.123).to(x.dtype)
        ctx.mark_non_differentiable(signs)
        return x * 3, signs
    @staticmethod
    def backward(ctx, g, h):
        note("WithSigns", g, h)
        return g * 3

class Scaled(torch.autograd.Function):  # arguments that are no tensors; a context set up apart
    @staticmethod
    def forward(x, factor, y):
        return x * factor + y
    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.factor = inputs[1]
    @staticmethod
    def backward(ctx, g):
        note("Scaled", ctx.needs_input_grad)
        return g * ctx.factor, None, g

class Once(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * x * x
    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx, g):
        x, = ctx.saved_tensors
        return 3 * x * x * g

class TooMany(torch.autograd.Function):  # a wrong number of gradients
    @staticmethod
    def forward(ctx, x):
        return x + 1
    @staticmethod
    def backward(ctx, g):
        return g, g

class WrongShape(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x + 1
    @staticmethod
    def backward(ctx, g):
        return g.new_ones(7, 5)

class Nothing(torch.autograd.Function):  # no gradient at all
    @staticmethod
    def forward(ctx, x):
        return x + 1
    @staticmethod
    def backward(ctx, g):
        return None

class Failing(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x + 1
    @staticmethod
    def backward(ctx, g):
        raise ValueError("no gradient today")

def given(shape, dtype, seed, low=-2, high=3, grad=False, how=""):  # a tensor of numbers, made the same way everywhere
    import numpy as np
    if how == "permuted":
        shape = shape[::-1]
    size, draw = int(np.prod(shape)), np.random.default_rng(seed)
    dtype = getattr(torch, dtype)
    if dtype.is_complex:
        values = np.round(draw.uniform(low, high, size), 2) + 1j * np.round(draw.uniform(low, high, size), 2)
    elif dtype.is_floating_point:
        values = np.round(draw.uniform(low, high, size), 2)
    else:
        values = draw.integers(low, high, size) % (2 if dtype is torch.bool else 256)
    with torch.inference_mode(how == "inference"):
        x = torch.tensor(values.tolist(), dtype=torch.float64 if dtype.is_floating_point else None)
        x = (x.to(torch.uint8) if dtype in (torch.int8, torch.uint8) else x).to(dtype).reshape(shape)
        if grad and how != "inference":
            x.requires_grad_()
        if how == "permuted":
            x = x.permute(tuple(range(x.ndim))[::-1])
        elif how == "expanded":
            x = x.detach()[:1].expand(x.shape) if x.ndim else x.detach().expand(2)
        elif how == "stepped":
            x = x[..., ::2] if x.ndim else x
        elif how == "view":
            x = x[...]
        elif how == "offset":
            x = x[1:] if x.ndim else x
    return x

def unphased(decomposition, name):  # vectors are fixed up to a factor of size 1, eigenvalues of `eig` up to their order
    parts = decomposition if isinstance(decomposition, tuple) else (decomposition,)
    if any(part.is_meta or not part.numel() for part in parts):
        return decomposition
    values = parts[1] if "svd" in name else parts[0]
    if name in ("linalg_eig", "linalg_eigvals"):
        order = (values.detach().real + 0.37 * values.detach().imag.abs() + 0.1 * values.detach().imag).argsort(-1)
        values = values.gather(-1, order)
    if len(parts) == 1:
        return values
    count = values.shape[-1]
    gaps = (values.unsqueeze(-1) - values.unsqueeze(-2)).abs().detach() + torch.eye(count, dtype=values.real.dtype)
    if not bool((gaps > 1e-2).all()) or ("svd" in name and not bool((values > 1e-2).all())):
        return [values.detach()]  # the vectors of equal values are any basis of a space
    left = parts[0] if "svd" in name else parts[1]
    if name == "linalg_eig":
        left = left.gather(-1, order.unsqueeze(-2).expand(left.shape))
    weights = torch.arange(1., left.shape[-2] + 1, dtype=torch.float64).cos().to(left.dtype)  # of no symmetry
    along = (weights.unsqueeze(-1) * left.detach()).sum(-2, keepdim=True)
    if not bool(along.abs().all()):
        return [values.detach()]
    phase = along / along.abs()
    if "svd" not in name:
        return [values, left * phase.conj()]
    right = parts[2].mH if name == "linalg_svd" else parts[2]
    # vectors beyond the values span what the others leave
    rest = [part[..., count:] @ part[..., count:].mH for part in (left.detach(), right.detach())]
    phase = phase[..., :count]
    return [left[..., :count] * phase.conj(), values, right[..., :count] * phase.conj(), *rest]

def differentiated(result, inputs, twice):  # the gradients of a result, and theirs
    results = [r for r in (result if isinstance(result, (list, tuple)) else [result])
               if isinstance(r, torch.Tensor) and r.requires_grad]
    if not results:
        return None
    grads = torch.autograd.grad([r.abs().sum() if r.is_complex() else (r * 1.5).sum() for r in results], inputs,
                                create_graph=twice, allow_unused=True)
    kept = [g for g in grads if g is not None and g.requires_grad]
    if not twice or not kept:
        return list(grads)
    return list(grads), list(torch.autograd.grad([(g * g.conj()).real.sum() for g in kept], inputs, allow_unused=True))
'''
