"""Run pytorch/examples' distributed scripts under both libraries, and compare the loss of each step on each rank.

    python -m tests.distributed.examples EXAMPLES [NAME ...]

EXAMPLES is a checkout of github.com/pytorch/examples. The scripts ask for GPUs: CPUs stand for them (`stand_in`).
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
STAND_IN = Path(__file__).parent / "stand_in"

GPT = ("gpt_config.n_layer=2", "gpt_config.n_embd=64", "gpt_config.n_head=4", "data_config.path=data/input.txt",
       "data_config.truncate=0.002", "data_config.block_size=32", "trainer_config.batch_size=64",
       "trainer_config.max_epochs=1", "trainer_config.data_loader_workers=0", "trainer_config.use_amp=False")

#: name -> (folder, processes or 0 for a script that starts its own, words of the command line)
SCRIPTS = {
    "ddp": ("ddp", 2, ("example.py",)),
    "single_gpu": ("ddp-tutorial-series", 0, ("single_gpu.py", "2", "1")),
    "multigpu": ("ddp-tutorial-series", 0, ("multigpu.py", "2", "1")),
    "multigpu_torchrun": ("ddp-tutorial-series", 2, ("multigpu_torchrun.py", "2", "1")),
    "multinode": ("ddp-tutorial-series", 2, ("multinode.py", "2", "1")),
    "FSDP2": ("FSDP2", 2, ("example.py",)),
    "FSDP2 prefetching": ("FSDP2", 2, ("example.py", "--explicit-prefetching", "--dcp-api")),
    "FSDP2 mixed precision": ("FSDP2", 2, ("example.py", "--mixed-precision")),
    "tensor_parallel": ("tensor_parallelism", 2, ("tensor_parallel_example.py",)),
    "sequence_parallel": ("tensor_parallelism", 2, ("sequence_parallel_example.py",)),
    "fsdp_tp": ("tensor_parallelism", 4, ("fsdp_tp_example.py",)),
    "minGPT-ddp": ("minGPT-ddp/mingpt", 2, ("main.py", *GPT)),
}

#: what bfloat16 parameters under Adam drift apart by in ten steps
TOLERANCES = {"FSDP2 mixed precision": 2e-2}


def run(examples: Path, name: str, library: str, timeout: int) -> tuple[list[list[float]], float, str]:
    """The losses of each rank, the seconds, and the last lines of what was said if the script failed."""
    folder, size, words = SCRIPTS[name]
    with tempfile.TemporaryDirectory() as work:
        copy, out = Path(work, "copy"), Path(work, "out")
        shutil.copytree(examples / "distributed" / folder, copy)
        out.mkdir()
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(map(str, (STAND_IN, ROOT, copy))),
                       "FLAMBEAU_EXAMPLES": library, "FLAMBEAU_EXAMPLES_OUT": str(out), "OMP_NUM_THREADS": "1"}
        launcher: list[str] = []
        if size:
            module = ["torch.distributed.run"] if library == "torch" else ["flambeau", "torchrun"]
            launcher = ["-m", *module, "--standalone", "--nproc-per-node", str(size)]
        else:
            environment["FLAMBEAU_EXAMPLES_ALONE"] = "1"
        start = time.monotonic()
        try:
            done = subprocess.run([sys.executable, *launcher, *words], cwd=copy, env=environment, timeout=timeout,
                                  capture_output=True, text=True)
            said = "" if done.returncode == 0 else "\n".join((done.stdout + done.stderr).splitlines()[-140:])
        except subprocess.TimeoutExpired:
            said = f"not done after {timeout} s"
        return ([[float(line) for line in each.read_text().split()] for each in sorted(out.iterdir())],
                time.monotonic() - start, said)


def main() -> int:
    """Run them; 1 if one differs."""
    parser = argparse.ArgumentParser("python -m tests.distributed.examples")
    parser.add_argument("examples", type=Path)
    parser.add_argument("names", nargs="*")
    parser.add_argument("--timeout", type=int, default=300, metavar="S", help="seconds of a script (300)")
    arguments = parser.parse_args()
    failed = False
    for name in arguments.names or SCRIPTS:
        ours, theirs = (run(arguments.examples, name, library, arguments.timeout) for library in ("flambeau", "torch"))
        sizes = [[len(losses) for losses in each[0]] for each in (ours, theirs)]
        same = sizes[0] == sizes[1]
        error = max((abs(a - b) / max(1.0, abs(b)) for one, other in zip(ours[0], theirs[0], strict=True)
                     for a, b in zip(one, other, strict=True)), default=0.0) if same else float("nan")
        close = same and error < TOLERANCES.get(name, 1e-4)
        verdict = ours[2] or (f"PyTorch: {theirs[2]}" if theirs[2] else "" if close else "differs")
        failed |= bool(verdict)
        if verdict == "differs":
            verdict += f"\n{ours[0]}\n{theirs[0]}"
        print(f"{name}: losses by rank {sizes[0]}, PyTorch's {sizes[1]}, largest difference {error:.1e}, "
              f"{ours[1]:.0f} and {theirs[1]:.0f} s{': ' + verdict if verdict else ''}", flush=True)
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
