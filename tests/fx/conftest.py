"""Fake tensors that the tests leave in reference cycles are freed: small operators are slower while there are some."""

from __future__ import annotations

import gc

import pytest


@pytest.fixture(scope="module", autouse=True)
def no_fake_tensors_are_left():
    yield
    gc.collect()
