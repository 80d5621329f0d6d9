"""Run one program in several processes under flambeau or PyTorch, and compare what the ranks report."""

from __future__ import annotations

import atexit
import functools
import importlib.util
import json
import os
import pickle
import select
import signal
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any, NoReturn

ROOT = Path(__file__).resolve().parents[2]

#: modules that constructors and first calls import: seconds in PyTorch
PRELOADED = ("compiler", "distributed.checkpoint.state_dict", "distributed.fsdp", "distributed.optim",
             "distributed.pipelining", "distributed.tensor.parallel", "export", "nn.parallel", "overrides")


def run(program: str, library: str, size: int, *words: str, timeout: float = 300) -> list[Any]:
    """What `main(torch, rank, size, *words)` of a program in this folder returns in each of `size` processes."""
    with tempfile.TemporaryDirectory() as folder:
        succeeded = fork_server(library).run([program, str(size), folder, *words], timeout)
        assert succeeded, Path(folder, "said").read_text(encoding="utf-8", errors="replace")[-4000:]
        return [pickle.loads(Path(folder, str(rank)).read_bytes()) for rank in range(size)]


_servers: dict[str, ForkServer] = {}


def fork_server(library: str) -> ForkServer:
    """The one of this process."""
    if library not in _servers:
        _servers[library] = ForkServer(library)
    return _servers[library]


@atexit.register
def end_fork_servers() -> None:
    """End them; they hold a few hundred megabytes."""
    while _servers:
        _servers.popitem()[1].end()


class ForkServer:
    """A process that imports a library once, and forks for each program: the imports take up to five seconds.

    A program finds what it finds in a new process: the server runs nothing but imports. It ends with this process, or
    by `end`.
    """

    def __init__(self, library: str) -> None:
        code = (f"import sys; sys.path.insert(0, {str(ROOT)!r}); import tests.distributed.ranks as ranks; "
                f"ranks.serve({library!r})")
        self._process = subprocess.Popen([sys.executable, "-W", "ignore", "-c", code], stdin=subprocess.PIPE,
                                         stdout=subprocess.PIPE, bufsize=0, env=self._environment(),
                                         start_new_session=True)

    def run(self, arguments: list[str], timeout: float) -> bool:
        """Whether the ranks of a program end without an error; what they say is in the file `said` of its folder."""
        self._process.stdin.write(json.dumps([arguments, self._environment()]).encode() + b"\n")
        child = int(self._answer(timeout))
        try:
            return int(self._answer(timeout)) == 0
        except BaseException:
            os.killpg(child, signal.SIGKILL)  # the ranks, too
            self._answer(60)
            raise

    def _answer(self, timeout: float) -> bytes:
        if not select.select([self._process.stdout], [], [], timeout)[0]:
            raise TimeoutError(f"no answer within {timeout} s")
        answer = self._process.stdout.readline()
        if not answer:
            raise RuntimeError(f"the process that forks has ended: status {self._process.wait()}")
        return answer

    @staticmethod
    def _environment() -> dict[str, str]:
        return {**os.environ, "OMP_NUM_THREADS": "1", "TORCH_CPP_LOG_LEVEL": "FATAL"}

    def end(self) -> None:
        """End the process."""
        self._process.stdin.close()
        self._process.wait()
        self._process.stdout.close()


def serve(library: str) -> None:
    """In the server: import the library and what ranks would import one by one, then fork for each line of stdin."""
    torch = importlib.import_module(library)
    for name in PRELOADED:
        importlib.import_module(f"{library}.{name}")
    if library == "torch":
        for name in ("torch._dynamo", "torch.export._trace"):
            importlib.import_module(name)
    for line in sys.stdin:
        arguments, environment = json.loads(line)
        child = os.fork()
        if not child:
            os.setpgid(0, 0)
            os.environ.clear()
            os.environ.update(environment)
            leave(functools.partial(be_ranks, torch, *arguments))
        os.setpgid(child, child)
        print(child, flush=True)
        print(os.waitpid(child, 0)[1], flush=True)


def be_ranks(torch: Any, program: str, size: str, folder: str, *words: str) -> None:
    """In a process that the server forked: fork all ranks."""
    said = os.open(Path(folder, "said"), os.O_WRONLY | os.O_CREAT)
    for stream in (1, 2):
        os.dup2(said, stream)
    spec = importlib.util.spec_from_file_location("program", Path(__file__).parent / "programs" / f"{program}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)

    def be(rank: int) -> None:
        torch.distributed.init_process_group("gloo", init_method=f"file://{folder}/store", rank=rank,
                                             world_size=int(size))
        Path(folder, str(rank)).write_bytes(pickle.dumps(module.main(torch, rank, int(size), *words)))
        torch.distributed.barrier()
        torch.distributed.destroy_process_group()

    children = []
    for rank in range(int(size)):
        child = os.fork()
        if not child:
            leave(functools.partial(be, rank))
        children.append(child)
    statuses = [os.waitpid(child, 0)[1] for child in children]
    assert not any(statuses), statuses


def leave(call: Any) -> NoReturn:
    """End a forked process by a call; its status says whether that raised an error."""
    status = 1
    try:
        call()
        status = 0
    except BaseException:
        import traceback

        traceback.print_exc()
    finally:
        sys.stderr.flush()
        os._exit(status)


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
