"""Views share storage; versions catch what backward can no longer use."""
import torch

x = torch.arange(6.)
v = x.view(2, 3)
v[0, 0] = 100
x[5] = -1
print(x, v, v.data_ptr() == x.data_ptr(), v._base is x, x._version, v._version)
print(x.reshape(3, 2).t().is_contiguous(), x.view(3, 2).t().contiguous().view(-1), v.t().stride(), v[:, 1].storage_offset())
c = x.clone()
c.zero_()
d = x.detach()
d[0] = 7
print(x[0], c[0], d.requires_grad, x.is_set_to(x), x.untyped_storage().nbytes())
print(x.add_(1), x.mul_(2).sub_(1).div_(2), x.clamp_(0, 3), x.neg_(), x.abs_(), x.sqrt_(), x.fill_(2), x.zero_())
n = torch.zeros(3)
print(n.copy_(torch.tensor([1, 2, 3])), n.t_() is n, n.unsqueeze_(0).shape, n.squeeze_().shape, n.resize_(2, 1).shape)
print(torch.add(torch.ones(2), 1, out=torch.empty(2)), torch.ones(2).exponential_().shape)

leaf = torch.ones(3, requires_grad=True)
y = leaf * 2
z = y[:2]
z.mul_(10)
print(y, z, y.grad_fn, z.grad_fn, y._version)
y.sum().backward()
print(leaf.grad)
leaf.grad.zero_()
p = leaf.clone()
p[0] = 0
p[1:] += leaf[:2]
p.pow(2).sum().backward()
print(p, leaf.grad)

with torch.no_grad():
    leaf.mul_(3)
    leaf[0] = -1
    leaf -= 0.5
print(leaf, leaf.is_leaf, leaf._version)
leaf.data.fill_(1)
print(leaf, leaf._version)


def attempt(f):
    try:
        print(f())
    except Exception as e:
        print(type(e).__name__, "|", e)


def saved_output():
    w = torch.ones(2, requires_grad=True)
    e = w.exp()
    e += 1
    e.sum().backward()


def saved_input():
    w = torch.ones(2, requires_grad=True)
    a = w * 1
    b = a * a
    a.add_(1)
    b.sum().backward()


def through_view():
    w = torch.ones(4, 4, requires_grad=True)
    h = w.tanh()
    h[0].zero_()
    h.sum().backward()


def leaf_view():
    w = torch.ones(4, requires_grad=True)
    w[0] = 5


def leaf_itself():
    w = torch.ones(4, requires_grad=True)
    w += 1


def unbound():
    w = torch.ones(2, 2, requires_grad=True).clone()
    a, b = w.unbind()
    a.mul_(2)


def no_grad_view():
    w = torch.ones(2, 2, requires_grad=True).clone()
    with torch.no_grad():
        a = w[0]
    a.mul_(2)


def wrong_dtype():
    torch.arange(3).add_(1.5)


def float_into_int():
    t = torch.arange(3)
    t /= 2


def expanded():
    torch.zeros(1).expand(3).add_(torch.ones(3))


def inference():
    with torch.inference_mode():
        t = torch.ones(2)
    t.add_(1)
    w = torch.ones(2, requires_grad=True)
    return w * t


def detach_view():
    w = torch.ones(2, 2, requires_grad=True).clone()
    a, b = w.split(1)
    a.detach_()


def out_requires():
    torch.add(torch.ones(2, requires_grad=True), 1, out=torch.empty(2))


def split_inplace():
    w = torch.ones(4, requires_grad=True).clone()
    a, b = w.chunk(2)
    a.zero_()
    return w


for f in (saved_output, saved_input, through_view, leaf_view, leaf_itself, unbound, no_grad_view, wrong_dtype, float_into_int,
          expanded, inference, detach_view, out_requires, split_inplace):
    print(f.__name__)
    attempt(f)
