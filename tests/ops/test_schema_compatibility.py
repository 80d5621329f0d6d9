"""Whether schemas are compatible with older ones, compared with PyTorch."""

from __future__ import annotations

import itertools

import pytest

import flambeau

SCHEMAS = """
f(Tensor a, int b) -> Tensor
f(Tensor a, int b=1) -> Tensor
f(Tensor a, int b=2) -> Tensor
f(Tensor a, int? b) -> Tensor
f(Tensor a, int b, int c=1) -> Tensor
f(Tensor a, int b, int c) -> Tensor
f(Tensor a, int b, int[] c=[1, 2]) -> Tensor
f(Tensor a, int b, int[2] c=1) -> Tensor
f(Tensor a, Scalar b) -> Tensor
f(Tensor a, float b) -> Tensor
f(Tensor a, *, int b) -> Tensor
f(Tensor(a) a, int b) -> Tensor(a)
f(Tensor(a!) a, int b) -> Tensor(a!)
f(Tensor(b!) a, int b) -> Tensor(b!)
f(Tensor x, int b) -> Tensor
f(Tensor a, int b) -> Tensor?
f(Tensor a, int b) -> (Tensor, Tensor)
f(Tensor a, int b) -> Tensor out
g(Tensor a, int b) -> Tensor
f.x(Tensor a, int b) -> Tensor
f(Tensor a, int b, *, Tensor(a!) out) -> Tensor(a!)
f(Tensor a, int b, int c=1, *, Tensor(a!) out) -> Tensor(a!)
f(Tensor a, int b, int c, *, Tensor(a!) out) -> Tensor(a!)
f(Tensor a, int b, *, Tensor(a!) out, Tensor(b!) other) -> (Tensor(a!), Tensor(b!))
f(Tensor a, int b, *, Tensor(a!) other) -> Tensor(a!)
f(Tensor[] a, int b) -> Tensor
""".strip().splitlines()


def test_pairs_of_schemas() -> None:
    torch = pytest.importorskip("torch")
    ours, theirs = ([t._C.parse_schema(text) for text in SCHEMAS] for t in (flambeau, torch))
    compatible = 0
    for i, j in itertools.product(range(len(SCHEMAS)), repeat=2):
        what = f"{SCHEMAS[i]} after {SCHEMAS[j]}"
        found = ours[i].is_backward_compatible_with(ours[j])
        compatible += found
        assert found == theirs[i].is_backward_compatible_with(theirs[j]), what
        fits, why = ours[i].check_forward_compatible_with(ours[j])
        try:
            expected, reason = theirs[i].check_forward_compatible_with(theirs[j])
        except IndexError:  # PyTorch names an argument beyond the last one
            expected, reason = False, why
        assert fits == expected, what
        assert why == reason, what
    assert compatible > len(SCHEMAS)
