"""Modules that are imported on first use: the tables, and functions and methods before and after their import."""

from __future__ import annotations

import subprocess
import sys

import pytest

import flambeau as torch
from flambeau import lazy_modules
from tests import lazy_modules as tables


def in_new_process(code: str) -> str:
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.strip()


def test_tables_are_those_of_the_modules():
    assert tables.text() == tables.FILE.read_text(encoding="utf-8"), "run `python -m tests.lazy_modules --write`"


@pytest.mark.smoke
def test_importing_the_package_imports_few_modules():
    code = "import sys, flambeau; print(*(name for name in sys.modules if name.startswith('flambeau.')))"
    names = in_new_process(code).split()
    assert len(names) < 191
    lazy = {f"flambeau.{package}.{module}" for package, table in (
        ("ops", lazy_modules.OPERATORS), ("_tensor", lazy_modules.FUNCTIONS),
        ("backends.numpy", lazy_modules.PRIMITIVES)) for module in table}
    assert len(lazy.intersection(names)) < len(lazy) / 4


def test_a_function_and_a_method_stay_the_same_objects():
    out = in_new_process("""if True:
        import flambeau as torch
        from flambeau._tensor.tensor import TensorBase
        before = [torch.linalg.svd, torch.trace, torch.Tensor.trace, torch.Tensor.stft, torch.Tensor.cosh_]
        names = dir(torch)
        class Subclass(torch.Tensor):
            @classmethod
            def __torch_function__(cls, func, types, args=(), kwargs=None):
                seen.append(func)
                return super().__torch_function__(func, types, args, kwargs or {})
        seen = []
        x = torch.ones(2, 2).as_subclass(Subclass)  # replaces the code of all functions and methods
        x.trace(), torch.trace(x), x.cosh_(), torch.linalg.svd(x)
        after = [torch.linalg.svd, torch.trace, torch.Tensor.trace, torch.Tensor.stft, torch.Tensor.cosh_]
        assert all(a is b for a, b in zip(before, after)) and dir(torch) == names
        assert [f.__name__ for f in seen] == ["trace", "trace", "cosh_", "linalg_svd"], seen
        assert seen[0] is torch.Tensor.trace and seen[1] is torch.trace
        assert vars(torch.Tensor)["trace"] is vars(TensorBase)["trace"]
        print("same")
    """)
    assert out == "same"


def test_a_method_that_is_replaced_before_its_first_use():
    out = in_new_process("""if True:
        import flambeau as torch
        lazy = vars(torch.Tensor)["cumsum"]
        torch.Tensor.cumsum = lambda self, dim: "replaced"
        assert torch.ones(2).cumsum(0) == "replaced"
        torch.Tensor.cumsum = lazy  # as monkeypatch puts it back
        assert torch.ones(2).cumsum(0).tolist() == [1, 2]
        class Subclass(torch.Tensor):
            def cumprod(self, dim):
                return super().cumprod(dim)
        assert torch.ones(2).as_subclass(Subclass).cumprod(0).tolist() == [1, 1]
        print(torch.Tensor.cumsum.__qualname__)
    """)
    assert out == "cumsum"


def test_threads_get_the_same_function():
    out = in_new_process("""if True:
        import sys, threading
        import flambeau as torch
        sys.setswitchinterval(1e-6)
        found, barrier = [], threading.Barrier(8)
        def look_up():
            barrier.wait()
            found.append((torch.svd, torch.cosh, torch.Tensor.erfinv, torch.Tensor.cosh_, torch.fft.fft, torch.conv2d))
        threads = [threading.Thread(target=look_up) for _ in range(8)]
        for thread in threads: thread.start()
        for thread in threads: thread.join()
        assert len(found) == 8 and len({tuple(map(id, each)) for each in found}) == 1
        print("same")
    """)
    assert out == "same"


def test_unknown_names():
    for space in (torch, torch.Tensor, torch.linalg):
        assert not hasattr(space, "no_such_operator")
    from flambeau.ops.declare import REGISTRY
    assert REGISTRY.get("no_such_operator") is None
    assert "no_such_operator" not in REGISTRY
    with pytest.raises(KeyError):
        REGISTRY["no_such_operator"]
