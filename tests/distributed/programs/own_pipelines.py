"""What pipelines do that PyTorch's refuse, or do otherwise."""

import tempfile

from tests.distributed.ranks import Log


def main(torch, rank, size):
    from flambeau.distributed import pipelining as pp
    from flambeau.distributed.pipelining.schedules import PipelineScheduleMulti

    dist, nn, log, cpu = torch.distributed, torch.nn, Log(torch), torch.device("cpu")
    mse = nn.functional.mse_loss

    def step(schedule, x, target, **kwargs):
        losses = []
        first, last = rank == 0, any(stage.is_last for stage in schedule._stages)
        out = schedule.step(*([x] if first else []), target=target if last else None, losses=losses, **kwargs)
        return out, losses

    # a weight that is used twice in a stage, gradients of weights computed later
    class Twice(nn.Module):
        def __init__(self):
            super().__init__()
            self.inner, self.between = nn.Linear(3, 3), nn.Linear(3, 3)

        def forward(self, x):
            return self.inner(self.between(self.inner(x)).tanh())

    def shared_weights():
        torch.manual_seed(0)
        modules = [Twice() for _ in range(2 * size)]
        x, target = torch.arange(12.).reshape(4, 3).sin(), torch.ones(4, 3)
        mse(nn.Sequential(*modules)(x), target).backward()
        expected = [p.grad for i in range(rank, 2 * size, size) for p in modules[i].parameters()]
        for module in modules:
            module.zero_grad()
        stages = [pp.PipelineStage(modules[i], i, 2 * size, cpu) for i in range(rank, 2 * size, size)]
        step(pp.ScheduleInterleavedZeroBubble(stages, 4, loss_fn=mse), x, target)
        found = [p.grad for i in range(rank, 2 * size, size) for p in modules[i].parameters()]
        return max((a - b).abs().max().item() for a, b in zip(found, expected, strict=True))
    log("shared weights", shared_weights)

    # averages of gradients after divided backward passes
    def data_parallel():
        torch.manual_seed(0)
        modules = [nn.Linear(3, 3), nn.Linear(3, 3)]
        alone = [dist.new_group([i]) for i in range(size)][rank]
        wrapped = [nn.parallel.DistributedDataParallel(module) for module in modules]
        stages = [pp.PipelineStage(module, i, 2, cpu, group=alone) for i, module in enumerate(wrapped)]
        schedule = pp.ScheduleInterleavedZeroBubble(stages, 2, loss_fn=mse)
        x, target = torch.arange(24.).reshape(8, 3).cos(), torch.ones(8, 3)
        schedule.step(x[4 * rank:4 * rank + 4], target=target[4 * rank:4 * rank + 4])
        found = [p.grad.clone() for module in modules for p in module.parameters()]
        for module in modules:
            module.zero_grad()
        mse(nn.Sequential(*modules)(x), target).backward()
        expected = [p.grad for module in modules for p in module.parameters()]
        return max((a - b).abs().max().item() for a, b in zip(found, expected, strict=True))
    log("data parallel", data_parallel)

    # parameters that are divided between processes
    def fully_sharded(schedule_name):
        torch.manual_seed(0)
        modules = [nn.Linear(3, 4), nn.Linear(4, 3)]
        copies = [nn.Linear(3, 4), nn.Linear(4, 3)]
        for module, copy in zip(modules, copies, strict=True):
            copy.load_state_dict(module.state_dict())
        alone = [dist.new_group([i]) for i in range(size)][rank]
        stages = [pp.PipelineStage(dist.fsdp.fully_shard(module), i, 2, cpu, group=alone)
                  for i, module in enumerate(modules)]
        schedule = getattr(pp, schedule_name)(stages, 2, loss_fn=mse)
        x, target = torch.arange(24.).reshape(8, 3).cos(), torch.ones(8, 3)
        for _ in range(2):  # gradients of two steps
            schedule.step(x[4 * rank:4 * rank + 4], target=target[4 * rank:4 * rank + 4])
        found = [p.grad.full_tensor() for module in modules for p in module.parameters()]
        mse(nn.Sequential(*copies)(x), target).backward()
        expected = [1.5 * p.grad for module in copies for p in module.parameters()]  # the first step's are halved again
        return max((a - b).abs().max().item() for a, b in zip(found, expected, strict=True))
    log("fully sharded", lambda: fully_sharded("ScheduleInterleaved1F1B"))
    log("fully sharded, divided passes", lambda: fully_sharded("ScheduleInterleavedZeroBubble"))

    # batches of other sizes, and microbatches that differ
    def stage_of(make):
        torch.manual_seed(rank)
        return pp.PipelineStage(make(), rank, size, cpu)

    def sizes():
        schedule = pp.Schedule1F1B(stage_of(lambda: nn.Linear(3, 3)), 2, loss_fn=mse)
        return [step(schedule, torch.ones(n, 3), torch.ones(n, 3))[1] and n for n in (4, 8, 2)]
    log("sizes", sizes)
    apart = dist.new_group()  # the message of the first microbatch is never received
    if rank == 0:
        stage = pp.PipelineStage(nn.Identity(), rank, size, cpu, group=apart)
        log("uneven", lambda: pp.ScheduleGPipe(stage, 2).step(torch.ones(3, 2)))
    dist.barrier()

    # buffers count no other pass; results have graphs no more
    def buffers():
        norm = nn.BatchNorm1d(3)
        out, _ = step(pp.ScheduleGPipe(stage_of(lambda: norm), 2, loss_fn=mse), torch.ones(4, 3), torch.ones(4, 3))
        return norm.num_batches_tracked, None if out is None else out.requires_grad
    log("buffers", buffers)

    # results that skip a stage; arguments that later stages use
    class Skips(nn.Module):
        def __init__(self):
            super().__init__()
            self.a, self.b, self.c = nn.Linear(3, 3), nn.Linear(3, 3), nn.Linear(3, 3)

        def forward(self, x, scale):
            a = self.a(x)
            pp.pipe_split()
            b = self.b(a)
            pp.pipe_split()
            return {"out": self.c(b) * scale + a, "b": b}

    def skips():
        torch.manual_seed(3)
        net, chain = Skips(), [dist.new_group([i]) for i in range(size)][rank]
        pipe = pp.pipeline(net, (torch.ones(2, 3),), {"scale": torch.ones(2, 1)})
        stages = [pipe.build_stage(i, cpu, chain) for i in range(pipe.num_stages)]
        schedule = pp.ScheduleLoopedBFS(stages, 2, loss_fn=lambda out, target: mse(out["out"], target))
        x, scale = torch.arange(12.).reshape(4, 3), torch.arange(4.).reshape(4, 1)
        out = schedule.step(x, scale=scale, target=torch.zeros(4, 3))
        expected = net(x, scale=scale)
        grads = [p.grad.clone() for p in net.parameters()]
        net.zero_grad()
        mse(expected["out"], torch.zeros(4, 3)).backward()
        errors = [(a - p.grad).abs().max().item() for a, p in zip(grads, net.parameters(), strict=True)]
        return sorted(out), (out["out"] - expected["out"]).abs().max().item(), max(errors)
    log("skips", skips)

    # orders from files, and those that are wrong
    def from_file(text):
        stages = [stage_of(lambda: nn.Linear(3, 3))]
        schedule = PipelineScheduleMulti(stages, 2, loss_fn=mse)
        with tempfile.NamedTemporaryFile("w", suffix=".csv") as file:
            file.write(text)
            file.flush()
            schedule._load_csv(file.name, format="compute_comms")
            schedule._dump_csv(file.name)
            with open(file.name, encoding="utf-8") as written:
                lines = written.read().split()
        step(schedule, torch.ones(4, 3), torch.ones(4, 3))
        return lines, [name for name, _, _ in schedule.timeline]
    log("file", lambda: from_file("0F0,0SEND_F0,0F1,0SEND_F1,0RECV_B0,0B0,0B1\n1RECV_F0,1F0,1F1,1B0,1B1\n"))
    log("file that never ends", lambda: from_file("0F0,0B0,0F1,0B1\n1F0,1F1,1B0,1B1\n"))
    log("stage in two processes", lambda: from_file("0F0,0B0\n0F1,1F0,1B0\n"))

    # errors that say what is wrong
    log("no target", lambda: pp.ScheduleGPipe(pp.PipelineStage(nn.Identity(), 0, 1, cpu, group=dist.new_group(
        [rank], use_local_synchronization=True)), 1, loss_fn=mse).step(torch.ones(2, 2)))
    if rank == 0:
        log("no tensor", lambda: pp.ScheduleGPipe(stage_of(lambda: nn.Flatten()), 1).step("text"))
    return log.entries
