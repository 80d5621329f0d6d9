"""Conjugation is a view, saved tensors can be packed: what PyTorch does lazily."""
import torch

z = torch.tensor([1 + 2j, -0.5j])
c = z.conj()
print(c.is_conj(), c.data_ptr() == z.data_ptr(), c.resolve_conj().is_conj(), c.conj().is_conj(), (c * 1).is_conj())
z[0] = 5j
print(c, c.imag.is_neg(), c.T.is_conj())
try:
    print(c.numpy())
except Exception as e:
    print(type(e).__name__, "|", e)
