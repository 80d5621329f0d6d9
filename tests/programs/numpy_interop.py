"""To NumPy and back: shared memory, dtypes, scalars, mixed arithmetic."""
import numpy as np
import torch

a = np.arange(6, dtype=np.float32).reshape(2, 3)
t = torch.from_numpy(a)
t[0, 0] = 50
a[1, 2] = -1
print(a, t, t.dtype, t.numpy() is a, np.shares_memory(t.numpy(), a))
b = torch.ones(3)
n = b.numpy()
b.add_(1)
print(n, type(n), n.dtype, np.asarray(b), np.array(b).sum(), torch.tensor(a).equal(t))
c = torch.tensor(n)
n[0] = 9
print(b, c, torch.as_tensor(n)[0], torch.asarray(n).data_ptr() == b.data_ptr())
for dt in (np.uint8, np.int8, np.int16, np.int32, np.int64, np.float16, np.float32, np.float64, np.complex64, np.bool_, np.uint16):
    print(np.dtype(dt), torch.from_numpy(np.zeros(1, dt)).dtype, torch.zeros(1).to(torch.from_numpy(np.zeros(1, dt)).dtype).numpy().dtype)
print(np.sin(torch.tensor([0., 1.])), np.add(torch.ones(2), 1), np.mean(torch.arange(4.).numpy()), np.float64(2) * torch.ones(2), torch.ones(2) * np.float64(2), torch.ones(2) + np.ones(2, np.float32))
print(torch.tensor(np.float64(1.5)), torch.tensor(np.array(3)), torch.tensor([np.float32(1), np.float32(2)]), torch.from_numpy(np.arange(4)[::2]).stride())
print(torch.arange(4).reshape(2, 2).T.numpy(), torch.ones(2, requires_grad=True).detach().numpy(), torch.tensor(5).numpy(), torch.tensor([1 + 2j]).numpy())
print(torch.tensor([True, False]).numpy().astype(int), torch.tensor([[1, 2], [3, 4]]).tolist(), torch.tensor(2.5).item(), torch.tensor(7).tolist(), type(torch.tensor(True).item()))
x = np.linspace(0, 1, 3)
print(torch.from_numpy(x).float(), torch.tensor(x, dtype=torch.float32), torch.Tensor(x), torch.FloatTensor(x.astype(np.float32)))
print(a @ t.numpy().T, (t @ torch.from_numpy(a).T).shape, np.allclose(a, t), np.stack([torch.ones(2), torch.zeros(2)]), float(np.max(t.numpy())))
print(t.__array__().dtype, np.array(t, dtype=np.int64), len(np.array([torch.tensor(1), torch.tensor(2)])), [float(v) for v in t[1]], range(10)[torch.tensor(3)])
print(torch.frombuffer(bytearray(b"\x01\x02\x03\x04"), dtype=torch.uint8), np.from_dlpack(torch.arange(3)), torch.from_dlpack(np.arange(2)))
print(isinstance(np.float32(1) + torch.tensor(1), torch.Tensor), torch.equal(torch.tensor([1, 2]), torch.from_numpy(np.array([1, 2]))))


def attempt(f):
    try:
        print(f())
    except Exception as e:
        print(type(e).__name__, "|", e)


attempt(lambda: np.ones(2) * torch.ones(2))
attempt(lambda: divmod(torch.tensor(7), 3))
attempt(lambda: torch.from_numpy([1, 2]))
attempt(lambda: torch.from_numpy(np.array(["a"])))
attempt(lambda: torch.from_numpy(np.array([None])))
attempt(lambda: torch.from_numpy(np.arange(4)[::-1]))
attempt(lambda: torch.ones(2, dtype=torch.bfloat16).numpy())
attempt(lambda: torch.ones(2, requires_grad=True).numpy())
attempt(lambda: np.array(torch.ones(2, requires_grad=True)))
attempt(lambda: torch.from_numpy(np.zeros(1, np.dtype("datetime64[s]"))))
attempt(lambda: torch.tensor(np.array(["x"])))
attempt(lambda: torch.ones(2).numpy(force=True))
attempt(lambda: np.ones(3) @ torch.ones(3, dtype=torch.float64))
