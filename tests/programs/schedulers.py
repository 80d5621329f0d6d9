"""Learning-rate schedulers and parameter groups."""
import torch
from torch import nn, optim
from torch.optim import lr_scheduler

model = nn.Linear(2, 2)


def run(make, steps=6, **kw):
    opt = optim.SGD(model.parameters(), lr=0.1, **kw)
    s = make(opt)
    lrs = []
    for _ in range(steps):
        opt.step()
        lrs.append(round(opt.param_groups[0]["lr"], 5))
        s.step()
    print(type(s).__name__, lrs, [round(v, 6) for v in s.get_last_lr()], getattr(s, "last_epoch", None))
    return s


run(lambda o: lr_scheduler.StepLR(o, 2, 0.1))
run(lambda o: lr_scheduler.MultiStepLR(o, milestones=[1, 4], gamma=0.5))
run(lambda o: lr_scheduler.ExponentialLR(o, 0.9))
run(lambda o: lr_scheduler.CosineAnnealingLR(o, T_max=5, eta_min=0.01))
run(lambda o: lr_scheduler.CosineAnnealingWarmRestarts(o, 2, 2), 8)
run(lambda o: lr_scheduler.LambdaLR(o, lambda e: 0.95 ** e))
run(lambda o: lr_scheduler.MultiplicativeLR(o, lambda e: 0.8))
run(lambda o: lr_scheduler.LinearLR(o, start_factor=0.25, total_iters=4))
run(lambda o: lr_scheduler.ConstantLR(o, factor=0.5, total_iters=3))
run(lambda o: lr_scheduler.PolynomialLR(o, total_iters=4, power=2))
run(lambda o: lr_scheduler.OneCycleLR(o, max_lr=0.5, total_steps=10), 8, momentum=0.9)
run(lambda o: lr_scheduler.CyclicLR(o, 0.01, 0.1, step_size_up=3), 8, momentum=0.9)
run(lambda o: lr_scheduler.SequentialLR(o, [lr_scheduler.ConstantLR(o, 0.1, 2), lr_scheduler.ExponentialLR(o, 0.9)], milestones=[2]))
run(lambda o: lr_scheduler.ChainedScheduler([lr_scheduler.ConstantLR(o, 0.1, 2), lr_scheduler.ExponentialLR(o, 0.9)]))

opt = optim.Adam([{"params": [model.weight]}, {"params": [model.bias], "lr": 0.5}], lr=0.01)
plateau = lr_scheduler.ReduceLROnPlateau(opt, factor=0.5, patience=1)
for loss in (1.0, 0.9, 0.95, 0.96, 0.97, 0.5, 0.6):
    plateau.step(loss)
    print(loss, [g["lr"] for g in opt.param_groups], plateau.num_bad_epochs)
s = run(lambda o: lr_scheduler.StepLR(o, 2))
print(s.state_dict())
print(opt)
opt.add_param_group({"params": torch.ones(1, requires_grad=True), "betas": (0.5, 0.5)})
print(len(opt.param_groups), opt.param_groups[2]["lr"], opt.param_groups[2]["betas"])
early = optim.SGD(model.parameters(), lr=0.1)
sched = lr_scheduler.StepLR(early, 1)
sched.step()
early.step()
print(sched.get_last_lr(), sched.get_lr())
for f in (lambda: lr_scheduler.StepLR(model, 1), lambda: opt.add_param_group({"params": [model.bias]}), lambda: opt.add_param_group([1]),
          lambda: lr_scheduler.OneCycleLR(early, max_lr=1.0), lambda: optim.SGD(model.parameters(), lr=0.1, nesterov=True),
          lambda: lr_scheduler.LambdaLR(opt, [lambda e: e]), lambda: lr_scheduler.ReduceLROnPlateau(opt, factor=2.0),
          lambda: optim.Adam(model.parameters(), betas=(1.0, 0.9)), lambda: lr_scheduler.ExponentialLR(early, gamma=0.1, last_epoch=3)):
    try:
        print(type(f()).__name__)
    except Exception as e:
        print(type(e).__name__, "|", e)
