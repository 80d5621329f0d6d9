"""What a program may do first with a CUDA device: each use in a forked process that has not looked for devices yet.

`python -m tests.cuda.first_uses` prints the uses whose result differs from that of the same use once the device is
known: in its type, device, dtype, strides, flag or elements (the device's generator has the same seed).
"""

from __future__ import annotations

import importlib
import io
import os
import pickle
import sys
import traceback
from collections.abc import Callable
from typing import Any

import numpy as np

import flambeau as torch
from flambeau import devices
from flambeau._tensor.overriding import entry_points
from flambeau.backends import cuda_devices
from flambeau.backends.cuda_devices.fake import FakeRuntime

_SAVED = io.BytesIO()
torch.save({"weight": torch.arange(3.0)}, _SAVED)


def _with_context() -> Any:
    with torch.device("cuda"):
        return [torch.randn(3), torch.ones(2), torch.nn.Linear(2, 2).weight]


def _default_device() -> Any:
    torch.set_default_device("cuda")
    return [torch.randn(3), torch.tensor([1, 2]), torch.get_default_device()]


def _default_tensor_type() -> Any:
    torch.set_default_tensor_type(torch.cuda.FloatTensor)
    return torch.randn(3)


def _seeded() -> Any:
    torch.cuda.manual_seed(5)
    return torch.rand(3, device="cuda"), torch.cuda.initial_seed()


def _generator() -> Any:
    g = torch.Generator(device="cuda")
    g.manual_seed(3)
    return torch.randn(3, generator=g, device="cuda"), g.device


def _forked() -> Any:
    with torch.random.fork_rng():
        first = torch.rand(2, device="cuda")
    return first, torch.rand(2, device="cuda")


def _trained() -> Any:
    model = torch.nn.Linear(2, 1).to("cuda")
    torch.nn.init.ones_(model.weight)
    model(torch.ones(3, 2, device="cuda")).sum().backward()
    return model.weight.grad


def _autocast() -> Any:
    with torch.autocast("cuda"):
        return torch.ones(2, 2, device="cuda") @ torch.ones(2, 2, device="cuda")


def _data_ptr() -> Any:
    x = torch.ones(4)
    return x.cuda().data_ptr() != x.data_ptr()


def _x() -> Any:
    return torch.arange(6.0).reshape(2, 3).t()


USES: dict[str, Callable[[], Any]] = {
    "rand": lambda: torch.rand(3, 4, device="cuda"),
    "rand of an index": lambda: torch.rand(3, device=0),
    "rand of a device": lambda: torch.rand(3, device=torch.device("cuda", 0), requires_grad=True),
    "rand of a dtype": lambda: torch.rand(3, dtype=torch.float64, device="cuda"),
    "randn": lambda: torch.randn(64, 64, device="cuda", requires_grad=True),
    "randn of the second device": lambda: torch.randn(3, device="cuda:1"),
    "randn of bfloat16": lambda: torch.randn(3, device="cuda", dtype=torch.bfloat16),
    "randint": lambda: torch.randint(0, 10, (3,), device="cuda"),
    "randperm": lambda: torch.randperm(9, device="cuda"),
    "normal": lambda: torch.normal(1.0, 2.0, (3,), device="cuda"),
    "rand_like": lambda: torch.rand_like(_x(), device="cuda"),
    "randn_like": lambda: torch.randn_like(_x(), device="cuda"),
    "randint_like": lambda: torch.randint_like(_x(), 9, device="cuda"),
    "zeros": lambda: torch.zeros(3, device="cuda"),
    "ones": lambda: torch.ones(3, device="cuda", requires_grad=True),
    "full": lambda: torch.full((2,), 3, device="cuda"),
    "empty": lambda: torch.empty(2, device="cuda").fill_(1),
    "empty_strided": lambda: torch.empty_strided((2, 3), (1, 2), device="cuda").fill_(1),
    "empty_permuted": lambda: torch.empty_permuted((2, 3), (1, 0), device="cuda").fill_(1),
    "zeros_like": lambda: torch.zeros_like(_x(), device="cuda"),
    "ones_like": lambda: torch.ones_like(_x(), device="cuda"),
    "full_like": lambda: torch.full_like(_x(), 2, device="cuda"),
    "empty_like": lambda: torch.empty_like(_x(), device="cuda").fill_(1),
    "new_full": lambda: _x().new_full((2,), 3, device="cuda"),
    "new_tensor": lambda: _x().new_tensor([2], device="cuda"),
    "new_zeros": lambda: _x().new_zeros(2, device="cuda"),
    "new_ones": lambda: _x().new_ones(2, device="cuda"),
    "new_empty": lambda: _x().new_empty(2, device="cuda").fill_(1),
    "new_empty_strided": lambda: _x().new_empty_strided((2,), (2,), device="cuda").fill_(1),
    "arange": lambda: torch.arange(5, device="cuda"),
    "range": lambda: torch.range(0, 4, device="cuda"),
    "linspace": lambda: torch.linspace(0, 1, 5, device="cuda"),
    "logspace": lambda: torch.logspace(0, 1, 5, device="cuda"),
    "eye": lambda: torch.eye(3, device="cuda"),
    "tril_indices": lambda: torch.tril_indices(3, 3, device="cuda"),
    "triu_indices": lambda: torch.triu_indices(3, 3, device="cuda"),
    **{f"{name}_window": lambda name=name: getattr(torch, f"{name}_window")(4, device="cuda")
       for name in ("bartlett", "blackman", "hamming", "hann", "kaiser")},
    "fftfreq": lambda: torch.fft.fftfreq(4, device="cuda"),
    "rfftfreq": lambda: torch.fft.rfftfreq(4, device="cuda"),
    "signal window": lambda: torch.signal.windows.cosine(4, device="cuda"),
    "tensor": lambda: torch.tensor([1.0, 2.0], device="cuda", requires_grad=True),
    "tensor of a scalar": lambda: torch.tensor(2, device="cuda"),
    "tensor of an array": lambda: torch.tensor(np.ones(2), device="cuda"),
    "as_tensor": lambda: torch.as_tensor([1, 2], device="cuda"),
    "as_tensor of an array": lambda: torch.as_tensor(np.ones(2), device="cuda"),
    "as_tensor of a tensor": lambda: torch.as_tensor(_x(), device="cuda"),
    "asarray": lambda: torch.asarray([1, 2], device="cuda"),
    "asarray of a tensor": lambda: torch.asarray(_x(), device="cuda"),
    "scalar_tensor": lambda: torch.scalar_tensor(3.0, device="cuda"),
    "from_numpy": lambda: torch.from_numpy(np.arange(3)).cuda(),
    "cuda": lambda: _x().cuda(),
    "cuda of an index": lambda: _x().cuda(1),
    "cuda, data_ptr": _data_ptr,
    "to": lambda: _x().to("cuda"),
    "to an index": lambda: _x().to(0),
    "to a dtype": lambda: _x().to("cuda", torch.float16),
    "to, without waiting": lambda: _x().to("cuda", non_blocking=True),
    "to, with a gradient": lambda: torch.ones(2, requires_grad=True).to("cuda"),
    "type": lambda: _x().type("torch.cuda.FloatTensor"),
    "type of a class": lambda: _x().type(torch.cuda.FloatTensor),
    "FloatTensor": lambda: torch.cuda.FloatTensor([1, 2]),
    "storage": lambda: _x().untyped_storage().cuda().device,
    "Module.cuda": lambda: torch.nn.Linear(2, 2).cuda().weight.detach().fill_(1),
    "Module.to": lambda: torch.nn.Linear(2, 2).to("cuda").weight.detach().fill_(1),
    "Module of a device": lambda: list(torch.nn.Linear(2, 2, device="cuda").parameters()),
    "Embedding of a device": lambda: list(torch.nn.Embedding(3, 2, device="cuda").parameters()),
    "Module.to_empty": lambda: next(torch.nn.Linear(2, 2, device="meta").to_empty(device="cuda").parameters()).device,
    "a training step": _trained,
    "with torch.device": _with_context,
    "set_default_device": _default_device,
    "set_default_tensor_type": _default_tensor_type,
    "load": lambda: torch.load(io.BytesIO(_SAVED.getvalue()), map_location="cuda")["weight"],
    "load of a device": lambda: torch.load(io.BytesIO(_SAVED.getvalue()), map_location=torch.device("cuda:1")),
    "Generator": _generator,
    "cuda.manual_seed": _seeded,
    "fork_rng": _forked,
    "get_rng_state": lambda: torch.cuda.get_rng_state(),
    "is_available": lambda: [torch.cuda.is_available(), torch.cuda.device_count()],
    "accelerator.is_available": lambda: [torch.accelerator.is_available(), torch.accelerator.device_count()],
    "accelerator.current_accelerator": lambda: torch.accelerator.current_accelerator(),
    "backends.cuda.is_built": lambda: torch.backends.cuda.is_built(),
    "get_device_module": lambda: torch.get_device_module().__name__.rpartition(".")[2],
    "Stream": lambda: torch.Stream(device="cuda").device,
    "Event": lambda: torch.Event(device="cuda").device,
    "cuda.Stream": lambda: torch.cuda.Stream().device,
    "cuda.Event": lambda: torch.cuda.Event(enable_timing=True).query(),
    "autocast": _autocast,
    "is_autocast_available": lambda: torch.amp.is_autocast_available("cuda"),
    "GradScaler": lambda: torch.amp.GradScaler("cuda").scale(torch.ones(1, device="cuda")),
    "pin_memory": lambda: _x().pin_memory().is_pinned(),
    "a pinned tensor": lambda: torch.ones(2, pin_memory=True).is_pinned(),
    "is_pinned": lambda: _x().is_pinned(),
    "graph": lambda: type(torch.cuda.CUDAGraph()).__name__,
    "mem_get_info": lambda: torch.cuda.mem_get_info()[1],
    "device properties": lambda: torch.cuda.get_device_properties(0).name,
    "synchronize": lambda: torch.cuda.synchronize(),
    "ones_like of a default": lambda: torch.ones_like(torch.empty(2, device="cuda")),
    "a parameter": lambda: torch.nn.Parameter(torch.randn(2, device="cuda")),
    "compile": lambda: torch.compile(lambda x: x.sin() + 1)(torch.ones(3, device="cuda")),
    "vmap": lambda: torch.vmap(lambda x: x * 2)(torch.ones(3, device="cuda")),
    "grad": lambda: torch.func.grad(lambda x: (x * x).sum())(torch.ones(3, device="cuda")),
}


def _described(value: Any) -> Any:
    """What can be compared of a result."""
    if isinstance(value, dict):
        return {name: _described(x) for name, x in value.items()}
    if isinstance(value, (list, tuple)):
        return [_described(x) for x in value]
    if isinstance(value, torch.Tensor):
        x = value.detach().cpu()
        return (type(value).__name__, str(value.device), str(value.dtype), tuple(value.shape), value.stride(),
                value.requires_grad, x.view(torch.uint8 if x.element_size() == 1 or not x.is_contiguous() else x.dtype)
                .contiguous().tolist() if x.is_contiguous() else x.tolist())
    return repr(value)


def _attempt(use: Callable[[], Any]) -> Any:
    torch.manual_seed(0)
    try:
        return _described(use())
    except Exception as error:  # what is raised is compared, too
        return f"{type(error).__name__}: {error}", traceback.format_exc()


def difference(name: str) -> str | None:
    """How a use differs from the same use once devices are known; None if it does not. Run it in a new process."""
    cuda_devices._detect = lambda: FakeRuntime(2)  # type: ignore[assignment]
    ambient = torch.get_default_dtype()
    first = _attempt(USES[name])
    assert torch.get_default_dtype() is ambient
    torch.set_default_device(None)
    second = _attempt(USES[name])
    if first == second and not (isinstance(first, tuple) and str(first[0]).endswith("Error")):
        return None
    return f"{first}\nbut then {second}" if first != second else str(first)


def main() -> None:
    """Try all uses, those that are named, or a part of all: `2/5`."""
    names = sys.argv[1:] or list(USES)
    if "/" in names[0]:
        part, parts = map(int, names[0].split("/"))
        names = list(USES)[part::parts]
    resolver = devices.cuda_resolver[0]
    importlib.import_module("flambeau._tensor.accelerated")  # so that not each process imports it
    list(entry_points.named_entries())
    devices.cuda_resolver[0] = resolver
    for name in names:
        reader, writer = os.pipe()
        child = os.fork()
        if not child:
            found: Any = "no answer"
            try:
                found = difference(name)
            except BaseException:
                found = traceback.format_exc()
            os.write(writer, pickle.dumps(found and found[:2000]))
            os._exit(0)
        os.close(writer)
        with os.fdopen(reader, "rb") as pipe:
            data = pipe.read()
        os.waitpid(child, 0)
        found = pickle.loads(data) if data else "no answer"
        if found is not None:
            print(f"--- {name}: {found}")
    print(len(names), "uses")


if __name__ == "__main__":
    main()
