"""What classes, and objects that do not print themselves, are called."""
import torch
from torch import nn

x = torch.ones(2, requires_grad=True)
opt = torch.optim.SGD([x], lr=0.1)
print(type(x), x.__class__, torch.Tensor, type(nn.Parameter(x)), type(x.shape), type(torch.float32), type(torch.device("cpu")))
print(nn.Linear, type(nn.Linear(1, 1)), nn.Module, nn.Sequential, torch.optim.Adam, torch.autograd.Function, type(torch.no_grad()))
print(torch.Generator, torch.FloatTensor, type(opt), type(x.max(0)), torch.Tensor.__module__, nn.Linear.__module__)
print(torch.optim.lr_scheduler.StepLR(opt, 1), torch.optim.lr_scheduler.CosineAnnealingLR)
print(isinstance(x, torch.FloatTensor), isinstance(x, torch.Tensor), x.type(), type((x * 2).grad_fn))
