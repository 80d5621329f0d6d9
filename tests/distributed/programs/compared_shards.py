"""Comparisons of sharded tensors that differ in one process only."""

from __future__ import annotations

import importlib
from typing import Any


def main(torch: Any, rank: int, size: int) -> list[bool]:
    st, ss = (importlib.import_module(f"{torch.__name__}.distributed._shard.{name}")
              for name in ("sharded_tensor", "sharding_spec"))
    spec = ss.ChunkShardingSpec(0, [f"rank:{each}/cpu" for each in range(size)])
    a, b, c = st.ones(spec, 4, 2), st.ones(spec, 4, 2), st.ones(spec, 4, 2)
    if rank == 1:
        c.local_tensor()[0, 0] += 1e-3
    return [torch.equal(a, b), torch.equal(a, c), torch.allclose(a, c, atol=1e-2), torch.allclose(a, c)]
