"""Peak rates: measured once, cached, and the roofline of kernels."""

from __future__ import annotations

import pytest

from flambeau.codegen import roofline
from flambeau.codegen.roofline import Peaks
from flambeau.kernels import threads
from flambeau.runtime import cache_store

MACHINE = Peaks(2, 100e9, 50e9, ((1 << 14, 80e9), (1 << 18, 100e9), (1 << 26, 10e9)))


def test_bandwidth_does_not_grow_with_the_working_set():
    assert MACHINE.rate(1000) == MACHINE.rate(1 << 14) == MACHINE.rate(1 << 18) == 100e9
    assert MACHINE.rate((1 << 18) + 1) == MACHINE.rate(1 << 30) == 10e9


def test_the_roofline_is_the_longer_of_the_two_times():
    assert MACHINE.seconds(1 << 30, 10) == pytest.approx((1 << 30) / 10e9)
    assert MACHINE.seconds(8, 10**9) == pytest.approx(0.01)
    assert MACHINE.seconds(8, 10**9, wide=True) == pytest.approx(0.02)


def test_as_text():
    assert str(MACHINE) == "10 GB/s in 64 MB, 100 GB/s in 16 KB, 100 Gflop/s in float32, 50 in float64, 2 threads"


def test_the_better_of_two_measurements():
    other = Peaks(2, 90e9, 60e9, ((1 << 14, 90e9), (1 << 18, 90e9), (1 << 26, 12e9)))
    assert MACHINE.merge(other) == Peaks(2, 100e9, 60e9, ((1 << 14, 90e9), (1 << 18, 100e9), (1 << 26, 12e9)))


def test_peaks_are_measured_once_and_cached(monkeypatch, tmp_path):
    monkeypatch.setenv("FLAMBEAU_CACHE_DIR", str(tmp_path))
    monkeypatch.setattr(roofline, "_cached_peaks", {})
    found = roofline.peaks()
    assert found.threads == threads.count()
    assert found.float32 > 1e8  # regardless of the machine's load
    assert found.float64 > 1e8
    assert [size for size, _ in found.bandwidth] == list(roofline.SIZES)
    assert all(rate > 1e7 for _, rate in found.bandwidth)

    def refuse():
        raise AssertionError("measured again")

    monkeypatch.setattr(roofline, "measure", refuse)
    assert roofline.peaks() is found
    monkeypatch.setattr(roofline, "_cached_peaks", {})  # as another process finds it
    assert roofline.peaks() == found
    quicker = found._replace(float32=2 * found.float32, float64=found.float64 / 2)
    monkeypatch.setattr(roofline, "measure", lambda: quicker)
    better = quicker._replace(float64=found.float64)
    assert roofline.peaks(again=True) == better
    monkeypatch.setattr(roofline, "_cached_peaks", {})
    assert roofline.peaks() == better


def test_another_number_of_threads_has_other_peaks(monkeypatch, tmp_path):
    monkeypatch.setenv("FLAMBEAU_CACHE_DIR", str(tmp_path))
    monkeypatch.setattr(roofline, "_cached_peaks", {})
    monkeypatch.setattr(roofline, "measure", lambda: MACHINE._replace(threads=threads.count()))
    before = threads.count()
    try:
        for count in (1, before):
            threads.limit(count)
            assert roofline.peaks().threads == count
    finally:
        threads.limit(before)


def test_a_damaged_entry_is_measured_again(monkeypatch, tmp_path):
    monkeypatch.setenv("FLAMBEAU_CACHE_DIR", str(tmp_path))
    monkeypatch.setattr(roofline, "_cached_peaks", {})
    monkeypatch.setattr(roofline, "measure", lambda: MACHINE)
    roofline.peaks()
    [entry] = (tmp_path / "measurements").iterdir()
    cache_store.MEASUREMENTS.write(entry.name, b'{"threads": 2}')
    monkeypatch.setattr(roofline, "_cached_peaks", {})
    assert roofline.peaks() == MACHINE
