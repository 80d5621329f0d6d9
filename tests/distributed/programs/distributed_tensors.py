"""`DTensor`: operators on every placement, redistribution, factories, modules, errors."""

from importlib import import_module

from tests.distributed.ranks import Log


def main(torch, rank, size):
    log = Log(torch)
    dist, F = torch.distributed, torch.nn.functional
    tensor = import_module(f"{torch.__name__}.distributed.tensor")
    parts = import_module(f"{torch.__name__}.distributed.tensor._utils")
    experimental = import_module(f"{torch.__name__}.distributed.tensor.experimental")
    S, R, P = tensor.Shard, tensor.Replicate, tensor.Partial
    mesh = dist.device_mesh.init_device_mesh("cpu", (size,))

    def numbers(*shape):
        return (torch.arange(1, 1 + torch.Size(shape).numel(), dtype=torch.float64) * 0.7).sin().reshape(shape)

    def placed(x, placement):
        if placement == P():
            share = 1 if size == 1 else 0.25 if rank == 0 else 0.75 / (size - 1)
            return tensor.DTensor.from_local(x * share, mesh, [P()]).detach()
        return tensor.distribute_tensor(x, mesh, [placement])

    # operators, with gradients, on every placement
    A, M, V, W = numbers(4, 6, 8), numbers(6, 8), numbers(8), numbers(10, 8)
    index = torch.tensor([[0, 5, 2, 2], [1, 1, 3, 4]])
    classes = torch.tensor([0, 1, 7, -100, 3, 4])
    operators = {
        "add": (lambda a, b: a + b, A, M), "mul": (lambda a, b: a * b, A, V), "div": (lambda a, b: a / (b + 3), A, V),
        "pow": (lambda a: a ** 2, A), "where": (lambda a, b: torch.where(a > 0, a, b), A, A.flip(0)),
        "gelu": (F.gelu, A), "clamp": (lambda a: a.clamp(-0.5, 0.5), A), "sum": (lambda a: a.sum(), A),
        "sum of rows": (lambda a: a.sum((1, 2), keepdim=True), A), "mean": (lambda a: a.mean(0), A),
        "mean of an odd number": (lambda a: a.mean(), numbers(5, 7)), "amax": (lambda a: a.amax(1), A),
        "var": (lambda a: a.var(-1), A), "norm": (lambda a: torch.linalg.vector_norm(a, 2), A),
        "largest": (lambda a: torch.linalg.vector_norm(a, float("inf")), A),
        "softmax": (lambda a: a.softmax(-1), A), "log_softmax": (lambda a: F.log_softmax(a, 1), A),
        "cumsum": (lambda a: a.cumsum(1), A), "mm": (lambda a, b: a @ b.t(), M, W),
        "bmm": (lambda a, b: torch.bmm(a, b), A, A.mT.contiguous()),
        "addmm": (lambda a, b, c: torch.addmm(c, a, b.t()), M, W, numbers(10)),
        "linear": (F.linear, A, W, numbers(10)), "mv": (lambda a, b: a @ b, M, V),
        "layer_norm": (lambda a, w, b: F.layer_norm(a, (8,), w, b), A, V, V + 1),
        "view": (lambda a: a.view(24, 8), A), "split heads": (lambda a: a.view(4, 6, 2, 4).transpose(1, 2), A),
        "permute": (lambda a: a.permute(2, 0, 1), A), "expand": (lambda a: a.unsqueeze(0).expand(3, -1, -1), M),
        "slice": (lambda a: a[:, 1:4], A), "cat of split": (lambda a: torch.cat(a.split(2, -1)[::-1], -1), A),
        "stack": (lambda a, b: torch.stack([a, b], 1), A, A.flip(1)),
        "embedding": (lambda w, i: F.embedding(i, w, padding_idx=2), M, index),
        "cross_entropy": (F.cross_entropy, M, classes),
        "cross_entropy of each": (lambda a, i: F.cross_entropy(a, i, reduction="none"), M, classes),
        "mse": (F.mse_loss, A, A.flip(0)), "in place": (lambda a: a.clone().mul_(2).relu_(), A),
        "gather": (lambda a, i: a.gather(1, i), M, torch.tensor([[0, 7], [1, 2], [3, 3], [4, 0], [6, 6], [5, 1]])),
        "bfloat16": (lambda a: a.bfloat16() * 2, A),
    }

    # PyTorch 2.13 takes the mean of parts' means, whatever they weigh, and sums where norms of pending sums have no
    # derivative: there its result on one process is the reference
    inexact = {("norm", "pending"), ("largest", "cut 1")} | {
        (name, kind) for name in ("mse", "cross_entropy") for kind in ("cut 0", "cut 1", "cut 2", "first cut")}

    def on(function, operands, placements, alone=False):
        inputs = [placed(x, p).detach() for x, p in zip(operands, placements, strict=True)]
        if alone:
            inputs = [x.full_tensor() for x in inputs]
        for x in inputs:
            if x.is_floating_point():
                x.requires_grad_()
        out = function(*inputs)
        out = out if alone else out.full_tensor()
        out.backward(torch.ones_like(out) + torch.arange(out.numel(), dtype=out.dtype).reshape(out.shape) / 10)
        return out, [x.grad if alone else x.grad.full_tensor() for x in inputs if x.grad is not None]

    for name, (function, *operands) in operators.items():
        rest = [R()] * (len(operands) - 1)
        choices = {f"cut {d}": [S(d) if d < x.ndim else R() for x in operands] for d in range(operands[0].ndim)}
        choices["first cut"] = [S(0), *rest]
        choices["replicated"] = [R(), *rest]
        if not (name == "bfloat16" or name.startswith("cross_entropy")):
            choices["pending"] = [P(), *rest]
        for kind, placements in choices.items():
            alone = torch.__name__ == "torch" and (name, kind) in inexact
            log(f"{name}, {kind}", lambda f=function, o=operands, p=placements, a=alone: on(f, o, p, a))

    # which placements results have
    for name, make in {
        "cut + cut": lambda: placed(A, S(1)) + placed(A, S(1)),
        "cut * replicated": lambda: placed(A, S(2)) * placed(V, R()),
        "column by row": lambda: placed(M, S(1)) @ placed(W, S(1)).t(),
        "rows": lambda: placed(M, S(0)) @ placed(W, R()).t(),
        "columns": lambda: placed(M, R()) @ placed(W, S(0)).t(), "sum": lambda: placed(A, S(0)).sum(),
        "sum of kept": lambda: placed(A, S(0)).sum(1), "pending + pending": lambda: placed(A, P()) + placed(A, P()),
        "pending * 2": lambda: placed(A, P()) * 2, "transpose": lambda: placed(A, S(0)).transpose(0, 2),
        "view": lambda: placed(A, S(0)).view(24, 8), "zeros_like": lambda: torch.zeros_like(placed(A, S(1))),
        "max": lambda: placed(A, S(0)).max(), "softmax": lambda: placed(A, S(1)).softmax(-1),
        "detach": lambda: placed(A, P()).detach()}.items():
        log(f"placement of {name}", lambda make=make: str(make().placements))

    # redistribution, on meshes of one and of two dimensions
    for shape in ((8, 6), (5, 7), (1, 3)):
        x = numbers(*shape)
        for source in (S(0), S(1), R()):
            for target in (S(0), S(1), R()):
                log(f"{shape} {source} to {target}",
                    lambda x=x, s=source, t=target: placed(x, s).redistribute(mesh, [t]).to_local())
        log(f"{shape} pending", lambda x=x: [
            placed(x, P()).redistribute(mesh, [t]).to_local() for t in (R(), S(0), S(1))])
    if size % 2 == 0:
        plane = dist.device_mesh.init_device_mesh("cpu", (2, size // 2), mesh_dim_names=("a", "b"))
        for source in ((S(0), S(0)), (S(0), S(1)), (R(), S(0)), (S(1), R()), (S(0), R())):
            for target in ((S(0), S(0)), (S(1), S(0)), (R(), R()), (R(), S(1)), (S(1), S(1))):
                log(f"{source} to {target}", lambda s=source, t=target: tensor.distribute_tensor(
                    numbers(9, 6), plane, s).redistribute(plane, t).to_local())
        log("row of a plane", lambda: tensor.distribute_tensor(numbers(4, 4), plane["b"], [S(0)]).full_tensor())

    def differentiable():
        x = numbers(4, 6).requires_grad_()
        y = tensor.DTensor.from_local(x, mesh, [P()]).redistribute(placements=[S(1)]).to_local()
        (y ** 2).sum().backward()
        return x.grad
    log("gradients of from_local and to_local", differentiable)

    # what makes distributed tensors
    log("factories", lambda: [
        f(5, 3, device_mesh=mesh, placements=[S(0)]).to_local() for f in (tensor.zeros, tensor.ones)])
    log("full", lambda: tensor.full((3, 2), 2.5, device_mesh=mesh, placements=[S(1)]).to_local())
    log("parts", lambda: parts.compute_local_shape_and_global_offset((5, 7), mesh, [S(1)]))
    log("uneven from_local", lambda: tensor.DTensor.from_local(
        torch.full((2 if rank == 0 else 1,), float(rank)), mesh, [S(0)], shape=torch.Size((1 + size,)),
        stride=(1,)).full_tensor() if size == 2 else None)

    def module():
        torch.manual_seed(0)
        net = torch.nn.Sequential(torch.nn.Linear(6, 4), torch.nn.Tanh(), torch.nn.Linear(4, 2))
        tensor.distribute_module(net, mesh)
        out = net(placed(numbers(4, 6), S(0)))
        out.sum().backward()
        optimizer = torch.optim.SGD(net.parameters(), 0.1, momentum=0.9)
        optimizer.step()
        return [p.full_tensor() for p in net.parameters()]
    log("distribute_module", module)
    log("local_map", lambda: experimental.local_map(lambda a, b: a * 2 + b, out_placements=[S(0)],
                                                    in_placements=([S(0)], [S(0)]))(
        placed(M, S(0)), placed(M, S(0))).full_tensor())

    def implicit():
        with experimental.implicit_replication():
            return (placed(M, S(0)) + M).full_tensor()
    log("implicit replication", implicit)
    log("equal", lambda: torch.equal(placed(M, S(0)), placed(M, S(0))))
    log("deepcopy", lambda: import_module("copy").deepcopy(placed(M, S(0))).full_tensor())
    def saved():
        file = import_module("io").BytesIO()
        torch.save({"x": placed(M, S(0))}, file)
        file.seek(0)
        loaded = torch.load(file)["x"]
        return str(loaded.placements), (loaded + placed(M, S(0))).full_tensor()
    log("saved and loaded", saved)
    log("detached memory", lambda: placed(M, S(0)).detach().zero_().full_tensor())

    def counted():
        debug = import_module(f"{torch.__name__}.distributed.tensor.debug")
        with debug.CommDebugMode() as mode:
            placed(M, P()).redistribute(mesh, [R()])
            placed(M, P()).redistribute(mesh, [S(0)])
            tensor.DTensor.from_local(M, mesh, [S(0)]).redistribute(mesh, [R()])
            placed(M, R()) + placed(M, R())
        counts = mode.get_comm_counts()
        names = ("all_reduce", "reduce_scatter_tensor", "all_gather_into_tensor")
        return [counts[getattr(torch.ops.c10d_functional, name)] for name in names]
    log("counts of collectives", counted)

    def counted_by_module():
        debug = import_module(f"{torch.__name__}.distributed.tensor.debug")
        parallel = import_module(f"{torch.__name__}.distributed.tensor.parallel")
        nn = torch.nn
        net = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Sequential(nn.Linear(8, 4)))
        parallel.parallelize_module(net, mesh, {"0": parallel.ColwiseParallel(), "2.0": parallel.RowwiseParallel()})
        mode = debug.CommDebugMode()
        with mode:
            net(torch.ones(2, 4, requires_grad=True)).sum().backward()
        operators = mode.generate_comm_debug_tracing_table(noise_level=1).replace(f"{torch.__name__}.", "torch.")
        counts = {name: {of: {str(op): n for op, n in each.items()} for of, each in passes.items()}
                  for name, passes in mode.comm_module_counts.items()}
        placements = {name: str(each) for name, each in mode.get_sharding_info().items()}
        parameters = {name: list(each) for name, each in mode.get_parameter_info().items()}
        # a node's operators come in another order
        return [mode.generate_comm_debug_tracing_table(noise_level=0), sorted(operators.split("\n")), counts,
                placements, parameters, mode.get_total_counts()]
    log("counts by module", counted_by_module)

    # functions that write to other tensors, and new classes
    for p in (S(0), S(1), R(), P()):
        log(f"one_hot, {p}", lambda p=p: torch.nn.functional.one_hot(
            placed(index, p) if p != P() else placed(index, S(0)), 8).full_tensor())
        log(f"fill_ of {p}", lambda p=p: [str((x := placed(M.clone(), p).fill_(2)).placements), x.full_tensor()])
        for q in (S(0), R(), P()):
            def outs(p=p, q=q):
                out = placed(torch.zeros_like(M), q)
                result = torch.add(placed(M, p), placed(M, p), out=out)
                return [result is out, str(out.placements), out.full_tensor()]
            log(f"out= of {q}, {p}", outs)
        log(f"mm with out=, {p}", lambda p=p: torch.mm(
            placed(M, p), placed(M.t().contiguous(), R()), out=placed(M.new_zeros(6, 6), R())).full_tensor())

    # random numbers
    random = import_module(f"{torch.__name__}.distributed.tensor._random")
    draws = {"normal_": torch.nn.init.normal_, "uniform_": lambda x: x.uniform_(2, 3), "rand_like": torch.rand_like,
             "bernoulli": lambda x: torch.bernoulli(x * 0 + 0.5), "bernoulli_": lambda x: x.bernoulli_(0.3),
             "dropout": lambda x: torch.nn.functional.dropout(x, 0.5), "poisson": lambda x: torch.poisson(x * 0 + 9),
             "multinomial": lambda x: torch.multinomial(x + 2, 3), "exponential_": lambda x: x.exponential_()}
    for kind, draw in draws.items():
        def drawn(draw=draw):
            torch.manual_seed(rank)
            if draw is draws["poisson"] and torch.__name__ == "torch":  # it has no rule
                return [[torch.poisson(placed(M, p).to_local() * 0 + 9), torch.rand(1)] for p in (S(0), S(1))]
            return [[draw(placed(M, p)).to_local(), torch.rand(1)] for p in (S(0), S(1))]
        log(f"{kind} draws", drawn)
    tracker = object.__new__(random.OffsetBasedRNGTracker)
    log("offsets of generators", lambda: [
        tracker._compute_rng_offsets(placed(A, p)._spec) for p in (S(0), S(1), S(2), R())])
    log("a tracker of CPUs", lambda: random.OffsetBasedRNGTracker(mesh))

    def registered():
        @experimental.register_sharding(torch.ops.aten.cummax.default)
        def rows(x, dim):
            return [([R(), R()], [R(), None]), ([S(0), S(0)], [S(0), None])]
        return [[str(x.placements), x.full_tensor()] for x in torch.cummax(placed(A, S(0)), 1)]
    log("register_sharding", registered)

    def registered_operator():
        @torch.library.custom_op("tests_distributed::scaled", mutates_args=())
        def scaled(x: torch.Tensor, factor: float) -> torch.Tensor:
            return x * factor

        scaled.register_fake(lambda x, factor: torch.empty_like(x))

        @experimental.register_sharding(torch.ops.tests_distributed.scaled.default)
        def placements(x, factor):
            return [([p], [p, None]) for p in (R(), P(), *map(S, range(x.ndim)))]
        found = [torch.ops.tests_distributed.scaled(placed(M, p), 3.) for p in (S(0), S(1), R(), P())]
        return [[str(x.placements), x.full_tensor()] for x in found]
    log("register_sharding of a new operator", registered_operator)

    def collectives():
        debug = import_module(f"{torch.__name__}.distributed.tensor.debug")
        functional = import_module(f"{torch.__name__}.distributed._functional_collectives")
        fully_shard = import_module(f"{torch.__name__}.distributed.fsdp").fully_shard
        x = torch.ones(2 * size)

        def count(function):
            with debug.CommDebugMode() as mode:
                function()
            return sorted((str(op), n) for op, n in mode.get_comm_counts().items() if n)

        def step(net):
            net(torch.ones(2, 4)).sum().backward()

        net = torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.Linear(4, 4))
        for layer in net:
            fully_shard(layer)
        wrapped = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(4, 4))
        return [count(function) for function in (
            lambda: dist.all_reduce(x), lambda: dist.all_gather_into_tensor(torch.zeros(2 * size * size), x),
            lambda: dist.all_gather([torch.zeros_like(x) for _ in range(size)], x), lambda: dist.broadcast(x, 0),
            lambda: dist.reduce_scatter_tensor(torch.zeros(2), x), lambda: dist.all_gather_object([None] * size, 1),
            lambda: dist.barrier(), lambda: functional.all_reduce(x, "sum", mesh),
            lambda: functional.all_gather_into_tensor_coalesced([x, x], mesh),
            lambda: functional.reduce_scatter_tensor(x, "sum", 0, mesh), lambda: step(fully_shard(net)),
            lambda: step(wrapped))]
    log("collectives", collectives)

    # errors
    log("mixed", lambda: placed(M, S(0)) + M)
    log("not a leaf", lambda: tensor.distribute_tensor(M.clone().requires_grad_() * 2, mesh, [S(0)]))
    log("too many placements", lambda: tensor.distribute_tensor(M, mesh, [S(0), S(1)]))
    log("to pending", lambda: placed(M, S(0)).redistribute(placements=[P()]))
    log("nothing to redistribute to", lambda: placed(M, S(0)).redistribute())
    log("from_local of a DTensor", lambda: tensor.DTensor.from_local(placed(M, S(0)), mesh, [S(0)]))
    log("distributed twice", lambda: tensor.distribute_tensor(placed(M, S(0)), mesh, [S(1)]))
    return log.entries
