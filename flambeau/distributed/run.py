"""`torchrun`: starts the processes of a program on a machine, watches them and restarts them.

    flambeau torchrun --standalone --nproc-per-node 4 train.py arguments...
    flambeau torchrun --nnodes 2 --nproc-per-node 4 --rdzv-endpoint host:29400 train.py arguments...

Each process gets its number and those of the others in the environment (RANK, LOCAL_RANK, WORLD_SIZE, MASTER_ADDR,
...), with which `init_process_group` finds them. In the program `import torch` imports flambeau. A process that fails
ends all others; `--max-restarts` starts them again.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import uuid
from collections.abc import Iterator, Sequence
from datetime import timedelta
from pathlib import Path
from typing import IO, Any

from ..c10d.errors import DistNetworkError
from ..c10d.stores import TCPStore
from ..runtime import process_control
from .elastic.multiprocessing.errors import ChildFailedError, ProcessFailure
from .elastic.multiprocessing.signals import SignalException, _terminate_process_handler

__all__ = ["Agent", "get_args_parser", "launch", "main", "parse_args", "run"]

_PACKAGE = __name__.partition(".")[0] if not __name__.startswith("__main__") else __package__.partition(".")[0]
_JOIN_TIMEOUT = timedelta(seconds=900)


def _environment(name: str, default: Any) -> Any:
    """The default of an option: what the variable PET_<NAME> says."""
    return os.environ.get(f"PET_{name}", default)


def get_args_parser() -> argparse.ArgumentParser:
    """The parser of the command line.

    >>> from flambeau.distributed.run import get_args_parser
    >>> get_args_parser().parse_args(["--nproc-per-node", "2", "train.py", "--lr", "1"]).training_script_args
    ['--lr', '1']
    """
    parser = argparse.ArgumentParser(description="Torch Distributed Elastic Training Launcher")

    def option(name: str, default: Any, text: str, kind: Any = str, **more: Any) -> None:
        names = [f"--{name}", f"--{name.replace('-', '_')}"] if "-" in name else [f"--{name}"]
        value = _environment(name.replace("-", "_").upper(), default)
        parser.add_argument(*names, default=kind(value) if isinstance(value, str) else value, type=kind, help=text,
                            **more)

    def flag(*names: str, text: str) -> None:
        name = next(each for each in names if each.startswith("--"))[2:].replace("-", "_")
        parser.add_argument(*names, action="store_true", default=str(_environment(name.upper(), 0)) not in ("0", ""),
                            help=text)

    option("nnodes", "1:1", "Number of nodes, or the range of nodes in form <minimum_nodes>:<maximum_nodes>.")
    option("nproc-per-node", "1", "Number of workers per node; supported values: [auto, cpu, gpu, xpu, int].")
    option("rdzv-backend", "static", "Rendezvous backend.")
    option("rdzv-endpoint", "", "Rendezvous backend endpoint; usually in form <host>:<port>.")
    option("rdzv-id", "none", "User-defined group id.")
    option("rdzv-conf", "", "Additional rendezvous configuration (<key1>=<value1>,<key2>=<value2>,...).")
    flag("--standalone", text="Start a local standalone rendezvous on a free port, for one node.")
    option("max-restarts", 0, "Maximum number of worker group restarts before failing.", int)
    option("monitor-interval", 0.1, "Interval, in seconds, to monitor the state of workers.", float)
    option("start-method", "spawn", "Multiprocessing start method of functions.", choices=["spawn", "fork",
                                                                                           "forkserver"])
    option("event-log-handler", "null", "Without effect.")
    option("role", "default", "User-defined role for the workers.")
    flag("-m", "--module", text="Interpret the launch script as a Python module, as 'python -m' does.")
    flag("--no-python", "--no_python", text="Execute the program directly, without Python.")
    flag("--run-path", "--run_path", text="Run the program with runpy.run_path.")
    option("log-dir", None, "Base directory of log files.")
    parser.add_argument("-r", "--redirects", default=_environment("REDIRECTS", "0"),
                        help="Streams to write to files: 0, 1 (stdout), 2 (stderr), 3, or <local rank>:<streams>,...")
    parser.add_argument("-t", "--tee", default=_environment("TEE", "0"),
                        help="Streams to write to files and the console.")
    option("local-ranks-filter", "", "Local ranks whose output the console shows.")
    option("duplicate-stdout-filters", "", "Without effect.")
    option("duplicate-stderr-filters", "", "Without effect.")
    option("node-rank", 0, "Number of this node, for --rdzv-backend=static.", int)
    option("master-addr", "127.0.0.1", "Address of node 0, for --rdzv-backend=static.")
    option("master-port", 29500, "Port of node 0, for --rdzv-backend=static.", int)
    option("local-addr", None, "Address of this node.")
    option("logs-specs", None, "Without effect.")
    option("numa-binding", None, "Without effect.")
    option("signals-to-handle", "SIGTERM,SIGINT,SIGHUP,SIGQUIT", "Signals that end the workers, too.")
    option("shutdown-timeout", None, "Seconds that workers get to end after SIGTERM, 30 by default.", int)
    flag("--virtual-local-rank", "--virtual_local_rank", text="Set LOCAL_RANK to 0 for all workers.")
    parser.add_argument("training_script", help="The program, followed by its arguments.")
    parser.add_argument("training_script_args", nargs=argparse.REMAINDER)
    return parser


def parse_args(args: Sequence[str] | None) -> argparse.Namespace:
    """Parse the command line.

    Args:
        args: its words; those of this process if None.
    """
    return get_args_parser().parse_args(args)


def parse_min_max_nnodes(nnodes: str) -> tuple[int, int]:
    """The least and the greatest number of nodes.

    Args:
        nnodes: "2" or "1:4".

    Raises:
        RuntimeError: it is neither.
    """
    parts = nnodes.split(":")
    if len(parts) > 2:
        raise RuntimeError(f'nnodes={nnodes} is not in "MIN:MAX" format')
    return int(parts[0]), int(parts[-1])


def determine_local_world_size(nproc_per_node: str) -> int:
    """The number of processes on this machine.

    Args:
        nproc_per_node: a number, "auto" or "cpu".

    Raises:
        ValueError: it is none of these, or asks for an accelerator.
    """
    try:
        return int(nproc_per_node)
    except ValueError:
        if nproc_per_node in ("cpu", "auto"):
            return os.cpu_count() or 1
        if nproc_per_node == "gpu":
            raise ValueError("Cuda is not available.") from None
        raise ValueError(f"Unsupported nproc_per_node value: {nproc_per_node}") from None


def _streams(text: str, local_rank: int) -> int:
    """Which streams of a process an option names: 1 for stdout, 2 for stderr, 3 for both."""
    if text.isdigit():
        return int(text)
    pairs = dict(pair.split(":") for pair in text.split(","))
    return int(pairs.get(str(local_rank), 0))


class _Worker:
    """One process, with the threads that pass its output on."""

    def __init__(self, process: Any, local_rank: int, rank: int, error_file: str) -> None:
        self.process, self.local_rank, self.rank, self.error_file = process, local_rank, rank, error_file
        self.threads: list[threading.Thread] = []
        self.files: list[IO[bytes]] = []

    def failure(self) -> ProcessFailure:
        """How it failed."""
        return ProcessFailure(self.local_rank, self.process.pid, self.process.returncode, self.error_file)

    def end(self, number: int) -> None:
        """Send a signal to the process and those that it started."""
        with contextlib.suppress(ProcessLookupError, PermissionError):
            try:
                os.killpg(self.process.pid, number)
            except ProcessLookupError:  # it leads no group yet
                if self.process.poll() is None:
                    os.kill(self.process.pid, number)

    def close(self) -> None:
        """Wait until its output is passed on."""
        for thread in self.threads:
            thread.join(5)
        for file in self.files:
            file.close()


class Agent:
    """The launcher on one machine.

    Args:
        args: the options of the command line.
    """

    def __init__(self, args: argparse.Namespace) -> None:
        self.args = args
        self.local_size = determine_local_world_size(args.nproc_per_node)
        self.nodes = parse_min_max_nnodes(args.nnodes)[0]
        self.run_id = args.rdzv_id if args.rdzv_id != "none" else str(uuid.uuid4()) if self.nodes == 1 else "none"
        self.workers: list[_Worker] = []
        self.scratch = tempfile.mkdtemp(prefix="torchelastic_")
        self.logs = Path(args.log_dir, self.run_id) if args.log_dir else Path(self.scratch)
        self.timeout = args.shutdown_timeout
        if self.timeout is None:
            self.timeout = int(os.environ.get("TORCH_ELASTIC_SHUTDOWN_TIMEOUT", "30"))
        self.store, self.node_rank, self.host = self._meet()

    def _meet(self) -> tuple[TCPStore, int, str]:
        """The store of the job, this machine's number, and the store's host."""
        args = self.args
        if args.standalone or (self.nodes == 1 and not args.rdzv_endpoint and args.rdzv_backend == "static"):
            port = 0 if args.standalone or args.master_port == 29500 else args.master_port
            return TCPStore("localhost", port, None, True, wait_for_workers=False), 0, "localhost"
        host, _, port_text = args.rdzv_endpoint.partition(":")
        host = host or args.master_addr
        port = int(port_text or (29400 if args.rdzv_backend == "c10d" else args.master_port))
        static = args.rdzv_backend == "static"
        serves = args.node_rank == 0 if static else _is_own_address(host)
        try:
            store = TCPStore(host, port, None, serves, _JOIN_TIMEOUT, wait_for_workers=False)
        except DistNetworkError:
            if static or not serves:
                raise
            store = TCPStore(host, port, None, False, _JOIN_TIMEOUT, wait_for_workers=False)  # another one serves here
        number = args.node_rank if static else store.add(f"{self.run_id}/nodes", 1) - 1
        if number >= self.nodes:
            raise RuntimeError(f"{self.nodes} nodes have joined the job {self.run_id} before")
        return store, number, host

    def _variables(self, local_rank: int, attempt: int, error_file: str) -> dict[str, str]:
        args, size = self.args, self.local_size * self.nodes
        rank = self.node_rank * self.local_size + local_rank
        own = {"RANK": rank, "LOCAL_RANK": 0 if args.virtual_local_rank else local_rank, "WORLD_SIZE": size,
               "LOCAL_WORLD_SIZE": self.local_size, "GROUP_RANK": self.node_rank, "GROUP_WORLD_SIZE": self.nodes,
               "ROLE_NAME": args.role, "ROLE_RANK": rank, "ROLE_WORLD_SIZE": size, "MASTER_ADDR": self.host,
               "MASTER_PORT": self.store.port, "TORCHELASTIC_RESTART_COUNT": attempt,
               "TORCHELASTIC_MAX_RESTARTS": args.max_restarts, "TORCHELASTIC_RUN_ID": self.run_id,
               "TORCHELASTIC_USE_AGENT_STORE": True, "TORCHELASTIC_ERROR_FILE": error_file,
               "TORCHELASTIC_SIGNALS_TO_HANDLE": args.signals_to_handle}
        variables = {**os.environ, **{name: str(value) for name, value in own.items()}}
        variables.setdefault("OMP_NUM_THREADS", str(max(1, _own_cores() // self.local_size)))
        return variables

    def _command(self, local_rank: int) -> list[str]:
        args = self.args
        rank = [f"--local-rank={local_rank}"] if getattr(args, "passes_local_rank", False) else []
        program = [args.training_script, *rank, *args.training_script_args]
        if args.no_python:
            return program
        if args.module:
            code = (f"import runpy, sys, {_PACKAGE}.alias; {_PACKAGE}.alias.install(); sys.argv.pop(0); "
                    "runpy.run_module(sys.argv[0], run_name='__main__', alter_sys=True)")
            return [sys.executable, "-u", "-c", code, *program]
        return [sys.executable, "-u", "-m", _PACKAGE, "run", *program]

    def _start_process(self, local_rank: int, variables: dict[str, str], options: dict[str, Any]) -> Any:
        """Start one process, with streams in `options`, as the leader of a group of processes."""
        return subprocess.Popen(self._command(local_rank), env=variables, start_new_session=True,
                                preexec_fn=_end_with_parent, **options)

    def results(self) -> dict[int, Any]:
        """What processes of functions have returned, by rank; None for programs."""
        return {worker.rank: None for worker in self.workers}

    def start(self, attempt: int) -> None:
        """Start all processes of this machine."""
        self.workers = []
        for local_rank in range(self.local_size):
            folder = self.logs / f"attempt_{attempt}" / str(local_rank)
            folder.mkdir(parents=True, exist_ok=True)
            error_file = str(folder / "error.json")
            redirected, copied = (_streams(each, local_rank) for each in (self.args.redirects, self.args.tee))
            hidden = self.args.local_ranks_filter and str(local_rank) not in self.args.local_ranks_filter.split(",")
            options: dict[str, Any] = {}
            files: list[IO[bytes]] = []
            for bit, name in ((1, "stdout"), (2, "stderr")):
                if copied & bit:
                    options[name] = subprocess.PIPE
                elif redirected & bit:
                    files.append(open(folder / f"{name}.log", "wb"))  # noqa: SIM115
                    options[name] = files[-1]
                elif hidden:
                    options[name] = subprocess.DEVNULL
            process = self._start_process(local_rank, self._variables(local_rank, attempt, error_file), options)
            worker = _Worker(process, local_rank, self.node_rank * self.local_size + local_rank, error_file)
            worker.files = files
            for name, stream, console in (("stdout", process.stdout, sys.stdout), ("stderr", process.stderr,
                                                                                   sys.stderr)):
                if stream is not None:
                    prefix = f"[{self.args.role}{local_rank}]:"
                    thread = threading.Thread(target=_copy, daemon=True, args=(
                        stream, folder / f"{name}.log", None if hidden else console, prefix))
                    thread.start()
                    worker.threads.append(thread)
            self.workers.append(worker)

    def watch(self, attempt: int) -> dict[int, ProcessFailure]:
        """Wait until all processes have ended; after a failure, end the others and return how they failed."""
        failed_key = f"{self.run_id}/failed/{attempt}"
        while True:
            codes = [worker.process.poll() for worker in self.workers]
            if any(code for code in codes if code is not None):
                failed_first = [worker for worker, code in zip(self.workers, codes, strict=True) if code]
                failures = {worker.rank: worker.failure() for worker in failed_first}
                self.store.set(failed_key, str(failed_first[0].rank))
                running = [worker for worker in self.workers if worker.process.poll() is None]
                self.end_all()
                for worker in running:
                    if worker.process.returncode:
                        failures[worker.rank] = worker.failure()
                return failures
            if None not in codes:
                self._close()
                return {}
            if self.nodes > 1 and self.store.check([failed_key]):
                self.end_all()
                rank = self.store.get(failed_key).decode()
                print(f"torchrun: rank {rank}, on another node, has failed", file=sys.stderr)
                return {worker.rank: ProcessFailure(worker.local_rank, worker.process.pid, -signal.SIGTERM, "")
                        for worker in self.workers[:1]}
            time.sleep(self.args.monitor_interval)

    def end_all(self, number: int = signal.SIGTERM) -> None:
        """End all processes and what they started: by a signal, then by SIGKILL."""
        for worker in self.workers:
            if worker.process.poll() is None:
                worker.end(number)
        end = time.monotonic() + self.timeout
        for worker in self.workers:
            with contextlib.suppress(subprocess.TimeoutExpired):
                worker.process.wait(max(0.0, end - time.monotonic()))
        for worker in self.workers:
            worker.end(signal.SIGKILL)
            worker.process.wait()
        self._close()

    def _close(self) -> None:
        for worker in self.workers:
            worker.close()

    def finish(self) -> None:
        """Wait for the other machines, and delete what is not needed any more."""
        if self.nodes > 1:
            with contextlib.suppress(RuntimeError):  # a machine that has failed does not come
                self.store.barrier(f"{self.run_id}/end", self.nodes, timedelta(seconds=self.timeout))
        shutil.rmtree(self.scratch, ignore_errors=True)


def _is_own_address(host: str) -> bool:
    try:
        address = socket.gethostbyname(host)
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
            probe.bind((address, 0))
    except OSError:
        return False
    return True


def _own_cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _end_with_parent() -> None:
    process_control.set_parent_death_signal(signal.SIGTERM)


def _copy(stream: IO[bytes], log: Path, console: Any, prefix: str) -> None:
    """Pass lines on to a file, and to the console with a prefix."""
    with stream, open(log, "wb") as file:
        for line in stream:
            file.write(line)
            file.flush()
            if console is not None:
                console.write(prefix + line.decode(errors="replace"))
                console.flush()


@contextlib.contextmanager
def _ending_on_signals(agent: Agent, names: str) -> Iterator[None]:
    """End the processes before the launcher itself, when a signal ends it."""
    before = {}
    if threading.current_thread() is threading.main_thread():
        for name in filter(None, names.split(",")):
            number = getattr(signal, name.strip())
            before[number] = signal.signal(number, _terminate_process_handler)
    try:
        yield
    except SignalException as error:
        agent.end_all(error.sigval)
        raise
    except BaseException:
        agent.end_all()
        raise
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def run(args: argparse.Namespace) -> None:
    """Start the processes and wait until they have ended.

    Args:
        args: the parsed command line.

    Raises:
        ChildFailedError: processes have failed, more often than they may be restarted.
        SignalException: a signal has ended the launcher, and the processes before.
    """
    launch(Agent(args))


def launch(agent: Agent) -> dict[int, Any]:
    """Start the processes of an agent and wait until they have ended.

    Args:
        agent: the launcher on this machine.

    Returns:
        What the processes have returned, by rank; None for programs.

    Raises:
        ChildFailedError: processes have failed, more often than they may be restarted.
        SignalException: a signal has ended the launcher, and the processes before.
    """
    args = agent.args
    try:
        with _ending_on_signals(agent, args.signals_to_handle):
            for attempt in range(args.max_restarts + 1):
                agent.start(attempt)
                failures = agent.watch(attempt)
                if not failures:
                    return agent.results()
                _, first = ChildFailedError(args.training_script, failures).get_first_failure()
                print(f"torchrun: failed (exitcode: {first.exitcode}) local_rank: {first.local_rank} (pid: {first.pid})"
                      + (f"; restart {attempt + 1} of {args.max_restarts}" if attempt < args.max_restarts else ""),
                      file=sys.stderr)
            raise ChildFailedError(args.training_script, failures)
    finally:
        agent.finish()


def main(args: Sequence[str] | None = None) -> None:
    """Run the command `torchrun`.

    Args:
        args: the words of the command line; those of this process if None.
    """
    run(parse_args(args))


if __name__ == "__main__":
    main()
