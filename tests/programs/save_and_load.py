"""torch.save and torch.load, through a buffer and a file."""
import io
import os
import tempfile

import torch
from torch import nn

torch.manual_seed(6)
net = nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4), nn.Linear(4, 2))
opt = torch.optim.Adam(net.parameters())
net(torch.randn(5, 3)).sum().backward()
opt.step()
buffer = io.BytesIO()
torch.save({"model": net.state_dict(), "optimizer": opt.state_dict(), "epoch": 7}, buffer)
buffer.seek(0)
checkpoint = torch.load(buffer)
print(checkpoint["epoch"], list(checkpoint["model"])[:2], checkpoint["model"]["1.running_mean"].shape, type(checkpoint["model"]))
net.load_state_dict(checkpoint["model"])
opt.load_state_dict(checkpoint["optimizer"])
with tempfile.TemporaryDirectory() as folder:
    path = os.path.join(folder, "tensors.pt")
    base = torch.arange(6.)
    torch.save([base, base[2:], torch.tensor([True]), torch.ones(2, dtype=torch.bfloat16), nn.Parameter(torch.ones(1))], path)
    loaded = torch.load(path, weights_only=True)
    print(loaded, loaded[0].data_ptr() + 8 == loaded[1].data_ptr())
    torch.save(net, path)
    try:
        torch.load(path)
    except Exception as e:
        print(type(e).__name__)
    print(torch.load(path, weights_only=False))
for f in (lambda: torch.load(io.BytesIO(b"")), lambda: torch.load("/no/such/file.pt"), lambda: torch.save(1)):
    try:
        print(f())
    except Exception as e:
        print(type(e).__name__, "|", e)
