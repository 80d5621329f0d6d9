"""What is said when arguments fit no signature."""
import torch
import torch.nn.functional as F

m = torch.ones(2, 3)
for f in (lambda: m.sum(dims=1), lambda: m.max(0, 1, 2), lambda: torch.full((2,)), lambda: torch.linspace(0, 1), lambda: torch.where([True], 1, 2),
          lambda: torch.eq(m, [1.0]), lambda: F.conv2d([1.0], 2), lambda: m.sum("a"), lambda: m.view("a"), lambda: torch.zeros(2, 3, dtype="float"),
          lambda: torch.mean(m, axs=1), lambda: m.transpose(), lambda: m.reshape(), lambda: torch.cat(), lambda: torch.add(m), lambda: torch.randn("3"),
          lambda: F.cross_entropy(torch.tensor(1.0), torch.tensor(0))):
    try:
        print(f())
    except Exception as e:
        print(type(e).__name__, "|", e)
