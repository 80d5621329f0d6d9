"""`flambeau run script.py args...` and the `torch` alias, each in its own process."""

from __future__ import annotations

import subprocess
import sys
import textwrap

import pytest


def python(*arguments, cwd=None):
    return subprocess.run([sys.executable, *map(str, arguments)], capture_output=True, text=True, cwd=cwd)


def aliased(code):
    """The output of Python code run with the alias installed."""
    done = python("-c", "import flambeau.alias; flambeau.alias.install()\n" + textwrap.dedent(code))
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture
def script(tmp_path):
    folder = tmp_path / "some where"
    folder.mkdir()

    def write(text, name="script.py"):
        path = folder / name
        path.write_text(textwrap.dedent(text))
        return path

    return write


@pytest.mark.smoke
def test_an_unchanged_script_runs(script):
    path = script("""
        import torch
        import torch.nn as nn
        import torch.nn.functional as F
        from torch.optim import SGD
        from torch import tensor
        x = tensor(5., requires_grad=True)
        (3 * x ** 2).backward()
        print(x.grad, x.grad.dtype, torch.__name__, nn.Linear.__name__, F.relu(tensor(-1.)), SGD.__name__)
    """)
    done = python("-m", "flambeau", "run", path)
    assert done.stderr == ""
    assert done.stdout == "tensor(30.) torch.float32 torch Linear tensor(0.) SGD\n"


def test_the_script_is_main_with_its_own_arguments_and_folder(script, tmp_path):
    script("value = 7\n", "beside.py")
    path = script("""
        import sys, __main__, beside
        print(__name__, sys.argv[1:], beside.value, __main__.__file__ == sys.argv[0] == __file__)
        class Here: pass
        import pickle
        print(type(pickle.loads(pickle.dumps(Here()))) is Here)
    """)
    done = python("-m", "flambeau", "run", path, "--epochs", "3", "-v", "--", "run", cwd=tmp_path)
    assert done.stderr == ""
    assert done.stdout.splitlines() == ["__main__ ['--epochs', '3', '-v', '--', 'run'] 7 True", "True"]


def test_a_traceback_begins_at_the_script(script):
    path = script("""
        import torch
        def broken():
            torch.ones(2).backward()
        broken()
    """)
    done = python("-m", "flambeau", "run", path)
    assert done.returncode == 1
    lines = done.stderr.splitlines()
    assert lines[0] == "Traceback (most recent call last):"
    assert lines[1] == f'  File "{path}", line 5, in <module>'
    assert lines[-1].startswith("RuntimeError: element 0 of tensors does not require grad")
    assert "cli.py" not in done.stderr


def test_a_syntax_error_is_shown_as_python_shows_it(script):
    done = python("-m", "flambeau", "run", script("x = = 1\n"))
    assert done.returncode == 1
    assert done.stderr.rstrip().endswith("SyntaxError: invalid syntax")
    assert "cli.py" not in done.stderr


@pytest.mark.parametrize(("line", "status"), [("sys.exit()", 0), ("sys.exit(3)", 3), ("sys.exit('no')", 1)])
def test_the_exit_status_is_the_scripts(script, line, status):
    assert python("-m", "flambeau", "run", script(f"import sys; {line}")).returncode == status


def test_a_missing_script(tmp_path):
    done = python("-m", "flambeau", "run", tmp_path / "none.py")
    assert done.returncode == 2
    assert "there is no file" in done.stderr


def test_version_and_help():
    from flambeau.version import __version__
    assert python("-m", "flambeau", "version").stdout.strip() == __version__
    assert "run a PyTorch script" in python("-m", "flambeau", "--help").stdout
    assert python("-m", "flambeau").returncode == 2


def test_aliased_modules_are_flambeaus_own():
    assert aliased("""
        import importlib, sys
        import flambeau, torch, torch.nn, torch.nn.functional as F, torch.optim as optim, torch.autograd
        from torch.nn import utils
        assert torch is flambeau and torch.nn is flambeau.nn and F is flambeau.nn.functional
        assert optim is flambeau.optim and sys.modules["torch.nn"] is sys.modules["flambeau.nn"]
        assert utils is flambeau.nn.utils
        assert flambeau.nn.__name__ == "flambeau.nn" and flambeau.nn.__spec__.name == "flambeau.nn"
        assert importlib.reload(torch.nn) is flambeau.nn
        print(torch.float32, repr(torch.ones(1, dtype=torch.float64)))
    """) == "torch.float32 tensor([1.], dtype=torch.float64)\n"


def test_missing_modules_raise_an_error_that_names_them():
    assert aliased("""
        for name in ("torch.quantum", "torch.nn.quantum.deep"):
            try:
                __import__(name)
            except ModuleNotFoundError as missing:
                print(missing.name, "|", missing)
    """).splitlines() == [
        ("torch.quantum | flambeau has no module 'flambeau.quantum', "
        "which 'torch.quantum' stands for while torch means flambeau"),
        ("torch.nn.quantum | flambeau has no module 'flambeau.nn.quantum', "
        "which 'torch.nn.quantum' stands for while torch means flambeau")]


def test_the_alias_names_the_version_it_models_and_pytorchs_classes():
    assert aliased("""
        import inspect, pickle, typing
        import torch
        from torch import distributions, nn, optim  # imported before and after the alias was installed
        print(torch.__version__ >= "2.0", torch.__version__.startswith("2.13.0+flambeau."))
        class Double(torch.autograd.Function):
            pass
        for kind in (torch.Tensor, nn.Linear, nn.Parameter, nn.GRUCell, torch.no_grad, distributions.Normal,
                     type(torch.ones(2).max(0)), Double._backward_cls, distributions.transforms.ExpTransform):
            print(kind, end=" ")
        layer = pickle.loads(pickle.dumps(nn.GRUCell(2, 3)))
        print(type(layer) is nn.GRUCell, inspect.getsource(nn.Linear)[:12],
              typing.get_type_hints(nn.Linear)["training"])
        print(type(pickle.loads(pickle.dumps(torch.ones(2).max(0)))))
    """).splitlines() == [
        "True True",
        ("<class 'torch.Tensor'> <class 'torch.nn.modules.linear.Linear'> <class 'torch.nn.parameter.Parameter'> "
         "<class 'torch.nn.modules.rnn.GRUCell'> <class 'torch.autograd.grad_mode.no_grad'> "
         "<class 'torch.distributions.normal.Normal'> <class 'torch.return_types.max'> "
         "<class 'torch.autograd.function.DoubleBackward'> <class 'torch.distributions.transforms.ExpTransform'> True "
         "class Linear <class 'bool'>"), "<class 'torch.return_types.max'>"]


def test_uninstalling_leaves_no_trace():
    assert aliased("""
        import sys, torch.nn, flambeau
        flambeau.alias.uninstall()
        flambeau.alias.uninstall()
        print([name for name in sys.modules if name.partition(".")[0] == "torch"], flambeau.float32, flambeau.nn.ReLU)
        from flambeau.version import __version__
        print(flambeau.__version__ == __version__)
        with flambeau.alias.alias():
            with flambeau.alias.alias():
                pass
            import torch
            print(torch is flambeau)
        print("torch" in sys.modules)
    """).splitlines() == [
        "[] flambeau.float32 <class 'flambeau.nn.modules.activation.ReLU'>", "True", "True", "False"]


def test_a_torch_that_is_imported_already_is_not_overridden():
    done = python("-c", "import sys, types; sys.modules['torch'] = types.ModuleType('torch')\n"
                        "import flambeau.alias; flambeau.alias.install()")
    assert "RuntimeError: torch is imported already, and it is not flambeau" in done.stderr


def test_torchviz_itself_draws_flambeaus_graphs():
    pytest.importorskip("torchviz")
    assert aliased("""
        import warnings
        warnings.simplefilter("ignore")
        import torch, torchviz
        x = torch.ones(3, 2, requires_grad=True)
        source = torchviz.make_dot((x * 2).exp().sum(), params={"x": x}, show_attrs=True, show_saved=True).source
        print("ExpBackward0" in source, "(3, 2)" in source, "orange" in source)
    """) == "True True True\n"
