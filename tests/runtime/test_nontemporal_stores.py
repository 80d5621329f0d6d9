"""Non-temporal stores: results, where they are used, and the measured threshold."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from flambeau import dtypes
from flambeau.codegen.elementwise import elementwise
from flambeau.codegen.rows import rows
from flambeau.codegen.rows.rows import Rows
from flambeau.codegen.scalar import scalar_ir as e
from flambeau.dtypes import BFLOAT16
from flambeau.runtime import cache_store, cpu_cache, launch, nontemporal_stores, nontemporal_threshold
from flambeau.runtime.launch import Spec


def random(*shape, dtype="float32", seed=0):
    return dtypes.cast(np.random.default_rng(seed).standard_normal(shape).astype("float32"), np.dtype(dtype))


@pytest.fixture
def small_cache(monkeypatch):
    """Non-temporal stores for all sizes; returns a function that enables or disables them and clears cached kernels."""
    monkeypatch.setattr(nontemporal_stores, "are_faster", lambda size: True)

    def set_enabled(enabled):
        monkeypatch.setattr(nontemporal_stores, "are_faster", lambda size: enabled)
        rows._kernels.clear()

    rows._kernels.clear()
    yield set_enabled
    rows._kernels.clear()


def sums(outs, ins):
    x, y = (e.variable(i, outs[0].dtype) for i in range(2))
    work = elementwise.launches([e.cast(x + y, outs[0].dtype)], [Spec.of(outs[0])], [Spec.of(each) for each in ins])
    launch.run(work, [*outs, *ins])


@pytest.mark.usefixtures("small_cache")
@pytest.mark.parametrize("dtype", ["float16", "float32", "float64", BFLOAT16], ids=str)
@pytest.mark.parametrize("n", [1, 15, 16, 17, 64, 1000, 40_000, 1_000_003])
def test_every_length_and_alignment(n, dtype):
    for first in (0, 1, 16, 32):
        memory = random(3 * n + 256, dtype=dtype)
        x, y = memory[:n], memory[n:2 * n]
        room = np.zeros(n + 256, x.dtype)
        sums([room[first:first + n]], [x, y])
        want = dtypes.cast(dtypes.widen(x) + dtypes.widen(y), x.dtype)
        assert room[first:first + n].tobytes() == want.tobytes()
        assert not room[:first].tobytes().strip(b"\0")
        assert not room[first + n:].tobytes().strip(b"\0")


@pytest.mark.usefixtures("small_cache")
def test_in_place():
    x, y = random(100_000), random(100_000, seed=1)
    want = x + y
    sums([x], [x, y])
    np.testing.assert_array_equal(x, want)


@pytest.mark.usefixtures("small_cache")
@given(st.sampled_from([(3, 40), (5, 1000), (64, 64), (2, 7, 128), (17, 33)]), st.data())
@settings(max_examples=40, deadline=None)
def test_broadcast_and_strided_operands(shape, data):
    shapes = [tuple(1 if data.draw(st.integers(0, 3)) == 0 else n for n in shape) for _ in range(2)]
    x, y = (random(*each, seed=i) for i, each in enumerate(shapes))
    out = np.zeros(shape[::-1], np.float32).transpose() if data.draw(st.booleans()) else np.zeros(shape, np.float32)
    sums([out], [x, y])
    np.testing.assert_array_equal(out, np.broadcast_to(x + y, shape))


X, MEAN, VARIANCE = (e.variable(i, "float32") for i in range(3))
NORM = Rows(stages=((("mean", X),), (("mean", (X - MEAN) * (X - MEAN)),)),
            elementwise=((X - MEAN) / e.sqrt(VARIANCE + 1e-5), X - MEAN), per_row=(MEAN,), column_sums=(X,))


@pytest.mark.parametrize("shape", [(3, 7), (40, 64), (100, 1000), (33, 1024), (2, 300_000), (5000, 3)])
def test_rows(shape, small_cache):
    found = []
    x = random(*shape)
    for enabled in (False, True):
        small_cache(enabled)
        outs = [np.zeros(shape, np.float32), np.zeros(shape, np.float32), np.zeros(shape[:1], np.float32),
                np.zeros(shape[1:], np.float32)]
        launch.run(rows.launches(NORM, [Spec.of(each) for each in outs], [Spec.of(x)], 1), [*outs, x])
        found.append([each.tobytes() for each in outs])
    assert found[0] == found[1]


def test_only_memory_bound_kernels(small_cache):
    x = e.variable(0, "float32")
    spec = Spec.of(random(1 << 12))
    for expression, goes in ((x * 2, True), (e.exp(x), False)):
        [work] = elementwise.launches([expression], [spec], [spec])
        assert ("!nontemporal" in work.library.ir) is goes
    small_cache(False)
    [work] = elementwise.launches([x * 2], [spec], [spec])
    assert "!nontemporal" not in work.library.ir


def test_never_below_the_last_level_cache(monkeypatch):
    assert not nontemporal_stores.are_faster(cpu_cache.MIN_LAST_LEVEL - 1)
    monkeypatch.setattr(nontemporal_threshold, "threshold", lambda last: last)
    assert nontemporal_stores.are_faster(cpu_cache.last_level_size())
    assert not nontemporal_stores.are_faster(cpu_cache.last_level_size() - 1)
    monkeypatch.setattr(nontemporal_threshold, "threshold", lambda last: 0)
    assert not nontemporal_stores.are_faster(cpu_cache.last_level_size() - 1)
    monkeypatch.setattr(cpu_cache, "_SYSFS", "/nowhere")
    assert cpu_cache.last_level_size.__wrapped__() == cpu_cache.DEFAULT_LAST_LEVEL


@pytest.mark.parametrize("nontemporal", [0, 1])
def test_the_timed_code_adds(nontemporal):
    memory, address = launch.allocate_aligned(3 * 8192)
    first = address - memory.ctypes.data
    out, x, y = (memory[first + i * 8192:][:8192].view(np.float32) for i in range(3))
    x[:], y[:], out[:] = random(2048), random(2048, seed=1), 0
    code = nontemporal_threshold.library()
    launch.run([launch.Launch(code, code.address("body"), 4, (2048, nontemporal))], [out, x, y])
    np.testing.assert_array_equal(out, x + y)


def test_the_threshold_is_measured_once(monkeypatch, tmp_path):
    monkeypatch.setenv("FLAMBEAU_CACHE_DIR", str(tmp_path))
    monkeypatch.setattr(nontemporal_threshold, "_known", {})
    found = nontemporal_threshold.threshold(4 << 20)
    assert found in {int(each * (4 << 20)) for each in (*nontemporal_threshold.MULTIPLES,
                                                        2 * nontemporal_threshold.MULTIPLES[-1])}
    monkeypatch.setattr(nontemporal_threshold, "measure", lambda last: pytest.fail("it is known"))
    assert nontemporal_threshold.threshold(4 << 20) == found
    nontemporal_threshold._known.clear()
    assert nontemporal_threshold.threshold(4 << 20) == found  # from disk
    assert nontemporal_threshold.threshold(1 << 30) == 1 << 30  # too much memory to try it


def test_a_damaged_measurement_is_repeated(monkeypatch, tmp_path):
    monkeypatch.setenv("FLAMBEAU_CACHE_DIR", str(tmp_path))
    monkeypatch.setattr(nontemporal_threshold, "_known", {})
    monkeypatch.setattr(nontemporal_threshold, "measure", lambda last: last)
    assert nontemporal_threshold.threshold(4 << 20) == 4 << 20
    [entry] = (tmp_path / "measurements").iterdir()
    cache_store.MEASUREMENTS.write(entry.name, b"neither a number nor anything else")
    nontemporal_threshold._known.clear()
    assert nontemporal_threshold.threshold(4 << 20) == 4 << 20
