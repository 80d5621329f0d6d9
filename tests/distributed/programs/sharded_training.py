"""Three networks trained by every kind of parallelism: losses and norms of gradients are those of one process."""

from contextlib import nullcontext
from importlib import import_module

from tests.distributed.ranks import Log

VOCABULARY, WIDTH, HEADS, LENGTH = 32, 16, 4, 8


def main(torch, rank, size):
    log = Log(torch)
    dist, nn, F = torch.distributed, torch.nn, torch.nn.functional
    tensor = import_module(f"{torch.__name__}.distributed.tensor")
    parallel = import_module(f"{torch.__name__}.distributed.tensor.parallel")
    fsdp = import_module(f"{torch.__name__}.distributed.fsdp")
    wrap = import_module(f"{torch.__name__}.distributed.fsdp.wrap")
    optim = import_module(f"{torch.__name__}.distributed.optim")
    mesh_of = import_module(f"{torch.__name__}.distributed.device_mesh").init_device_mesh
    Shard, Replicate, DTensor = tensor.Shard, tensor.Replicate, tensor.DTensor

    class Block(nn.Module):
        def __init__(self):
            super().__init__()
            self.norm_1, self.norm_2 = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
            self.q, self.k, self.v, self.out = (nn.Linear(WIDTH, WIDTH) for _ in range(4))
            self.up, self.down = nn.Linear(WIDTH, 4 * WIDTH), nn.Linear(4 * WIDTH, WIDTH)

        def forward(self, x):
            normed = self.norm_1(x)
            q, k, v = (f(normed) for f in (self.q, self.k, self.v))
            batch, length = q.shape[:2]
            q, k, v = (a.view(batch, length, -1, WIDTH // HEADS).transpose(1, 2) for a in (q, k, v))
            y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
            x = x + self.out(y.transpose(1, 2).reshape(batch, length, -1))
            return x + self.down(F.gelu(self.up(self.norm_2(x))))

    class GPT(nn.Module):
        def __init__(self):
            super().__init__()
            self.token, self.place = nn.Embedding(VOCABULARY, WIDTH), nn.Embedding(LENGTH, WIDTH)
            self.blocks = nn.ModuleList(Block() for _ in range(2))
            self.norm, self.head = nn.LayerNorm(WIDTH), nn.Linear(WIDTH, VOCABULARY)

        def forward(self, tokens):
            x = self.token(tokens) + self.place(torch.arange(tokens.shape[1]))
            for block in self.blocks:
                x = block(x)
            return self.head(self.norm(x))

    def mlp():
        return nn.Sequential(nn.Linear(6, 10), nn.Tanh(), nn.Sequential(nn.Linear(10, 7), nn.GELU()), nn.Linear(7, 3))

    def cnn():
        return nn.Sequential(nn.Conv2d(2, 5, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),
                             nn.Sequential(nn.Conv2d(5, 4, 3), nn.ReLU()), nn.Flatten(), nn.Linear(16, 3))

    def tokens(step):
        return torch.randint(0, VOCABULARY, (8, LENGTH + 1), generator=torch.Generator().manual_seed(step))

    def points(shape):
        def make(step):
            x = (torch.arange(1.0, 1 + torch.Size(shape).numel()) * (0.7 + step)).sin().reshape(shape)
            return x, torch.arange(8) % 3
        return make

    tasks = {"mlp": (mlp, points((8, 6))), "cnn": (cnn, points((8, 2, 8, 8))), "gpt": (GPT, tokens)}

    def loss_of(model, data):
        if isinstance(data, tuple):
            return F.cross_entropy(model(data[0]), data[1])
        scores = model(data[:, :-1])
        return F.cross_entropy(scores.flatten(0, 1), data[:, 1:].flatten())

    def part(data, index, count):
        return tuple(x.chunk(count)[index] for x in data) if isinstance(data, tuple) else data.chunk(count)[index]

    def norm(model):
        """The norm of all gradients, whichever mesh they are on."""
        if isinstance(model, fsdp.FullyShardedDataParallel):
            return float(model.clip_grad_norm_(1e9))
        squares = 0.0
        for p in model.parameters():
            grad = p.grad.full_tensor() if isinstance(p.grad, DTensor) else p.grad
            squares += grad.double().pow(2).sum().item()
        return squares ** 0.5

    def train(name, change=lambda model: model, index=rank, count=size, group=None, steps=2, accumulate=1,
              around=nullcontext, clip=False, optimizer=lambda p: torch.optim.AdamW(p, lr=1e-2)):
        make, data = tasks[name]
        torch.manual_seed(0)
        model = change(make())
        updates = optimizer(model.parameters())
        report = []
        for step in range(steps):
            updates.zero_grad()
            total = 0.0
            own = part(data(step), index, count)
            for number in range(accumulate):
                if accumulate > 1:
                    model.set_requires_gradient_sync(number == accumulate - 1)
                with around():
                    loss = loss_of(model, part(own, number, accumulate)) / accumulate
                    loss.backward()
                total += (loss.full_tensor() if isinstance(loss, DTensor) else loss).item()
            if count > 1:
                mean = torch.tensor(total)
                dist.all_reduce(mean, group=group)
                total = mean.item() / count
            report.append((total, norm(model)))
            if clip:
                nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            updates.step()
        return report, model, updates

    reports = {}

    def compared(name, kind, *args, clip=False, **kwargs):
        """The report, and whether it agrees with that of one process to 1e-5."""
        def run():
            alone = reports.get((name, clip)) or train(name, index=0, count=1, clip=clip)[0]
            reports[name, clip] = alone
            report = train(name, *args, clip=clip, **kwargs)[0]
            pairs = [(a, b) for x, y in zip(alone, report, strict=True) for a, b in zip(x, y, strict=True)]
            return [round(a, 4) for a, _ in pairs], all(abs(a - b) <= 1e-5 * max(1, abs(a)) for a, b in pairs)
        log(f"{name}, {kind}", run)

    def sharded(**options):
        def change(model):
            inner = model.blocks if hasattr(model, "blocks") else [m for m in model if isinstance(m, nn.Sequential)]
            for module in inner:
                fsdp.fully_shard(module, **options)
            return fsdp.fully_shard(model, **options)
        return change

    def wrapped(strategy):
        return lambda model: fsdp.FullyShardedDataParallel(
            model, sharding_strategy=getattr(fsdp.ShardingStrategy, strategy), use_orig_params=True,
            device_id=torch.device("cpu"), auto_wrap_policy=wrap.ModuleWrapPolicy({nn.Sequential, Block}))

    def tensor_parallel(mesh, local_scores=True):
        column, row, sequence = parallel.ColwiseParallel, parallel.RowwiseParallel, parallel.SequenceParallel
        cut = Shard(1)

        def change(model):
            parallel.parallelize_module(model, mesh, {
                "token": row(input_layouts=Replicate(), output_layouts=cut),
                "place": row(input_layouts=Replicate(), output_layouts=Shard(0)), "norm": sequence(),
                "head": column(input_layouts=cut, output_layouts=Replicate()) if local_scores else column(
                    input_layouts=cut, use_local_output=False)})
            for block in model.blocks:
                parallel.parallelize_module(block, mesh, {
                    "norm_*": sequence(), **dict.fromkeys(("q", "k", "v", "up"), column(input_layouts=cut)),
                    **dict.fromkeys(("out", "down"), row(output_layouts=cut))})
            return model
        return change

    for name in tasks if size > 2 else ["mlp"]:  # two processes: what is compared with PyTorch
        compared(name, "data parallel", nn.parallel.DistributedDataParallel)
        compared(name, "ZeRO", nn.parallel.DistributedDataParallel, optimizer=lambda p: optim.ZeroRedundancyOptimizer(
            p, torch.optim.AdamW, lr=1e-2))
        compared(name, "fully_shard", sharded(), clip=True)
        compared(name, "FullyShardedDataParallel", wrapped("FULL_SHARD"))
    compared("gpt", "whole between passes", sharded(reshard_after_forward=False))
    if size > 2:
        compared("gpt", "SHARD_GRAD_OP", wrapped("SHARD_GRAD_OP"))
    for number in (1, 3, 0, -1, 2.5):
        log(f"resharded to {number}", lambda number=number: type(sharded(reshard_after_forward=number)(mlp())).__name__)
    compared("gpt", "accumulated", sharded(), accumulate=2)
    everyone = mesh_of("cpu", (size,))
    compared("gpt", "tensor parallel", tensor_parallel(everyone), index=0, count=1)
    compared("gpt", "loss parallel", tensor_parallel(everyone, False), index=0, count=1,
             around=parallel.loss_parallel)
    if size == 4:
        for name in "gpt", "mlp":
            compared(name, "parts of two processes between passes", sharded(reshard_after_forward=2))
        hybrid = mesh_of("cpu", (2, 2), mesh_dim_names=("replicate", "shard"))
        compared("gpt", "hybrid", sharded(mesh=hybrid))
        both = mesh_of("cpu", (2, 2), mesh_dim_names=("dp", "tp"))
        compared("gpt", "fully_shard and tensor parallel",
                 lambda model: sharded(mesh=both["dp"])(tensor_parallel(both["tp"])(model)),
                 index=rank // 2, count=2, group=both["dp"].get_group())

    def stored():
        model, updates = train("gpt", sharded(), steps=1)[1:]

        def count(tensors):
            parts = [x.to_local() if isinstance(x, DTensor) else x for x in tensors]
            return sum(x.numel() * x.element_size() for x in parts)
        return [count(model.parameters()), count(p.grad for p in model.parameters()),
                count(x for state in updates.state.values() for name, x in state.items() if name != "step")]
    log("bytes of parameters, gradients, states", stored)

    def dtypes():
        policy = fsdp.MixedPrecisionPolicy(param_dtype=torch.bfloat16, reduce_dtype=torch.float32,
                                           output_dtype=torch.float32)
        model = fsdp.fully_shard(mlp(), mp_policy=policy)
        out = model(torch.ones(2, 6))
        out.sum().backward()
        return [str(x.dtype).rpartition(".")[2] for x in (out, model[0].weight, model[0].weight.grad)]
    log("dtypes", dtypes)

    def states():
        model = sharded()(mlp())
        whole = {name: value.full_tensor() for name, value in model.state_dict().items()}
        torch.manual_seed(1)
        other = sharded()(mlp())
        other.load_state_dict(model.state_dict())
        return type(model).__name__, list(whole), all(
            torch.equal(value.full_tensor(), whole[name]) for name, value in other.state_dict().items())
    log("state dicts", states)

    def later():
        with torch.device("meta"):
            model = mlp()
        sharded()(model)
        model.to_empty(device="cpu")
        for p in model.parameters():
            nn.init.constant_(p, 0.5)
        return str(model[0].weight.placements), model(torch.ones(1, 6))
    log("parameters that are made later", later)

    def assigned():
        state = sharded()(mlp()).state_dict()
        with torch.device("meta"):
            model = mlp()
        sharded()(model).load_state_dict({name: nn.Parameter(x) for name, x in state.items()}, assign=True)
        model.unshard()
        first = model[0].weight.detach().clone()
        model.reshard()
        return torch.equal(first, state["0.weight"].full_tensor())
    log("parameters that are assigned", assigned)

    def handles():
        model = sharded()(mlp())
        handle = model.unshard(async_op=True)
        handle.wait()
        kinds = [isinstance(model[0].weight, DTensor)]
        model.reshard()
        return [*kinds, isinstance(model[0].weight, DTensor), isinstance(model, fsdp.FSDPModule)]
    log("unshard", handles)
    log("container", lambda: fsdp.fully_shard(nn.ModuleList([nn.Linear(2, 2)])))
    log("style of a ReLU", lambda: parallel.parallelize_module(nn.ReLU(), everyone, parallel.ColwiseParallel()))
    log("plan of numbers", lambda: parallel.parallelize_module(nn.ReLU(), everyone, 3))
    return log.entries
