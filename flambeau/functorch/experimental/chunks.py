"""`chunk_vmap`: a batch in a given number of parts."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from ...func.batches import _process_batched_inputs, vmap

__all__ = ["chunk_vmap"]


def chunk_vmap(func: Callable[..., Any], in_dims: Any = 0, out_dims: Any = 0, randomness: str = "error",
               chunks: int = 2) -> Callable[..., Any]:
    """`torch.vmap` that applies `func` to one of `chunks` parts of the batch at a time.

    Args:
        in_dims, out_dims, randomness: as of `torch.vmap`.
        chunks: the number of parts.

    Raises:
        RuntimeError: `chunks` is not positive.

    >>> import flambeau as torch
    >>> from flambeau.functorch.experimental import chunk_vmap
    >>> chunk_vmap(torch.sum, chunks=3)(torch.ones(4, 2))
    tensor([2., 2., 2., 2.])
    """
    mapped = functools.partial(vmap, func, in_dims, out_dims, randomness)
    if chunks == 1:
        return mapped()
    mapped()  # checks `randomness`

    @functools.wraps(func)
    def wrapped(*args: Any, **kwargs: Any) -> Any:
        size = _process_batched_inputs(in_dims, args, func)[0]
        if chunks <= 0:
            raise RuntimeError(f"chunk expects `chunks` to be greater than 0, got: {chunks}")
        return mapped(chunk_size=-(-size // chunks) or None)(*args, **kwargs)

    return wrapped
