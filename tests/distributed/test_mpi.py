"""Process groups over MPI. Without mpi4py and an MPI (`pip install flambeau[distributed]`) there is no test here."""

from __future__ import annotations

import importlib.util
import os
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]

if importlib.util.find_spec("mpi4py") is not None and shutil.which("mpirun") is not None:

    def test_programs_of_mpirun():
        program = ROOT / "tests" / "distributed" / "programs" / "over_mpi.py"
        environment = {**os.environ, "OMP_NUM_THREADS": "1",
                       "PYTHONPATH": os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])}
        done = subprocess.run(["mpirun", "-n", "3", sys.executable, str(program)], env=environment, text=True,
                              capture_output=True, timeout=120, check=False)
        assert done.returncode == 0, done.stderr[-4000:]
