"""Every optimizer and scheduler compared with PyTorch: parameters, state and options after several steps; errors."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest

import flambeau
import flambeau.optim as ours

torch = pytest.importorskip("torch")
theirs = torch.optim
pytestmark = pytest.mark.parity

CASES = [
    "SGD({})", "SGD({'lr': 0.1, 'momentum': 0.9, 'dampening': 0.1, 'weight_decay': 0.01})",
    "SGD({'lr': 0.1, 'momentum': 0.9, 'nesterov': True, 'maximize': True})",
    "Adam({})", "Adam({'lr': 0.1, 'amsgrad': True, 'weight_decay': 0.1})",
    "Adam({'maximize': True, 'betas': (0.4, 0.8)})", "Adam({'decoupled_weight_decay': True, 'weight_decay': 0.1})",
    "AdamW({'lr': 0.05})", "AdamW({'amsgrad': True})", "Adagrad({})",
    "Adagrad({'lr_decay': 0.1, 'weight_decay': 0.1, 'initial_accumulator_value': 0.1})",
    "Adadelta({})", "Adadelta({'weight_decay': 0.1, 'lr': 0.3})", "RMSprop({})", "RMSprop({'momentum': 0.9})",
    "RMSprop({'momentum': 0.9, 'centered': True, 'weight_decay': 0.1})", "Adamax({'weight_decay': 0.1})",
    "NAdam({'weight_decay': 0.1})", "NAdam({'weight_decay': 0.1, 'decoupled_weight_decay': True})",
    "RAdam({'lr': 0.1, 'weight_decay': 0.1})", "RAdam({'betas': (0.9, 0.9), 'decoupled_weight_decay': True})",
    "ASGD({'t0': 3, 'weight_decay': 0.1})", "ASGD({})", "Rprop({})", "Rprop({'maximize': True})",
    "Adafactor({})", "Adafactor({'lr': 0.5, 'weight_decay': 0.1, 'd': 1.5, 'eps': (1e-5, 1e-2), 'maximize': True})",
]


def run(module, optim, source, size, dtype, steps=8):
    name, _, options = source.partition("(")
    rng = np.random.default_rng(0)
    params = [module.tensor(rng.standard_normal(size).astype(dtype), requires_grad=True) for _ in range(2)]
    optimizer = getattr(optim, name)(params, **eval(options[:-1]))
    for i in range(steps):
        for j, p in enumerate(params):
            # the second parameter has no gradient at first
            grad = rng.standard_normal(size).astype(dtype)
            p.grad = None if j == 1 and i < 2 else module.tensor(grad)
        optimizer.step()
    return params, optimizer.state_dict()


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("size", [(3, 4), (150, 130)])
@pytest.mark.parametrize("source", CASES)
def test_trajectory(source, size, dtype):
    (a, state1), (b, state2) = run(torch, theirs, source, size, dtype), run(flambeau, ours, source, size, dtype)
    rtol, atol = (3e-6, 3e-6) if dtype == np.float32 else (1e-12, 1e-12)
    if "centered" in source:
        # the difference of two nearly equal averages loses digits, and not the same ones
        rtol, atol = (1e-3, 1e-3) if dtype == np.float32 else (1e-8, 1e-8)
    elif dtype == np.float32 and size == (3, 4):
        rtol, atol = 3e-7, 3e-7
    for x, y in zip(a, b, strict=True):
        np.testing.assert_allclose(y.detach().numpy(), x.detach().numpy(), rtol=rtol, atol=atol)
    assert state2["param_groups"] == state1["param_groups"]
    assert list(state2["state"]) == list(state1["state"])
    for key, kept in state1["state"].items():
        assert list(state2["state"][key]) == list(kept)
        for name, value in kept.items():
            mine = state2["state"][key][name]
            assert mine.numpy().dtype == value.numpy().dtype
            assert mine.shape == value.shape
            np.testing.assert_allclose(mine.numpy(), value.numpy(), rtol=10 * rtol, atol=atol)


@pytest.mark.parametrize("line_search", [None, "strong_wolfe"])
def test_lbfgs(line_search):
    results = []
    for module, optim in ((torch, theirs), (flambeau, ours)):
        p = module.tensor([-1.2, 1.0], requires_grad=True, dtype=module.float64)
        optimizer = optim.LBFGS([p], lr=0.3 if line_search is None else 1, max_iter=12, history_size=4,
                                line_search_fn=line_search)

        def closure(p=p, optimizer=optimizer):
            optimizer.zero_grad()
            loss = 100 * (p[1] - p[0] ** 2) ** 2 + (1 - p[0]) ** 2
            loss.backward()
            return loss

        losses = [optimizer.step(closure).item() for _ in range(4)]
        state = optimizer.state_dict()["state"][0]
        results.append((losses, p.detach().numpy(), state["func_evals"], state["n_iter"], sorted(state)))
    (losses1, p1, *rest1), (losses2, p2, *rest2) = results
    np.testing.assert_allclose(losses2, losses1, rtol=1e-6)
    np.testing.assert_allclose(p2, p1, rtol=1e-6)
    assert rest1 == rest2


@pytest.mark.parametrize("source", [
    "SGD([])", "SGD(P())", "SGD([3])", "SGD([P() * 2])", "SGD([{'params': p}, {'params': [p]}])", "SGD([{'x': 1}])",
    "SGD([p], lr=-1)", "SGD([p], momentum=-1)", "SGD([p], weight_decay=-1)", "SGD([p], nesterov=True)",
    "SGD([('a', p), P()])", "SGD([{'params': {p}}])", "SGD([p]).add_param_group(3)",
    "SGD([('a', p)]).add_param_group({'params': P()})", "SGD([p]).load_state_dict({'state': {}, 'param_groups': []})",
    "SGD([p]).load_state_dict({'state': {}, 'param_groups': [{'params': [1, 2]}]})",
    "SGD([p], foreach=True, fused=True)",
    "SGD([p], differentiable=True, fused=True)", "SGD([p], lr=torch.tensor([0.1, 0.2]))", "Optimizer([p], {}).step()",
    "Adam([p], betas=(1.0, 0.1))", "Adam([p], betas=(0.1, -0.1))", "Adam([p], eps=-1)", "Adam([p], weight_decay=-1)",
    "Adam([p], betas=(0.1, torch.tensor(0.1)))", "Adam([p], betas=(0, 0.9))", "AdamW([p], betas=(0.5, 0))",
    "Adam([p], lr=torch.tensor(0.1), foreach=True)",
    "Adagrad([p], lr_decay=-1)", "Adagrad([p], initial_accumulator_value=-1)", "Adadelta([p], rho=2)",
    "Adadelta([p], eps=-1)", "RMSprop([p], alpha=-1)", "RMSprop([p], momentum=-1)", "Adamax([p], eps=-1)",
    "NAdam([p], momentum_decay=-1)", "RAdam([p], betas=(0.1, 2))", "ASGD([p], weight_decay=-1)",
    "Rprop([p], etas=(1.5, 2))", "LBFGS([{'params': p}, {'params': P()}])",
])
def test_errors(source):
    caught = []
    for module, optim in ((torch, theirs), (flambeau, ours)):
        P = lambda module=module: module.nn.Parameter(module.ones(2))
        names = {**{name: getattr(optim, name) for name in ours.__all__}, "torch": module, "P": P, "p": P()}
        with pytest.raises(Exception) as info:
            eval(source, names)
        caught.append((type(info.value), str(info.value).replace("flambeau.", "torch.")))
    assert caught[1] == caught[0]


@pytest.mark.parametrize("name", [n for n in ours.__all__ if n[0].isupper() and n not in ("Muon", "Optimizer")])
def test_print_and_signature(name):
    import inspect

    mine = getattr(ours, name)([flambeau.nn.Parameter(flambeau.ones(1))])
    its = getattr(theirs, name)([torch.nn.Parameter(torch.ones(1))])
    assert repr(mine) == repr(its)
    assert mine.defaults == its.defaults
    assert list(mine.param_groups[0]) == list(its.param_groups[0])
    parameters = [[(p.name, p.default, p.kind) for p in inspect.signature(type(o)).parameters.values()]
                  for o in (mine, its)]
    assert parameters[0] == parameters[1]


def test_checkpoints_interchange():
    def start(module, optim):
        p = module.tensor([1.0, 2.0], requires_grad=True)
        optimizer = optim.Adam([p], lr=0.1)
        return p, optimizer

    p1, o1 = start(torch, theirs)
    p2, o2 = start(flambeau, ours)
    for _ in range(3):
        p1.grad = torch.tensor([0.5, -1.0])
        o1.step()
    state = o1.state_dict()
    state["state"] = {k: {n: flambeau.tensor(v.numpy()) for n, v in s.items()} for k, s in state["state"].items()}
    o2.load_state_dict(state)
    with flambeau.no_grad():
        p2.copy_(flambeau.tensor(p1.detach().numpy()))
    p1.grad, p2.grad = torch.tensor([0.5, -1.0]), flambeau.tensor([0.5, -1.0])
    o1.step()
    o2.step()
    np.testing.assert_allclose(p2.detach().numpy(), p1.detach().numpy(), rtol=1e-6)


def test_duplicate_parameters_warn():
    for module, optim in ((torch, theirs), (flambeau, ours)):
        p = module.nn.Parameter(module.ones(1))
        with pytest.warns(UserWarning, match="optimizer contains a parameter group with duplicate parameters"):
            optim.SGD([p, p])


SCHEDULERS = [
    "LambdaLR(o, lambda e: 0.9 ** e)", "LambdaLR(o, [lambda e: 0.9 ** e, lambda e: 1 / (e + 1)])",
    "MultiplicativeLR(o, lambda e: 0.9)", "StepLR(o, 3)", "MultiStepLR(o, [2, 5, 5], 0.5)", "ConstantLR(o, 0.4, 3)",
    "LinearLR(o)", "LinearLR(o, 0.2, 0.9, 3)", "ExponentialLR(o, 0.9)", "CosineAnnealingLR(o, 4, 0.01)",
    "CosineAnnealingWarmRestarts(o, 3, 2, 0.001)", "CyclicLR(o, 0.01, 0.1, 3, 2)",
    "CyclicLR(o, 0.01, [0.1, 0.2], 2, mode='triangular2')", "CyclicLR(o, 0.01, 0.1, 2, mode='exp_range', gamma=0.9)",
    "CyclicLR(o, 0.01, 0.1, 2, scale_fn=lambda x: 0.5 ** x, scale_mode='iterations')",
    "OneCycleLR(o, 0.5, total_steps=14)", "OneCycleLR(o, [0.5, 0.6], epochs=2, steps_per_epoch=7, three_phase=True)",
    "OneCycleLR(o, 0.5, total_steps=14, anneal_strategy='linear', cycle_momentum=False)",
    "PolynomialLR(o, 6, 2.0)", "SequentialLR(o, [ConstantLR(o, 0.1, 2), ExponentialLR(o, 0.9), StepLR(o, 2)], [3, 6])",
    "ChainedScheduler([ConstantLR(o, 0.1, 4), ExponentialLR(o, 0.9)])",
]


def two_groups(module, optim, name="SGD"):
    p, q = module.nn.Parameter(module.ones(1)), module.nn.Parameter(module.ones(1))
    options = {"momentum": 0.9} if name == "SGD" else {}
    return getattr(optim, name)([{"params": [p]}, {"params": [q], "lr": 0.05}], lr=0.1, **options)


@pytest.mark.parametrize("name", ["SGD", "Adam"])
@pytest.mark.parametrize("source", SCHEDULERS)
def test_scheduler(source, name):
    courses = []
    for module, optim in ((torch, theirs), (flambeau, ours)):
        optimizer = two_groups(module, optim, name)
        scheduler = eval(source, {"o": optimizer, **vars(optim.lr_scheduler)})
        course = []
        for _ in range(12):
            optimizer.step()
            course.append([(g["lr"], g.get("momentum"), g.get("betas")) for g in optimizer.param_groups])
            scheduler.step()
            course.append(scheduler.get_last_lr())
        state = {k: v for k, v in scheduler.state_dict().items() if k not in ("_schedulers", "_schedule_phases")}
        courses.append((course, state))
        # training continues from a loaded state
        again = eval(source, {"o": two_groups(module, optim, name), **vars(optim.lr_scheduler)})
        again.load_state_dict(scheduler.state_dict())
        assert again.last_epoch == scheduler.last_epoch if hasattr(scheduler, "last_epoch") else True
    assert courses[0][0] == courses[1][0]
    assert courses[0][1].keys() == courses[1][1].keys()
    assert courses[0][1] == courses[1][1]


@pytest.mark.parametrize("options", ["", "mode='max', threshold_mode='abs', factor=0.5", "patience=0, cooldown=1",
                                     "min_lr=[0.01, 0.02], patience=1, threshold=0.1"])
def test_plateau(options):
    courses = []
    for module, optim in ((torch, theirs), (flambeau, ours)):
        optimizer = two_groups(module, optim)
        scheduler = eval(f"S(optimizer, {options})", {"S": optim.lr_scheduler.ReduceLROnPlateau,
                                                      "optimizer": optimizer})
        course = []
        for i in range(30):
            scheduler.step(3 - 0.01 * i if i < 8 else 5.0)
            course.append(scheduler.get_last_lr())
        courses.append((course, scheduler.state_dict()))
    assert courses[0] == courses[1]


@pytest.mark.parametrize("source", [
    "StepLR(3, 2)", "StepLR(o, 2, last_epoch=1)", "LambdaLR(o, [1])", "MultiplicativeLR(o, 3)",
    "ReduceLROnPlateau(o, factor=2)", "ReduceLROnPlateau(o, mode='x')", "ReduceLROnPlateau(o, min_lr=[1])",
    "OneCycleLR(o, [1], 10)", "OneCycleLR(o, 1)", "OneCycleLR(o, 1, -3)", "OneCycleLR(o, 1, 10, anneal_strategy='x')",
    "CosineAnnealingWarmRestarts(o, 0)", "CosineAnnealingWarmRestarts(o, 2, 0.5)", "ConstantLR(o, 2)",
    "LinearLR(o, 0)", "LinearLR(o, 1, 2)", "SequentialLR(o, [], [])", "SequentialLR(o, [StepLR(o, 2)], [1])",
    "ChainedScheduler([])", "CyclicLR(o, 1, 2, mode='x')",
])
def test_scheduler_errors(source):
    caught = []
    for module, optim in ((torch, theirs), (flambeau, ours)):
        with pytest.raises(Exception) as info:
            eval(source, {**vars(optim.lr_scheduler), "o": two_groups(module, optim)})
        caught.append((type(info.value), str(info.value).replace("flambeau.", "torch.")))
    assert caught[1] == caught[0]


def test_scheduler_warnings():
    caught = []
    for module, optim in ((torch, theirs), (flambeau, ours)):
        with warnings.catch_warnings(record=True) as records:
            warnings.simplefilter("always")
            scheduler = optim.lr_scheduler.StepLR(two_groups(module, optim), 2)
            scheduler.step()
            scheduler.step(4)
            scheduler.get_lr()
        caught.append([(w.category, str(w.message).replace("flambeau.", "torch.")) for w in records])
    assert len(caught[0]) == 3
    assert caught[1] == caught[0]


def test_gradients_of_the_momentum_product_of_nadam():
    found = []
    for lib in (torch, flambeau):
        p = lib.tensor([1.0, 2.0], dtype=lib.float64, requires_grad=True)
        product = lib.tensor(0.5, dtype=lib.float64, requires_grad=True)
        q = p.clone()
        q.grad = lib.tensor([0.5, 0.25], dtype=lib.float64)
        optimizer = lib.optim.NAdam([q], lr=0.1, differentiable=True)
        optimizer.state[q].update(step=lib.tensor(3.0, dtype=lib.float64), mu_product=product.clone(),
                                  exp_avg=lib.ones(2, dtype=lib.float64), exp_avg_sq=lib.ones(2, dtype=lib.float64))
        optimizer.step()
        q.sum().backward()
        found.append((q.tolist(), product.grad.item()))
    np.testing.assert_allclose(found[1][0], found[0][0], rtol=1e-12)
    np.testing.assert_allclose(found[1][1], found[0][1], rtol=1e-12)


@pytest.mark.parametrize("kind", ["cos", "linear"])
def test_states_of_one_cycle_schedules_with_the_function_itself(kind):
    found = []
    for lib in (torch, flambeau):
        optimizer = lib.optim.SGD([lib.zeros(1, requires_grad=True)], lr=0.1, momentum=0.9)
        schedule = lib.optim.lr_scheduler.OneCycleLR(optimizer, max_lr=1.0, total_steps=6)
        del schedule._anneal_func_type  # as of PyTorch before 2.0
        state = {**schedule.state_dict(), "anneal_func": getattr(type(schedule), f"_annealing_{kind}")}
        schedule.load_state_dict(state)
        rates = []
        for _ in range(5):
            optimizer.step()
            schedule.step()
            rates.append((schedule.get_last_lr(), optimizer.param_groups[0]["momentum"]))
        found.append(rates)
    assert found[0] == found[1]


def test_line_search_that_packages_import() -> None:
    def program(library: Any) -> list[Any]:
        from importlib import import_module

        lbfgs = import_module(f"{library.__name__}.optim.lbfgs")
        x, d = library.tensor([1.2, -3.0], dtype=library.float64), library.tensor([-0.4, 2.0], dtype=library.float64)

        def objective(x: Any, t: float, d: Any) -> tuple[float, Any]:
            y = x + t * d
            return float((y ** 4).sum() - y.prod()), 4 * y ** 3 - y.flip(0)

        f, g = objective(x, 0.0, d)
        found: list[Any] = []
        for t in (0.01, 1.0, 7.0):
            loss, grad, length, calls = lbfgs._strong_wolfe(objective, x, t, d, f, g, g.dot(d), max_ls=10)
            found += [round(float(loss), 10), grad.tolist(), round(float(length), 10), calls]
        slopes = library.tensor([-2.0, 1.0])
        step = lbfgs._cubic_interpolate(0.0, 1.0, slopes[0], 1.0, 0.5, slopes[1], bounds=(0.1, 0.9))
        return [*found, float(step)]

    for a, b in zip(program(flambeau), program(torch), strict=True):
        assert a == pytest.approx(b)
