"""`functionalize`: removes mutations, and optionally views, from traced programs."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from .derivatives import transform


class Frame:
    """A call of a functionalized function: whether views become copies, and what makes the nodes of a trace of it."""

    def __init__(self, copies: bool) -> None:
        self.copies = copies
        self.functionalizer: Any = None


#: the calls of functionalized functions that are running, innermost last
frames: list[Frame] = []


def functionalize(func: Callable[..., Any], *, remove: str = "mutations") -> Callable[..., Any]:
    """`func` without mutations, and optionally without views, in traced programs.

    Eager calls have the results and the writes to inputs of `func`, as in PyTorch.
    See https://docs.pytorch.org/docs/stable/generated/torch.func.functionalize.html

    Args:
        remove: "mutations" or "mutations_and_views".

    Raises:
        RuntimeError: `remove` has another value.

    >>> import flambeau as torch
    >>> torch.func.functionalize(lambda x: x.clone().add_(1))(torch.ones(2))
    tensor([2., 2.])
    """
    if remove not in ("mutations", "mutations_and_views"):
        raise RuntimeError(
            f"functionalize(f, remove='mutations'): received invalid argument for remove={remove}. Valid options are:\n"
            "     remove='mutations': all inplace and out= operators will be removed from the program, and replaced "
            "with their out-of-place equivalents.\n"
            "     remove='mutations_and_views': In addition to the above, all aliasing operators {view} will be "
            "replaced with their non-aliasing counterparts, {view}_copy.\n")

    @functools.wraps(func)
    def wrapped(*args: Any, **kwargs: Any) -> Any:
        frame = Frame(remove == "mutations_and_views")
        frames.append(frame)
        try:
            with transform("functionalize"):
                result = func(*args, **kwargs)
        finally:
            frames.pop()
        if frame.functionalizer is not None:
            frame.functionalizer.finish((args, kwargs), result)
        return result

    return wrapped
