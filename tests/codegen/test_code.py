"""Cached object code in several processes and threads; the thread pool."""

from __future__ import annotations

import ctypes
import os
import subprocess
import sys
import threading

import numpy as np
import pytest

from flambeau.codegen.elementwise import elementwise
from flambeau.codegen.scalar import scalar_ir as e
from flambeau.kernels import threads as limits
from flambeau.runtime import cache_store, compilation, launch, target
from flambeau.runtime import thread_pool as pool
from tests.compiled_code import cache_files

PROGRAM = """
import sys, numpy as np
from flambeau.codegen.elementwise import elementwise
from flambeau.runtime import compilation as compiled
from flambeau.runtime import target
from flambeau.codegen.scalar import scalar_ir as e
if sys.argv[1:] == ["generates nothing"]:
    def generate(*args): raise SystemExit("compiled again")
    compiled.Library._compile = generate
x, y = e.variable(0, "float32"), e.variable(1, "float32")
a = np.arange(100, dtype="float32")
print(elementwise.kernel([x * y + 5], ["float32"] * 2)(a, a).sum(), elementwise.kernel([e.sqrt(x)], ["float32"])(a)[4])
"""

#: the pool, two kernels and their entry points; and LLVM's description of this processor, if its fingerprint is known
ENTRIES = 5 + (target._host_fingerprint() is not None)


def run(folder, *arguments, **environment):
    return subprocess.run([sys.executable, "-c", PROGRAM, *arguments], capture_output=True, text=True,
                          env=os.environ | {"FLAMBEAU_CACHE_DIR": str(folder)} | environment)


def test_a_second_process_compiles_nothing(tmp_path):
    first = run(tmp_path)
    assert first.stdout == "328850.0 2.0\n", first.stderr
    assert len(cache_files(tmp_path)) == ENTRIES
    second = run(tmp_path, "generates nothing")
    assert second.stdout == first.stdout, second.stderr


def test_damaged_entries_are_compiled_again(tmp_path):
    run(tmp_path)
    entries = cache_files(tmp_path)
    whole = [entry.read_bytes() for entry in entries]
    damages = [lambda b: b[:len(b) // 2], lambda b: b"", lambda b: b[:-9] + bytes(9), lambda b: b"x" + b]
    for i, damage in enumerate(damages):
        for entry, content in zip(entries, whole, strict=True):
            entry.write_bytes(damage(content))
        done = run(tmp_path)
        assert done.stdout == "328850.0 2.0\n", (i, done.stderr)
        assert [entry.read_bytes() for entry in entries] == whole


def test_valid_entries_without_object_code_are_compiled_again(tmp_path, monkeypatch):
    run(tmp_path)
    monkeypatch.setenv("FLAMBEAU_CACHE_DIR", str(tmp_path))
    names = [entry.name for entry in (tmp_path / "code").iterdir()]
    for name in names:
        cache_store.CODE.write(name, b"this is no object code")
    assert run(tmp_path).stdout == "328850.0 2.0\n"
    assert all(b"no object code" not in (cache_store.CODE.read(name) or b"") for name in names)


def test_processes_that_compile_at_once(tmp_path):
    running = [subprocess.Popen([sys.executable, "-c", PROGRAM], stdout=subprocess.PIPE, text=True,
                                env=os.environ | {"FLAMBEAU_CACHE_DIR": str(tmp_path)}) for _ in range(4)]
    assert [process.communicate()[0] for process in running] == ["328850.0 2.0\n"] * 4
    assert len(cache_files(tmp_path)) == ENTRIES


def test_an_unwritable_folder_is_ignored(tmp_path):
    (tmp_path / "file").write_text("")
    done = run(tmp_path / "file")
    assert done.stdout == "328850.0 2.0\n", done.stderr


def test_narrower_vectors(tmp_path):
    for width in ("128", "256"):
        done = run(tmp_path, FLAMBEAU_JIT_WIDTH=width)
        assert done.stdout == "328850.0 2.0\n", done.stderr
    assert len(cache_files(tmp_path)) == 5 + ENTRIES  # features are part of what names an entry


def test_debugging_prints_the_code(tmp_path):
    done = run(tmp_path, FLAMBEAU_DEBUG="llvm,asm")
    assert "define" in done.stderr
    assert "ret" in done.stderr
    done = run(tmp_path, FLAMBEAU_DEBUG="llvm,amd")
    assert "there is no view 'amd', only ir, graph_breaks, recompiles, kernels, llvm, asm" in done.stderr


def test_disabled_by_the_environment():
    code = "from flambeau import codegen; print(codegen.available())"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True,
                          env=os.environ | {"FLAMBEAU_JIT": "0"})
    assert done.stdout == "False\n"


def test_an_unsupported_llvmlite_is_reported_and_not_used(tmp_path):
    (tmp_path / "llvmlite").mkdir()
    (tmp_path / "llvmlite" / "__init__.py").write_text("raise SystemExit('imported')")
    (tmp_path / "llvmlite" / "_version.py").write_text("version_version = '0.44.0'\n")
    code = "import flambeau as torch; x = torch.ones(300, 300); print((x + x).sum().item(), (x @ x)[0, 0].item())"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True,
                          env=os.environ | {"PYTHONPATH": os.pathsep.join([str(tmp_path), os.getcwd()])})
    assert done.stdout == "180000.0 300.0\n", done.stderr
    assert done.stderr.count("need llvmlite 0.46 or newer, and 0.44.0 is installed") == 1


def test_importing_needs_no_llvm():
    code = ("import sys; sys.modules['llvmlite'] = None\n"
            "from flambeau.codegen.elementwise import elementwise\n"
            "from flambeau.codegen.rows import reduction\n"
            "from flambeau.codegen.rows import rows\n"
            "from flambeau.codegen.indexing import indexing\n"
            "from flambeau.codegen.scalar import scalar_ir as expression\n"
            "from flambeau.runtime import thread_pool as threads\n"
            "from flambeau.runtime import cache_store\n"
            "from flambeau.runtime import target\n"
            "print('fine')")
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.stdout == "fine\n", done.stderr


def test_threads_that_compile_at_once():
    nodes = [e.variable(0, "float32") * (0.123 + i) for i in range(6)]
    x = np.ones(10, np.float32)
    found: list = []
    workers = [threading.Thread(target=lambda: found.append(
        [elementwise.kernel([node], ["float32"])(x)[0] for node in nodes])) for _ in range(8)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert found == [[np.float32(0.123 + i) for i in range(6)]] * 8


def test_equal_recipes_share_a_library():
    kernel = elementwise.kernel([e.variable(0, "float32") + 1], ["float32"])
    assert kernel._library("cc", False) is kernel._library("cc", False)
    assert isinstance(kernel._library("cc", False), compilation.Library)


def test_the_pool_follows_the_number_of_threads(monkeypatch):
    for count in (3, 1, 2):
        monkeypatch.setattr(limits, "_limit", count)
        pool.pool()
        assert pool._pool.size == count


COUNTING = """
define void @body(ptr %pointers, ptr %plan, i64 %chunk) {
  %counts = load ptr, ptr %pointers
  %place = getelementptr i64, ptr %counts, i64 %chunk
  %count = load i64, ptr %place
  %more = add i64 %count, 1
  store i64 %more, ptr %place
  ret void
}
"""


@pytest.mark.parametrize("count", [1, 2, 3, 4])
def test_each_chunk_runs_once(count, monkeypatch):
    """With any number of threads; the caller alone runs tasks of too many chunks."""
    monkeypatch.setattr(limits, "_limit", count)
    library = compilation.load("counting", ("body",), lambda: COUNTING, False)
    for chunks in (1, 2, 3, 7, 64, 999, (1 << 20) - 1, (1 << 20) + 5):
        counts = np.zeros(chunks + 1, np.int64)
        for _ in range(20 if chunks < 1000 else 1):
            launch.run([launch.Launch(library, library.address("body"), chunks, (0,))], [counts])
        assert set(counts[:-1]) == {20 if chunks < 1000 else 1}
        assert counts[-1] == 0


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_forked_process_has_a_pool_of_its_own(tmp_path):
    code = """
import os, sys, numpy as np
from flambeau.codegen.elementwise import elementwise
from flambeau.runtime import thread_pool as threads
from flambeau.codegen.scalar import scalar_ir as e
kernel = elementwise.kernel([e.variable(0, "float32") * 2], ["float32"])
x = np.ones(2_000_000, "float32")
assert kernel(x).sum() == 4e6
child = os.fork()
assert kernel(x).sum() == 4e6
if child:
    sys.exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""
    done = subprocess.run([sys.executable, "-W", "ignore", "-c", code], capture_output=True, text=True, timeout=60,
                          env=os.environ | {"FLAMBEAU_CACHE_DIR": str(tmp_path), "OMP_NUM_THREADS": "2"})
    assert done.returncode == 0, done.stderr


def test_the_process_ends_while_threads_wait(tmp_path):
    code = """
import numpy as np
from flambeau.codegen.elementwise import elementwise; from flambeau.codegen.scalar import scalar_ir as e
kernel = elementwise.kernel([e.variable(0, "float32") * 2], ["float32"])
kernel(np.ones(2_000_000, "float32"))
"""
    for _ in range(5):
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60,
                              env=os.environ | {"FLAMBEAU_CACHE_DIR": str(tmp_path), "OMP_NUM_THREADS": "4"})
        assert (done.returncode, done.stderr) == (0, "")


def test_background_compilation_is_submitted_under_the_lock(monkeypatch):
    """The executor may belong to another thread's block, which ends under the same lock."""
    class Pool:
        def submit(self, function):
            held.append(compilation._lock._is_owned())

    held: list[bool] = []
    monkeypatch.setattr(compilation, "_loaded", {})
    monkeypatch.setattr(compilation, "_background_pools", [Pool()])
    compilation.load("nothing", (), str)
    assert held == [True]


def test_cached_code_is_found_by_its_recipe(tmp_path, monkeypatch):
    def generate():
        return "define i64 @answer() {\n  ret i64 42\n}"

    monkeypatch.setenv("FLAMBEAU_CACHE_DIR", str(tmp_path))
    monkeypatch.setattr(compilation, "_loaded", {})
    assert compilation.load_cached("the answer", ("answer",)) is None
    compilation.load("the answer", ("answer",), generate).addresses()
    monkeypatch.setattr(compilation, "_loaded", {})
    library = compilation.load_cached("the answer", ("answer",))
    assert library.function("answer", ctypes.c_int64)() == 42
    assert (library.origin, compilation.load_cached("the answer", ("answer",))) == ("disk", library)
    with pytest.raises(RuntimeError, match="there is no IR of 'the answer'"):
        library.ir
    assert compilation.load("the answer", ("answer",), generate) is library
    assert library.ir == generate()
