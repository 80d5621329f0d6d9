"""Sample objects for the tests: functions that create an object with the library passed, flambeau or PyTorch."""

from __future__ import annotations

from collections import Counter, OrderedDict
from typing import Any

DTYPES = ("bool", "uint8", "int8", "int16", "int32", "int64", "uint16", "uint32", "uint64", "float16", "bfloat16",
          "float32", "float64", "complex64", "complex128")


def _every_dtype(torch: Any) -> Any:
    return {name: torch.tensor([0, 1, 2, 100]).to(getattr(torch, name)) for name in DTYPES}


def _views(torch: Any) -> Any:
    x = torch.arange(24.0).reshape(4, 6)
    return [x, x.t(), x[1:, ::2], x[2], x[1, 3], torch.arange(3.0).expand(2, 3)]


def _training(torch: Any) -> Any:
    torch.manual_seed(3)
    net = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.BatchNorm1d(4), torch.nn.Linear(4, 2))
    optimizer = torch.optim.SGD(net.parameters(), lr=0.5, momentum=0.5)
    scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 2)
    for p in net.parameters():
        p.grad = torch.ones_like(p)  # exact in both libraries
    optimizer.step()
    scheduler.step()
    return {"net": net.state_dict(), "optimizer": optimizer.state_dict(), "scheduler": scheduler.state_dict(),
            "epoch": 7, "stream": torch.get_rng_state()}


def _leaves(torch: Any) -> Any:
    x = torch.ones(2, requires_grad=True)
    tied = torch.nn.Parameter(torch.ones(2))
    frozen = torch.nn.Parameter(torch.tensor([1, 2]), requires_grad=False)
    return [x, x * 2, x.detach(), tied, tied, frozen, torch.nn.Parameter(torch.ones(2))]


def _attributes(torch: Any) -> Any:
    x, p = torch.ones(2), torch.nn.Parameter(torch.zeros(1))
    x.note, p.note = "kept", {"a": 1}
    return [x, p]


SAFE = {
    "a number": lambda torch: torch.tensor(3),
    "every dtype": _every_dtype,
    "views": _views,
    "leaves": _leaves,
    "attributes": _attributes,
    "state dicts": _training,
    "values": lambda torch: [None, True, False, 0, -1, 300, 70000, 1 << 40, -(1 << 80), 1.5, float("inf"), 2j, "text",
                             "ü", "x" * 300, b"bytes", bytearray(b"array"), (), (1,), (1, 2), (1, 2, 3), (1, 2, 3, 4),
                             {1, 2}, {"a": {}}, OrderedDict(a=1), Counter("aab"), []],
    "torch's values": lambda torch: [torch.float32, torch.bfloat16, torch.bool, torch.device("cpu"),
                                     torch.device("cuda", 1), torch.Size([1, 2]), torch.strided, torch.empty(0)],
    "empty views": lambda torch: [torch.ones(3, 2)[:0], torch.zeros(0, 3)[:, 1:]],
    "a storage": lambda torch: torch.arange(3).untyped_storage(),
    "the same twice": lambda torch: (lambda x: [x, x, (x,)])(torch.ones(1)),
}
UNSAFE = {
    "a module": lambda torch: torch.nn.Sequential(torch.nn.Linear(2, 2), torch.nn.ReLU(), torch.nn.LayerNorm(2)),
    "recurrent": lambda torch: [torch.nn.LSTM(2, 3, 2, bidirectional=True, proj_size=1), torch.nn.GRU(2, 3),
                                torch.nn.RNN(2, 3), torch.nn.LSTMCell(2, 2)],
    "moved classes": lambda torch: [torch.nn.MultiheadAttention(4, 2), torch.nn.ParameterList([torch.ones(1)]),
                                    torch.nn.ParameterDict({"a": torch.ones(1)}), torch.nn.ModuleDict()],
    "an optimizer": lambda torch: torch.optim.SGD([torch.nn.Parameter(torch.ones(1))], lr=0.5),
    "functions": lambda torch: [torch.nn.functional.relu, torch.nn.functional.gelu, torch.sin, torch.nn.init.zeros_],
    "classes": lambda torch: [torch.nn.Linear, torch.Tensor, torch.nn.Parameter, torch.optim.Adam, torch.FloatTensor,
                              torch.Generator],
    "a generator": lambda torch: torch.Generator().manual_seed(5),
    "named results": lambda torch: [torch.max(torch.ones(2, 2), 0), torch.linalg.slogdet(torch.eye(2)),
                                    torch.sort(torch.tensor([2, 1]))],
}


def _typename(x: Any) -> str:
    return type(x).__name__


def plain(x: Any, library: Any) -> Any:
    """An object as plain values: what two libraries' objects must have in common."""
    if isinstance(x, library.Tensor):
        values = x.detach()
        values = values.float() if values.dtype is library.bfloat16 else values
        extra = {k: v for k, v in x.__dict__.items() if k == "note"}
        return (_typename(x), str(x.dtype).rpartition(".")[2], tuple(x.shape), x.stride() if x.numel() else None,
                x.storage_offset() if x.numel() else None, x.untyped_storage().nbytes() if x.numel() else None,
                x.requires_grad, x.is_leaf, values.tolist(), extra)
    if isinstance(x, library.nn.Module):
        return _typename(x), repr(x), plain(x.state_dict(), library), x.training
    if isinstance(x, library.optim.Optimizer):
        return _typename(x), plain(x.state_dict(), library)
    if isinstance(x, library.Generator):
        return x.initial_seed(), x.get_state().tolist(), x.device.type
    if isinstance(x, type) or (callable(x) and hasattr(x, "__name__")):
        return x.__name__
    if isinstance(x, dict):
        return _typename(x), [(k, plain(v, library)) for k, v in x.items()], getattr(x, "_metadata", None)
    if isinstance(x, (list, tuple)):
        return _typename(x), [plain(v, library) for v in x]
    if hasattr(x, "nbytes"):
        return x.nbytes(), x.tolist()
    return str(x).replace("flambeau.", "torch."), _typename(x)
