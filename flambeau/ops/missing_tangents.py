"""Missing tangents: the error of an operator that has no formula for forward mode."""

from __future__ import annotations

from typing import NoReturn


def refuse_forward_mode(operator: str) -> NoReturn:
    """Raise PyTorch's error; `operator` is the name in the schema."""
    raise NotImplementedError(
        f"Trying to use forward AD with {operator} that does not support it because it has not been implemented yet.\n"
        "Please file an issue to PyTorch at https://github.com/pytorch/pytorch/issues/new?template=feature-request.yml "
        "so that we can prioritize its implementation or submit a PR adding the implementation to derivatives.yaml")


__all__ = ["refuse_forward_mode"]
