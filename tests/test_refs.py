"""`torch._refs`, whose functions are the operators themselves, beside PyTorch."""

import functools
import importlib

import pytest

import flambeau
import flambeau._refs

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.parity

VALUES = {
    "T": ([[1.0, 2.0]],), "alias": ([1.0],), "copy_to": ([0.0], [2.0]), "rpow": ([1.5, -2.5], 2),
    "to": ([1.5], "int64"),
    "rtruediv": ([1.5], 2), "rfloordiv": ([1.5], 2), "trunc_divide": ([1.5, -2.5], 2), "zero": ([1.0],),
    "swap_axes": ([[1.0, 2.0]], 0, 1), "sum": ([1.0, 2.0],), "expand": ([1.0], 2, 2), "view": ([1.0, 2.0], 2, 1),
    "add_": ([1.0], 2), "item": ([1.0],), "_conversions.half": ([1.0],), "_conversions.polar": ([1.0], [0.0]),
    "special.expit": ([0.0],), "linalg.vector_norm": ([3.0, 4.0],), "fft.fft": ([1.0, 2.0],),
    "nn.functional.softshrink": ([1.0],),
    "prod": ([[2.0, 3.0]], (0, 1), True),
}


@pytest.mark.parametrize("name", VALUES)
def test_functions(name):
    results = []
    for m in (flambeau, torch):
        importlib.import_module(f"{m.__name__}._refs.{name}".rpartition(".")[0])
        arguments = [m.tensor(a) if isinstance(a, list) else getattr(m, a) if isinstance(a, str) else a
                     for a in VALUES[name]]
        result = functools.reduce(getattr, name.split("."), m._refs)(*arguments)
        results.append(result if isinstance(result, float) else (result.tolist(), str(result.dtype).rpartition(".")[2]))
    assert results[0] == results[1]


def test_copies_and_missing_names():
    x = flambeau.ones(3)
    assert flambeau._refs.exponential(x).shape == (3,)
    assert x.tolist() == [1, 1, 1]
    with pytest.raises(AttributeError, match="no attribute 'neither'"):
        _ = flambeau._refs.neither
    with pytest.raises(AttributeError, match="no attribute 'neither'"):
        _ = flambeau._refs._conversions.neither
