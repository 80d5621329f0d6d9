"""The comparison of what statements of docstrings show."""

from __future__ import annotations

import pytest

from tests.packages.docstrings import _statements, agree, shown


@pytest.mark.parametrize(("ours", "theirs", "same"), [
    ("flambeau.float32", "torch.float32", True),
    ("tensor([0.12345])", "tensor([0.12346])", True),
    ("tensor([0.1234])", "tensor([0.1334])", False),
    ("tensor([1., 2.])", "tensor([1., 2.],\n       dtype=torch.float64)", False),
    ("tensor([[1],\n        [2]])", "tensor([[1], [2]])", True),
    ("<object at 0x7f01>", "<object at 0x7f02>", True),
    ("tensor([1.])", "tensor([1., 2.])", False),
])
def test_texts_agree_but_for_names_addresses_and_rounding(ours: str, theirs: str, same: bool) -> None:
    assert agree(ours, theirs) is same


def test_statements_of_a_docstring() -> None:
    def function() -> None:
        """Examples:

        >>> x = 1
        >>> for i in range(2):
        ...     print(i + x)
        1
        2
        """

    assert _statements(function) == ["x = 1\n", "for i in range(2):\n    print(i + x)\n"]
    namespace: dict[str, int] = {}
    assert [shown(each, namespace) for each in _statements(function)] == ["", "1\n2\n"]
    assert shown("1 / 0\n", {}) == "ZeroDivisionError: division by zero"
