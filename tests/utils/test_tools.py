"""Small tools of `torch.utils`: locks, pickles shown, reports, throughput, checks of texts."""

from __future__ import annotations

import importlib
import io
import pickle
import zipfile

import pytest

import flambeau
from flambeau.testing import FileCheck
from flambeau.utils import collect_env, file_baton, show_pickle


def test_a_baton_is_held_once(tmp_path):
    path = str(tmp_path / "lock")
    mine, other = file_baton.FileBaton(path), file_baton.FileBaton(path, 0.001, warn_after_seconds=0)
    assert (mine.try_acquire(), other.try_acquire()) == (True, False)
    other.wait_seconds = 0.001
    import threading
    timer = threading.Timer(0.03, mine.release)
    timer.start()
    with pytest.warns(UserWarning, match="Waited on lock file"):
        other.wait()
    timer.join()
    assert other.try_acquire()
    other.release()


@pytest.mark.parity
def test_pickles_are_shown_as_by_pytorch(tmp_path):
    theirs = pytest.importorskip("torch.utils.show_pickle")
    value = {"a": complex(1, 2), "b": [ValueError("x"), "text"]}
    mine_out, their_out = io.StringIO(), io.StringIO()
    path = tmp_path / "a.zip"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("x/data.pkl", pickle.dumps(value))
    for module, out in ((show_pickle, mine_out), (theirs, their_out)):
        module.main(["show_pickle", f"{path}@*/data.pkl"], out)
    assert mine_out.getvalue() == their_out.getvalue() != ""
    with pytest.raises(Exception, match="Could not find member matching"):
        show_pickle.main(["show_pickle", f"{path}@*/nothing"], mine_out)


@pytest.mark.parity
def test_reports_are_laid_out_as_by_pytorch():
    theirs = pytest.importorskip("torch.utils.collect_env")
    values = dict.fromkeys(collect_env.SystemEnv._fields)
    values |= {"torch_version": "1", "is_debug_build": False, "pip_version": "pip3", "pip_packages": "a\nb",
               "caching_allocator_config": {}, "cpu_info": "x"}
    assert theirs.SystemEnv._fields == collect_env.SystemEnv._fields
    assert collect_env.pretty_str(collect_env.SystemEnv(**values)) == theirs.pretty_str(theirs.SystemEnv(**values))
    values["nvidia_gpu_models"] = "A\nB"
    assert collect_env.pretty_str(collect_env.SystemEnv(**values)) == theirs.pretty_str(theirs.SystemEnv(**values))
    def answer(command):
        return (0, f"gcc 12 {command}\nDescription:\tsomething\nnumpy==1\nother==2", "")
    for name in ("get_gcc_version", "get_lsb_version", "get_os", "get_pip_packages", "get_conda_packages",
                 "get_cpu_info", "get_gpu_info"):
        assert getattr(collect_env, name)(answer) == getattr(theirs, name)(answer), name


@pytest.mark.parity
@pytest.mark.parametrize("check", [
    lambda f: f.check("a").check_next("b").run("xx a\n b c"),
    lambda f: f.check("a").check_next("c").run("xx a\n b \nc"),
    lambda f: f.check("a").check_not("b").check("c").run("a b c"),
    lambda f: f.check("a").check("z").run("l1\nl2\nl3\nl4 a b c\nl5\nl6\nl7\nl8"),
    lambda f: f.check("a").check_not("l6").run("l1\nl2\nl3\nl4 a b c\nl5\nl6\nl7\nl8\nl9"),
    lambda f: f.check_count("a", 2, exactly=True).run("a a a c"), lambda f: f.check_count("a", 4).run("a a c"),
    lambda f: f.check_dag("c").check_dag("a").run("a a c"), lambda f: f.check("a").check_same("c").run("a\nc"),
    lambda f: f.check_regex("a.c").run("abc"), lambda f: f.check_regex("a.d").run("abc"),
    lambda f: f.run("abc"), lambda f: f.run("# CHECK: a\n# CHECK-NEXT: b", "a\nc"),
    lambda f: f.run("# CHECK-COUNT-EXACTLY-1: a\n", "a\na"),
    lambda f: f.check_source_highlighted("foo").run("x = foo(1)\n    ~~ <-"),
])
def test_checks_of_texts_are_those_of_pytorch(check):
    torch = pytest.importorskip("torch")

    def outcome(kind):
        try:
            return check(kind())
        except RuntimeError as error:
            return str(error)
    assert outcome(FileCheck) == outcome(torch._C.FileCheck)


def test_hooks_that_are_not_saved_are_warned_of():
    x = flambeau.ones(1, requires_grad=True)
    x.register_hook(lambda g: g)
    with pytest.warns(UserWarning, match="will not be serialized"):
        flambeau.utils.hooks.warn_if_has_hooks(x)


def test_old_warnings_and_other_devices():
    warning = flambeau.utils.backcompat.keepdim_warning
    warning.enabled = True
    assert warning.get_enabled()
    warning.set_enabled(False)
    assert not flambeau.utils.backcompat.broadcast_warning.enabled
    with pytest.raises(NotImplementedError, match="no extension can add a device"):
        flambeau.utils.rename_privateuse1_backend("mine")
    with pytest.warns(FutureWarning, match="automatically applies sharding"):
        importlib.import_module("flambeau.utils.data.backward_compatibility").worker_init_fn(0)


def test_throughput_needs_inputs():
    bench = flambeau.utils.ThroughputBenchmark(lambda x: x + 1)
    with pytest.raises(AssertionError, match="Please provide benchmark inputs"):
        bench.benchmark()
    bench.add_input(1)
    assert "Total number of iterations: 5\n" in str(bench.benchmark(2, 1, 5))
