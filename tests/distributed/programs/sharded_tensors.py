"""`torch.distributed._shard`: what each of two processes sees of tensors in parts."""

from __future__ import annotations

import copy
import importlib
import pickle
import warnings
from typing import Any


def main(torch: Any, rank: int, size: int) -> list[str]:
    warnings.simplefilter("ignore")  # PyTorch deprecates the package with each call
    library = torch.__name__
    shard, st, ss = (importlib.import_module(f"{library}.distributed._shard{name}")
                     for name in ("", ".sharded_tensor", ".sharding_spec"))
    said: list[str] = []

    def say(*values: Any) -> None:
        said.append(" ".join(str(value) for value in values).replace("flambeau.", "torch."))

    def attempt(call: Any) -> None:
        try:
            say(call())
        except Exception as error:
            say(type(error).__name__, error)

    def part(*elements: Any, **options: Any) -> Any:
        metadata = ss.ShardMetadata([0, 2 * rank], [2, 2], f"rank:{rank}/cpu")
        return st.Shard(torch.full((2, 2), *elements, **options), metadata)

    spec = ss.ChunkShardingSpec(0, [f"rank:{each}/cpu" for each in range(size)])
    t = st.full(spec, (5, 3), 2.5, requires_grad=True)
    say(t, t.shape, t.dtype, t.requires_grad, t.device, t.local_tensor(), t.size(), t.dim(), t.is_leaf)
    x = torch.arange(15.0).reshape(5, 3)
    s = shard._shard_tensor(x if rank == 0 else torch.zeros(5, 3), spec)
    say(s.local_tensor(), s.sharding_spec())
    for tensor, target in ((t, 0), (s, 1)):
        out = torch.empty(5, 3) if rank == target else None
        tensor.gather(target, out)
        say(out)
    attempt(lambda: s.gather(0, torch.ones(1) if rank else None))
    attempt(lambda: s.gather(0, torch.ones(1)))
    c = s.clone()
    c.copy_(t)
    say(c.local_tensor().flatten()[:2], s.detach().requires_grad, copy.deepcopy(s).local_tensor())
    say(s.to(torch.float64).local_tensor(), s.to(torch.float64).dtype, s.cpu() is s, s.to("cpu") is s)
    attempt(lambda: s + 1)
    attempt(lambda: torch.sin(s))
    say(s.type_as(torch.ones(1, dtype=torch.int64)).local_tensor())
    say(t.requires_grad_(False).local_tensor().requires_grad)

    made = st.init_from_local_shards([part(float(rank))], 2, 2 * size)
    say(made, made.sharding_spec())
    attempt(lambda: st.init_from_local_shards([part(1.0)], 2, 7))
    attempt(lambda: st.init_from_local_shards([part(1.0, dtype=torch.float32 if rank else torch.float64)], 2, 4))
    same = ss.ShardMetadata([0, 0], [2, 2], f"rank:{rank}/cpu")
    attempt(lambda: st.init_from_local_shards([st.Shard(torch.ones(2, 2), same)], 2, 4))
    attempt(lambda: st.init_from_local_shards([], 2, 4))
    attempt(lambda: ss.ChunkShardingSpec("x", ["rank:0/cpu"]))
    attempt(lambda: ss.ChunkShardingSpec(3, ["rank:0/cpu"]).build_metadata(torch.Size([2]), None))
    attempt(lambda: ss.EnumerableShardingSpec([]))
    attempt(lambda: ss.EnumerableShardingSpec([ss.ShardMetadata([0, 0], [2, 2]), ss.ShardMetadata([1, 1], [2, 2])]))
    attempt(lambda: ss.EnumerableShardingSpec([ss.ShardMetadata([0], [2])]).build_metadata([3], None))
    attempt(lambda: st.Shard(torch.ones(2), ss.ShardMetadata([0], [3])))
    attempt(lambda: ss.ShardMetadata([-1], [2]))
    attempt(lambda: ss.ShardMetadata([1], [2, 3]))

    data = pickle.dumps(s)
    say(pickle.loads(data), pickle.loads(data).local_tensor())
    with shard.load_with_process_group(torch.distributed.group.WORLD):
        say(pickle.loads(data).shape)
    properties = st.TensorProperties(torch.float16)
    say(st.TensorProperties(), pickle.loads(pickle.dumps(properties)))

    linear = torch.nn.Linear(3, 4)
    shard.shard_parameter(linear, "weight", spec)
    say(type(linear.weight).__name__, isinstance(linear.weight, torch.nn.Parameter), linear.weight.shape,
        linear.weight.local_tensor().shape, linear.weight.requires_grad, sorted(linear.state_dict()))
    attempt(lambda: shard.shard_parameter(linear, "no", spec))

    class Holder(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.w = st.ones(spec, 4, 2)
            self._register_state_dict_hook(st.state_dict_hook)
            self._register_load_state_dict_pre_hook(st.pre_load_state_dict_hook, True)

    first, second = Holder(), Holder()
    state = first.state_dict()
    second.load_state_dict(state, strict=False)
    torch.nn.init.constant_(first.w, 7.0)
    say(list(state), second.w is state["w"], second.w.local_tensor())

    @st.custom_sharded_op_impl(torch.nn.functional.linear)
    def multiply(types: Any, args: Any, kwargs: Any, group: Any) -> Any:
        return len(types), len(args), group.size()

    say(torch.nn.functional.linear(torch.ones(2, 3), s))
    return said
