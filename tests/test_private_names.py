"""Private names that packages use behave as PyTorch's."""

from __future__ import annotations

import importlib

import pytest

import flambeau

torch = pytest.importorskip("torch")


def both(name):
    """A name of both libraries, flambeau's first."""
    module, _, attribute = name.rpartition(".")
    return [getattr(importlib.import_module(f"{library}.{module}"), attribute) for library in ("flambeau", "torch")]


def outcome(function, *args):
    """What a call returns, as text, or its error."""
    try:
        return str(function(*args))
    except Exception as error:
        return type(error).__name__, str(error)


@pytest.mark.parametrize("text", ["cpu", "worker0", "worker0/cpu", "rank:1/cpu", "rank:1", "/cpu", "rank:a/cpu",
                                  "a/b/c", "cuda:0", "rank:0/cuda:1", "worker/xyz", "rank:1/", ""])
def test_remote_devices(text):
    ours, theirs = both("distributed.remote_device._remote_device")

    def parts(cls):
        place = cls(text)
        return str(place), place.worker_name(), place.rank(), str(place.device()), hash(place) == hash(cls(text))

    assert outcome(parts, ours) == outcome(parts, theirs)


def test_composite_operators():
    ours, theirs = both("_export.utils._is_cia_op")
    names = ("linear.default", "add.Tensor", "matmul.default", "relu.default", "layer_norm.default", "softmax.int",
             "native_layer_norm.default", "silu.default", "dropout.default", "conv2d.default", "batch_norm.default")

    def answers(library, asked):
        return [asked(getattr(getattr(library.ops.aten, name.partition(".")[0]), name.partition(".")[2]))
                for name in names]

    assert answers(flambeau, ours) == answers(torch, theirs)


def test_errors_of_the_exporter():
    for library in ("flambeau", "torch"):
        errors = importlib.import_module(f"{library}._export.error")
        assert repr(errors.ExportError(errors.ExportErrorType.NOT_SUPPORTED, "m")) == (
            "ExportError('[ExportErrorType.NOT_SUPPORTED]: m')")
        with pytest.raises(errors.InternalError, match="x"):
            errors.internal_assert(False, "x")


def test_deprecated_base_of_transposed_convolutions():
    for base in both("nn.modules.conv._ConvTransposeMixin"):
        with pytest.warns(FutureWarning, match="deprecated"):
            base(1, 1, (1,), (1,), (0,), (1,), True, (0,), 1, True, "zeros")


def test_importing_tables_of_decompositions_fills_none_of_them():
    """Importing fx does not watch all functions; the table of decompositions is made when it is read."""
    import subprocess
    import sys

    source = ("import sys, flambeau.fx, flambeau._decomp as d\n"
              "assert 'flambeau.overrides' not in sys.modules\n"
              "assert 'flambeau.export.decomp_registry.derived' not in sys.modules\n"
              "assert len(d.decomposition_table) > 400\n"
              "assert d.global_decomposition_table['post_autograd'] is d.decomposition_table")
    subprocess.run([sys.executable, "-c", source], check=True)


@pytest.mark.parametrize("name", ["LazyString", "getArtifactLogger", "set_logs", "trace_structured", "warning_once"])
def test_names_of_logging_are_in_its_private_module_too(name):
    ours, theirs = both(f"_logging._internal.{name}")
    assert ours is getattr(flambeau._logging, name)
    assert callable(theirs)
