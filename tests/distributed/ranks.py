"""Run one program in several processes under flambeau or PyTorch, and compare what the ranks report."""

from __future__ import annotations

import importlib.util
import os
import pickle
import signal
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]

#: modules that constructors and first calls import: seconds in PyTorch
PRELOADED = ("compiler", "distributed.checkpoint.state_dict", "distributed.fsdp", "distributed.optim",
             "distributed.pipelining", "distributed.tensor.parallel", "nn.parallel")


def run(program: str, library: str, size: int, *words: str, timeout: float = 300) -> list[Any]:
    """What `main(torch, rank, size, *words)` of a program in this folder returns in each of `size` processes."""
    with tempfile.TemporaryDirectory() as folder:
        arguments = [program, library, str(size), folder, *words]
        code = (f"import sys; sys.path.insert(0, {str(ROOT)!r}); import tests.distributed.ranks as ranks; "
                f"ranks.fork(*{arguments!r})")
        command = [sys.executable, "-W", "ignore", "-c", code]
        environment = {**os.environ, "OMP_NUM_THREADS": "1", "TORCH_CPP_LOG_LEVEL": "FATAL"}
        process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env=environment, start_new_session=True)
        try:
            _, errors = process.communicate(timeout=timeout)
        finally:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)  # the ranks, too
                process.communicate()
        assert process.returncode == 0, errors[-4000:]
        return [pickle.loads(Path(folder, str(rank)).read_bytes()) for rank in range(size)]


def fork(program: str, library: str, size: str, folder: str, *words: str) -> None:
    """In the subprocess: import the library and what ranks would import one by one, then be all ranks."""
    torch = importlib.import_module(library)
    for name in PRELOADED:
        importlib.import_module(f"{library}.{name}")
    if library == "torch":
        importlib.import_module("torch._dynamo")
    spec = importlib.util.spec_from_file_location("program", Path(__file__).parent / "programs" / f"{program}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    children = []
    for rank in range(int(size)):
        child = os.fork()
        if not child:
            status = 1
            try:
                torch.distributed.init_process_group("gloo", init_method=f"file://{folder}/store", rank=rank,
                                                     world_size=int(size))
                Path(folder, str(rank)).write_bytes(pickle.dumps(module.main(torch, rank, int(size), *words)))
                torch.distributed.barrier()
                torch.distributed.destroy_process_group()
                status = 0
            except BaseException:
                import traceback

                traceback.print_exc()
            finally:
                sys.stderr.flush()
                os._exit(status)
        children.append(child)
    statuses = [os.waitpid(child, 0)[1] for child in children]
    assert not any(statuses), statuses


class Log:
    """Results of calls by name: values, or types and texts of errors."""

    def __init__(self, torch: Any) -> None:
        self.torch, self.entries = torch, {}

    def __call__(self, name: str, call: Any) -> Any:
        try:
            result = call()
        except Exception as error:
            self.entries[name] = (type(error).__name__, str(error).replace(self.torch.__name__ + ".", "torch."))
            return None
        self.entries[name] = self.plain(result)
        return result

    def plain(self, value: Any) -> Any:
        """A value without objects of the library: tensors as dtype, shape and numbers."""
        if isinstance(value, self.torch.Tensor):
            value = value.detach()
            numbers = self.torch.view_as_real(value) if value.is_complex() else value
            return (str(value.dtype).rpartition(".")[2], tuple(value.shape), numbers.double().tolist())
        if isinstance(value, (list, tuple)):
            return [self.plain(each) for each in value]
        if isinstance(value, dict):
            return {key: self.plain(each) for key, each in value.items()}
        return value if isinstance(value, (int, float, str, bytes, bool, type(None))) else type(value).__name__


def differences(program: str, size: int) -> list[str]:
    """Where flambeau's ranks report something else than PyTorch's."""
    ours, theirs = run(program, "flambeau", size), run(program, "torch", size)
    found = []
    for rank in range(size):
        for name in {**theirs[rank], **ours[rank]}:
            a, b = ours[rank].get(name, "missing"), theirs[rank].get(name, "missing")
            if not same(a, b):
                found.append(f"rank {rank} {name}: {a!r}, PyTorch: {b!r}")
    return found


def same(a: Any, b: Any) -> bool:
    """Whether two reports agree; numbers up to the rounding of sums in another order."""
    if isinstance(a, float) and isinstance(b, float):
        return a == b or (a != a and b != b) or abs(a - b) <= 2e-6 * max(1.0, abs(b))
    if isinstance(a, (list, tuple)) and isinstance(b, (list, tuple)):
        return len(a) == len(b) and all(map(same, a, b))
    if isinstance(a, dict) and isinstance(b, dict):
        return a.keys() == b.keys() and all(same(a[key], b[key]) for key in a)
    return type(a) is type(b) and a == b
