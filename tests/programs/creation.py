"""The ways of making a tensor, and what dtype each gives."""
import math

import numpy as np
import torch

print(torch.tensor([1, 2]).dtype, torch.tensor([1.0]).dtype, torch.tensor([True]).dtype, torch.tensor([1j]).dtype)
print(torch.tensor([1, 2.5, True]), torch.tensor(((1, 2), (3, 4))), torch.tensor([[1, 2], [3, 4]], dtype=torch.half))
print(torch.tensor(np.arange(3)), torch.tensor(np.float32(2)), torch.tensor([np.int64(1), 2]), torch.tensor(range(3)))
print(torch.tensor([torch.tensor(1), torch.tensor(2)]))
print(torch.zeros(2, 3), torch.zeros((2, 3), dtype=torch.int), torch.ones(3), torch.full((2,), 7), torch.full((2,), 7.))
print(torch.eye(3), torch.eye(2, 3, dtype=torch.long))
print(torch.arange(5), torch.arange(1, 4), torch.arange(0, 1, 0.25), torch.arange(5, 0, -2), torch.arange(0.5, 3))
print(torch.linspace(0, 1, 5), torch.linspace(-1, 1, 3, dtype=torch.double), torch.logspace(0, 3, 4))
x = torch.ones(2, 2, dtype=torch.float64)
print(torch.zeros_like(x), torch.ones_like(x, dtype=torch.int8), torch.full_like(x, 9), torch.empty_like(x).shape)
print(x.new_zeros(2), x.new_ones((1, 2)), x.new_full((2,), 3.), x.new_tensor([1, 2]), x.new_empty(3, 0))
print(torch.empty(2, 3).shape, torch.rand(2).shape, torch.randint(3, (2, 2)).dtype)
print(torch.as_tensor([1, 2]), torch.from_numpy(np.array([1.5, 2.5])), torch.as_tensor(np.float16([1, 2])))
print(torch.FloatTensor([1, 2]), torch.LongTensor([3]), torch.Tensor([1, 2]), torch.Tensor(2, 0), torch.DoubleTensor([1]))
print(torch.Tensor().shape, torch.IntTensor([[1], [2]]).type(), torch.ones(1).type(), torch.BoolTensor([1, 0]))
print(torch.stack([torch.arange(3), torch.arange(3, 6)]), torch.cat([torch.zeros(1, 2), torch.ones(2, 2)]))
print(torch.meshgrid(torch.arange(2), torch.arange(3), indexing="ij"))
print(torch.tril(torch.ones(3, 3)), torch.triu(torch.ones(3, 3), diagonal=1), torch.diag(torch.tensor([1, 2])))
print(torch.tril_indices(3, 3), torch.combinations(torch.tensor([1, 2, 3])), torch.cartesian_prod(torch.tensor([1, 2]), torch.tensor([3, 4])))
print(torch.block_diag(torch.eye(2), torch.full((1, 1), 5.)))
print(torch.complex(torch.tensor([1.0]), torch.tensor([2.0])), torch.polar(torch.tensor(1.0), torch.tensor(0.0)))
print(torch.scalar_tensor(2), torch.tensor(math.pi, dtype=torch.float64), torch.pi == math.pi, torch.e, torch.inf, torch.nan)
print(torch.one_hot if hasattr(torch, "one_hot") else "no torch.one_hot")
print(torch.nn.functional.one_hot(torch.tensor([0, 2, 1]), num_classes=4))
torch.set_default_dtype(torch.float64)
print(torch.zeros(1).dtype, torch.tensor([1.0]), torch.tensor(1j).dtype, torch.arange(2.).dtype)
torch.set_default_dtype(torch.float32)
print(torch.get_default_dtype())
print(torch.is_tensor(x), torch.is_tensor([1]), isinstance(x, torch.Tensor), torch.numel(x), x.nelement(), x.ndim, x.dim())
print(x.is_floating_point(), torch.is_floating_point(torch.tensor(1)), torch.is_complex(torch.tensor(1j)), x.itemsize, x.element_size(), x.nbytes)
print(x.device, x.layout, x.is_cuda, x.is_leaf, x.requires_grad, x.grad, x.grad_fn, x.is_contiguous(), x.stride(), x.storage_offset())
print(torch.finfo(torch.float32).eps, torch.finfo(torch.float16).max, torch.iinfo(torch.int8).min, torch.finfo(torch.bfloat16))
for a in (lambda: torch.tensor([[1, 2], [3]]), lambda: torch.tensor("abc"), lambda: torch.tensor([None]),
          lambda: torch.zeros(-1), lambda: torch.arange(0, 1, -1), lambda: torch.zeros("2"),
          lambda: torch.ones(2).new_tensor("x"), lambda: torch.tensor(300, dtype=torch.uint8), lambda: torch.tensor(2**70),
          lambda: torch.eye(-1), lambda: torch.tensor({"a": 1})):
    try:
        print(a())
    except Exception as e:
        print(type(e).__name__, "|", e)
