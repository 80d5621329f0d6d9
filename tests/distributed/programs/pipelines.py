"""Pipelines: schedules, stages cut out of a module, data parallelism beside them, evaluation, errors."""

from importlib import import_module

from tests.distributed.ranks import Log


def main(torch, rank, size):
    dist, nn, log = torch.distributed, torch.nn, Log(torch)
    pp = import_module(f"{torch.__name__}.distributed.pipelining")
    microbatch = import_module(f"{torch.__name__}.distributed.pipelining.microbatch")
    cpu = torch.device("cpu")
    mse = nn.functional.mse_loss

    def seeded(make):
        torch.manual_seed(7)
        return make()

    class Block(nn.Module):
        def __init__(self, width):
            super().__init__()
            self.norm, self.qkv = nn.LayerNorm(width), nn.Linear(width, 3 * width)
            self.out, self.mlp = nn.Linear(width, width), nn.Sequential(
                nn.LayerNorm(width), nn.Linear(width, 2 * width), nn.GELU(), nn.Linear(2 * width, width))

        def forward(self, x):
            q, k, v = (each.unflatten(-1, (2, -1)).transpose(1, 2) for each in self.qkv(self.norm(x)).chunk(3, -1))
            y = nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)
            x = x + self.out(y.transpose(1, 2).flatten(2))
            return x + self.mlp(x)

    def mlp():
        return [nn.Sequential(nn.Linear(6, 8), nn.Tanh()), nn.Sequential(nn.Linear(8, 8), nn.Tanh()),
                nn.Sequential(nn.Linear(8, 8), nn.ReLU(), nn.Linear(8, 8)), nn.Linear(8, 3)]

    def cnn():
        return [nn.Sequential(nn.Conv2d(1, 4, 3), nn.ReLU()), nn.Sequential(nn.Conv2d(4, 4, 3), nn.GroupNorm(2, 4)),
                nn.Sequential(nn.ReLU(), nn.MaxPool2d(2)), nn.Sequential(nn.Flatten(), nn.Linear(16, 3))]

    def gpt():
        return [nn.Embedding(11, 8), Block(8), Block(8), nn.Sequential(nn.LayerNorm(8), nn.Linear(8, 11))]

    def cross_entropy(out, target):
        return nn.functional.cross_entropy(out.flatten(0, 1), target.flatten())

    models = {"mlp": (mlp, lambda step: (torch.arange(48.).reshape(8, 6).sin() + step, torch.ones(8, 3) * step), mse),
              "cnn": (cnn, lambda step: (torch.arange(512.).reshape(8, 1, 8, 8).sin() + step, torch.ones(8, 3)), mse),
              "gpt": (gpt, lambda step: ((torch.arange(40).reshape(8, 5) * 3 + step) % 11,
                                         (torch.arange(40).reshape(8, 5) + step) % 11), cross_entropy)}

    def of_local_stages(parts, count):
        """The modules of `count` stages, from four parts."""
        if count <= 4:
            return [nn.Sequential(*parts[i * 4 // count:(i + 1) * 4 // count]) for i in range(count)]
        return [*parts, *(nn.Identity() for _ in range(count - 4))]

    def train(model, schedule_name, count, group=None, wrap=lambda module: module, microbatches=4, steps=3,
              shapes=None, **options):
        make, batch, loss_fn = models[model]
        ranks = dist.get_world_size(group)
        own = dist.get_rank(group)
        modules = of_local_stages(seeded(make), count)
        if schedule_name in ("ScheduleZBVZeroBubble", "ScheduleDualPipeV"):
            mine = [own, count - 1 - own]
        else:
            mine = list(range(own, count, ranks))
        stages = [pp.PipelineStage(wrap(modules[i]), i, count, cpu, group=group, **shapes(i) if shapes else {})
                  for i in mine]
        schedule_class = getattr(pp, schedule_name)
        single = schedule_name in ("ScheduleGPipe", "Schedule1F1B")
        schedule = schedule_class(stages[0] if single else stages, microbatches, loss_fn=loss_fn, **options)
        parameters = [p for i in mine for p in modules[i].parameters()]
        optimizer = torch.optim.SGD(parameters or [torch.zeros(1, requires_grad=True)], lr=0.1)
        report = []
        for step in range(steps):
            optimizer.zero_grad()
            inputs, targets = batch(step)
            losses = []
            first, last = 0 in mine, count - 1 in mine
            out = schedule.step(*([inputs] if first else []), target=targets if last else None, losses=losses)
            report.append(([each.item() for each in losses], out))
            optimizer.step()
        return report, [p.grad for p in parameters]

    def one_process(model, steps=3):
        make, batch, loss_fn = models[model]
        module = nn.Sequential(*seeded(make))
        optimizer = torch.optim.SGD(module.parameters(), lr=0.1)
        losses = []
        for step in range(steps):
            optimizer.zero_grad()
            inputs, targets = batch(step)
            loss = loss_fn(module(inputs), targets)
            loss.backward()
            losses.append(loss.item())
            optimizer.step()
        return losses

    # every schedule with every model it takes: the mean of the microbatches' losses is the loss of one process
    for model in models:
        alone = one_process(model)
        names = ("ScheduleGPipe", "Schedule1F1B") if model != "mlp" else (
            "ScheduleGPipe", "Schedule1F1B", "ScheduleLoopedBFS", "ScheduleInterleaved1F1B",
            "ScheduleInterleavedZeroBubble", "ScheduleZBVZeroBubble", "ScheduleDualPipeV")
        for name in names:
            single = name in ("ScheduleGPipe", "Schedule1F1B")
            count = size if single else 2 * size
            microbatches = 8 if name == "ScheduleDualPipeV" else 4

            def trained(model=model, name=name, count=count, alone=alone, microbatches=microbatches):
                report, grads = train(model, name, count, microbatches=microbatches)
                for (losses, _), expected in zip(report, alone, strict=True):
                    assert not losses or abs(sum(losses) / len(losses) - expected) < 1e-5, (losses, expected)
                return report, grads
            log(f"{model} {name}", trained)
    log("sum of losses", lambda: train("mlp", "ScheduleGPipe", size, scale_grads=False))
    if size > 2:  # two pipelines of two stages beside each other, gradients averaged by DistributedDataParallel
        chains = [dist.new_group([0, 1]), dist.new_group([2, 3])]
        copies = [dist.new_group([0, 2]), dist.new_group([1, 3])]
        for model in ("cnn", "gpt"):
            log(f"{model} in two stages", lambda: train(model, "Schedule1F1B", 2, chains[rank // 2]))

        def shapes(stage):  # without them PyTorch calls the module twice, which its reducer refuses
            between = torch.zeros(2, 8, requires_grad=True)
            return {"input_args": between if stage else torch.zeros(2, 6),
                    "output_args": torch.zeros(2, 3, requires_grad=True) if stage else between}
        for name in ("ScheduleGPipe", "Schedule1F1B"):
            log(f"DDP {name}", lambda: train("mlp", name, 2, chains[rank // 2], lambda module:
                nn.parallel.DistributedDataParallel(module, process_group=copies[rank % 2]), shapes=shapes))

    # a module that is cut
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.emb, self.layers, self.head = nn.Linear(6, 8), nn.ModuleList([Block(8) for _ in range(4)]), \
                nn.Linear(8, 3)

        def forward(self, x):
            x = self.emb(x)
            for layer in self.layers:
                x = layer(x)
            return self.head(x)

    def cut(spec, schedule_name="ScheduleGPipe"):
        net = seeded(Net)
        pipe = pp.pipeline(net, (torch.zeros(2, 5, 6),), split_spec=spec)
        stage = pipe.build_stage(rank, cpu)
        schedule = getattr(pp, schedule_name)(stage, 4, loss_fn=mse)
        losses, x = [], torch.arange(240.).reshape(8, 5, 6).cos()
        out = schedule.step(*([x] if rank == 0 else []), target=torch.ones(8, 5, 3), losses=losses)
        if rank == size - 1:
            expected = net(x)
            assert torch.allclose(expected, out, atol=1e-5)
        return (pipe.num_stages, sorted(stage.submod.state_dict()), losses, out,
                [stage.submod.get_parameter(name).grad for name in sorted(dict(stage.submod.named_parameters()))])
    points = pp.SplitPoint
    spec = {f"layers.{i * 4 // size}": points.BEGINNING for i in range(1, size)}
    log("cut", lambda: cut(spec))
    log("cut, 1F1B", lambda: cut({f"layers.{i * 4 // size - 1}": points.END for i in range(1, size)}, "Schedule1F1B"))
    log("cut nowhere", lambda: pp.pipeline(Net(), (torch.zeros(2, 5, 6),), split_spec={"layers.9": points.END}))
    log("two ways to cut", lambda: pp.pipeline(Net(), (), split_spec={}, split_policy=lambda gm: gm))

    # evaluation
    def evaluated():
        module = of_local_stages(seeded(mlp), size)[rank]
        schedule = pp.ScheduleGPipe(pp.PipelineStage(module, rank, size, cpu), 4, loss_fn=mse)
        x, losses = torch.arange(48.).reshape(8, 6), []
        with torch.no_grad():
            out = schedule.eval(*([x] if rank == 0 else []), target=torch.ones(8, 3), losses=losses)
        return out, losses, [p.grad for p in module.parameters()]
    log("eval", evaluated)

    def without_gradients():
        module = of_local_stages(seeded(mlp), size)[rank]
        with torch.no_grad():
            pp.ScheduleGPipe(pp.PipelineStage(module, rank, size, cpu), 4, loss_fn=mse).step(torch.ones(8, 6))
    log("step without gradients", without_gradients)

    # arguments of microbatches
    split, spec_of = microbatch.split_args_kwargs_into_chunks, microbatch.TensorChunkSpec
    x = torch.arange(12).reshape(4, 3)
    log("split", lambda: split((x, 3), {"mask": x + 1, "name": "a"}, 2))
    log("split unevenly", lambda: split((x,), None, 3))
    log("split into fewer", lambda: [len(each) for each in split((x,), {"m": torch.ones(2)}, 8)])
    log("split along 1", lambda: split((x, [x, x]), {}, 3, (spec_of(1), [spec_of(0), spec_of(1)])))
    log("split of a number", lambda: split((3,), {}, 3, (spec_of(1),)))
    log("merge", lambda: microbatch.merge_chunks([(x, 1), (x + 1, 1)], (spec_of(1), None)))
    log("merge by default", lambda: microbatch.merge_chunks([{"a": x}, {"a": x}], None))
    log("merge what differs", lambda: microbatch.merge_chunks([(x, 1), (x, 2)], (spec_of(0), None)))
    log("specs", lambda: [str(each) for each in spec_of.from_tuple((0, 1))] + [str(spec_of.from_dict({"a": 2})["a"])])

    # errors
    log("stage number", lambda: pp.PipelineStage(nn.Identity(), 5, 4, cpu))
    log("too few stages", lambda: pp.PipelineStage(nn.Identity(), 0, 1, cpu))
    stage = pp.PipelineStage(nn.Identity(), rank, size, cpu)
    log("few microbatches", lambda: pp.Schedule1F1B(stage, 1))
    log("rounds", lambda: pp.ScheduleInterleaved1F1B([stage], 2 * size + 1))
    log("ZBV of one stage", lambda: pp.ScheduleZBVZeroBubble([stage], 4))
    log("schedule's name", lambda: import_module(f"{torch.__name__}.distributed.pipelining.schedules")
        .get_schedule_class("nothing"))
    log("losses", lambda: pp.ScheduleGPipe(stage, 4)._step_microbatches(losses=3))
    log("microbatches", lambda: pp.ScheduleGPipe(stage, 4)._step_microbatches([(), ()]))
    return log.entries
