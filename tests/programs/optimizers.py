"""Every optimiser takes some steps on the same valley; their states are saved and restored."""
import copy

import torch


def valley(p):
    x, y = p
    return (1 - x) ** 2 + 10 * (y - x ** 2) ** 2


kinds = {
    "SGD": dict(lr=0.01), "SGD momentum": dict(lr=0.01, momentum=0.9, dampening=0.1), "SGD nesterov": dict(lr=0.01, momentum=0.9, nesterov=True),
    "SGD maximize": dict(lr=0.001, maximize=True, weight_decay=0.1), "Adam": dict(lr=0.1), "Adam amsgrad": dict(lr=0.1, amsgrad=True),
    "Adam decay": dict(weight_decay=0.1), "AdamW": dict(lr=0.1), "Adamax": {}, "NAdam": {}, "RAdam": dict(lr=0.1), "Adagrad": dict(lr=0.1),
    "Adadelta": {}, "RMSprop": {}, "RMSprop centered": dict(centered=True, momentum=0.5), "Rprop": {}, "ASGD": {},
}
for name, options in kinds.items():
    p = torch.tensor([-1.0, 1.5], requires_grad=True)
    opt = getattr(torch.optim, name.split()[0])([p], **options)
    for _ in range(10):
        opt.zero_grad()
        valley(p).backward()
        opt.step()
    print(f"{name:16s} {p.tolist()[0]:.4f} {p.tolist()[1]:.4f} {sorted(map(str, opt.state[p]))}")
    q = p.detach().clone().requires_grad_()
    other = getattr(torch.optim, name.split()[0])([q], **options)
    other.load_state_dict(copy.deepcopy(opt.state_dict()))
    for t, o in ((p, opt), (q, other)):
        o.zero_grad()
        valley(t).backward()
        o.step()
    print(torch.equal(p, q), opt)
p = torch.tensor([-1.0, 1.5], requires_grad=True)
lbfgs = torch.optim.LBFGS([p], max_iter=10, line_search_fn="strong_wolfe")


def closure():
    lbfgs.zero_grad()
    loss = valley(p)
    loss.backward()
    return loss


for _ in range(3):
    print(f"{lbfgs.step(closure).item():.3f}")
print([round(v, 3) for v in p.tolist()])
