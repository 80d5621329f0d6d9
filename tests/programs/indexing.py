"""Reading and writing through every kind of index."""
import torch

x = torch.arange(24).reshape(4, 6)
print(x[0], x[-1, -1], x[1:3], x[:, 2], x[..., 0], x[::2, ::3], x[None].shape, x[:, None, :].shape)
print(x[[0, 2]], x[torch.tensor([3, 1])], x[[0, 1], [2, 3]], x[torch.tensor([[0], [1]]), torch.tensor([0, 5])])
print(x[x % 5 == 0], x[x[:, 0] > 6], x[torch.tensor([True, False, True, False])], x[:, [1, -1]], x[1, [0, 2]])
print(x[2, ...], x[..., None, 1].shape, x[True].shape, x[False].shape, x[0, 0].item(), int(x[1, 1]), float(x[0, 3]))
y = torch.arange(60).reshape(3, 4, 5)
print(y[0, :, [1, 2]].shape, y[[0, 1], :, [1, 2]].shape, y[:, [0, 1], [1, 2]].shape, y[[[0, 1], [1, 2]]].shape)
print(y[..., -1], y[1:, 1:, 1:].shape, y[:, :, None, 0].shape, y[:0].shape, y[2:1].shape, y[:, 10:].shape)
print(x.select(0, 1), x.narrow(1, 2, 2), x.index_select(1, torch.tensor([0, 5])), x.take(torch.tensor([0, 7, -1])))
print(torch.masked_select(x, x > 20), torch.nonzero(x > 20), torch.where(x > 20), (x > 20).nonzero(as_tuple=True))

z = torch.zeros(3, 4)
z[0] = 1
z[:, 1] = torch.tensor([5., 6., 7.])
z[1, 2:] = 9
z[-1, -1] = -3.5
print(z)
z[z > 5] = 0
z[[0, 2], [0, 0]] = torch.tensor([100., 200.])
z[..., 3] += 1
z[1:, :2] *= 2
print(z)
z[torch.tensor([0, 1]), 2] = torch.tensor(8.)
z[:] = z - 1
z[None, 0, 0] = 42
print(z)
z[2] = torch.arange(4)
z[z == 2] = float("nan")
print(z, z.isnan().sum())
i = torch.zeros(5, dtype=torch.long)
i[2] = 7.9
i[torch.tensor([0, 0, 1])] = torch.tensor([1, 2, 3])
print(i)
i.index_put_((torch.tensor([0, 0, 4]),), torch.tensor([10, 10, 10]), accumulate=True)
print(i, i.index_add(0, torch.tensor([1, 1]), torch.tensor([5, 5])), i.index_fill(0, torch.tensor([2]), -1))
b = torch.zeros(4, dtype=torch.bool)
b[1::2] = True
print(b, ~b, b.any(), b.all(), b.sum())
m = torch.zeros(3, 3)
m.fill_diagonal_(1)
m[torch.triu_indices(3, 3, 1).unbind()] = 5
print(m, m.diagonal(), m.diagonal(1))
m.masked_fill_(m == 5, -1)
m.masked_scatter_(m == 0, torch.arange(10.))
print(m, list(m), len(m), [r.sum().item() for r in m], 5 in m, -1 in m)
for row in m:
    row[0] = 0
print(m, m.tolist(), m[0].tolist())
a, c = torch.tensor([1, 2])
print(a, c, [*torch.eye(2)], max(torch.tensor([3, 9, 2])), sorted(torch.tensor([3, 1, 2])), sum(torch.tensor([1, 2])))
ten = [10, 20, 30]
print(ten[torch.tensor(1)], range(5)[torch.tensor(2)], "ab" * torch.tensor(2))


def attempt(f):
    try:
        print(f())
    except Exception as e:
        print(type(e).__name__, "|", e)


def assign(key, value):
    t = torch.zeros(3, 4)
    t[key] = value
    return t


attempt(lambda: x[4])
attempt(lambda: x[0, 6])
attempt(lambda: x[0, 0, 0])
attempt(lambda: x[-5])
attempt(lambda: x[:, [7]])
attempt(lambda: x[[0, 1, 2], [0, 1]])
attempt(lambda: x[torch.tensor([True, False])])
attempt(lambda: x[torch.tensor([0.5])])
attempt(lambda: x["a"])
attempt(lambda: x[1.5])
attempt(lambda: x[::-1])
attempt(lambda: x[..., ...].shape)
attempt(lambda: torch.tensor(3)[0])
attempt(lambda: assign(0, torch.zeros(3)))
attempt(lambda: assign((slice(None), 0), torch.zeros(4)))
attempt(lambda: assign(5, 1))
attempt(lambda: assign([0, 7], 1))
attempt(lambda: assign(torch.zeros(3, 4, dtype=torch.bool).fill_(True), torch.zeros(5)))
attempt(lambda: assign(0, "a"))
attempt(lambda: x.index_select(0, torch.tensor([9])))
attempt(lambda: x.index_select(2, torch.tensor([0])))
attempt(lambda: len(torch.tensor(1)))
attempt(lambda: list(torch.tensor(1)))
attempt(lambda: bool(torch.tensor([1, 2])))
attempt(lambda: bool(torch.tensor([])))
attempt(lambda: torch.tensor([1, 2]).item())
attempt(lambda: int(torch.tensor([1.5, 2])))
attempt(lambda: [1, 2][torch.tensor(1.5)])
