"""Fake tensors: what they print, raise and record is what PyTorch's do."""

from __future__ import annotations

import copy
import importlib
import logging
from collections.abc import Callable
from typing import Any

import pytest

import flambeau
from flambeau._subclasses.fake_tensor import FakeTensor, FakeTensorMode

Program = Callable[[Any, Any, Any, Callable[[Callable[[], Any]], None]], None]


def _creation(torch: Any, fake: Any, mode: Any, show: Any) -> None:
    x = mode.from_tensor(torch.ones(2, 3, requires_grad=True))
    y = x * 2
    show(lambda: (x, x.device, x.is_meta, x.requires_grad, x.is_leaf, x.fake_device, x.fake_mode is mode))
    show(lambda: (y, y.grad_fn.name(), x.detach(), x.clone(), x.size(), x.dtype))
    show(lambda: (fake.is_fake(x), fake.is_fake(torch.ones(1)), fake.FakeTensor.from_tensor(torch.ones(3), mode)))
    show(lambda: mode.from_tensor(torch.nn.Parameter(torch.ones(3))))
    show(lambda: x.untyped_storage().device)
    real = torch.ones(3)
    show(lambda: mode.from_tensor(real) is mode.from_tensor(real))
    x.sum().backward()
    show(lambda: x.grad)
    show(lambda: fake.FakeTensor(1, 2, 3))


def _memory(torch: Any, fake: Any, mode: Any, show: Any) -> None:
    """Storages, gradients, memos and shapes that change in place."""
    base = torch.ones(4, 3)
    x, y = mode.from_tensor(base), mode.from_tensor(base[1:])
    show(lambda: (torch._C._storage_id(x) == torch._C._storage_id(y), y.storage_offset(), y.stride()))
    leaf = torch.ones(2, requires_grad=True)
    leaf.grad = torch.ones(2)
    copied = mode.from_tensor(leaf)
    show(lambda: (copied.grad, fake.is_fake(copied.grad)))
    converter = mode.fake_tensor_converter
    meta = torch.ones(2, device="meta")
    once = converter.from_meta_and_device(mode, meta, "cpu")
    show(lambda: (once is converter.from_meta_and_device(mode, meta, "cpu"), once.device.type))
    with mode:
        z = torch.tensor([1])
        z.resize_([2])
        show(lambda: (z.size(0), z.constant, z))
        show(lambda: torch.ones(2).new_full([2, torch.tensor([3, 4])[0]], 0.0))
        with torch.inference_mode():
            show(lambda: (torch.rand(2) + 1).is_inference())


def _elements(torch: Any, fake: Any, mode: Any, show: Any) -> None:
    x = mode.from_tensor(torch.ones(2, 3))
    show(lambda: x.sum().item())
    show(lambda: bool(x.sum() > 0))
    show(lambda: x.sum().tolist())
    show(lambda: x.numpy())
    show(lambda: x.nonzero())
    show(lambda: x[x > 0])
    show(lambda: x.masked_select(x > 0))
    show(lambda: torch.unique(x))
    show(lambda: torch.equal(x, x))
    show(lambda: torch.allclose(x, x))
    show(lambda: x + torch.ones(2, 3))
    show(lambda: x + torch.ones(()))
    show(lambda: x.view(5))
    with mode:
        constant = torch.tensor(3)
        show(lambda: (constant, constant.item(), (constant + 1).item()))
        show(lambda: torch.tensor([1.0, 2.0]).sum().item())


def _inside(torch: Any, fake: Any, mode: Any, show: Any) -> None:
    with mode:
        a = torch.empty(3, 4)
        layer = torch.nn.Linear(4, 5)
        show(lambda: (layer.weight, isinstance(layer.weight, torch.nn.Parameter), layer(a)))
        show(lambda: (torch.empty(3, device="meta"), torch.zeros(2).add_(1), torch.arange(5), torch.rand(2)))
        v = a[1:]
        show(lambda: (v, v._base is a, v._is_view(), a.t().stride(), a.to(torch.float64), torch.randint(3, (2,))))
        show(lambda: (torch.stack([a, a]).shape, torch.cat([a, a]), torch.nn.functional.dropout(a, 0.5)))
    with fake.FakeTensorMode(allow_non_fake_inputs=True):
        show(lambda: torch.ones(3) + torch.ones(3))


def _custom(torch: Any, fake: Any, mode: Any, show: Any) -> None:
    total = torch.library.custom_op("fake_tests::total", lambda x: x.sum(0).clone(), mutates_args=(),
                                    schema="(Tensor x) -> Tensor")
    x = mode.from_tensor(torch.ones(3, 4))
    show(lambda: total(x))
    show(lambda: total(torch.ones(3, device="meta")))
    total.register_fake(lambda x: x.new_empty(x.shape[1:]))
    show(lambda: (total(x), total(torch.ones(3, 4, device="meta")), total(torch.ones(3, 4))))


def _lines(name: str, program: Program) -> list[str]:
    torch = importlib.import_module(name)
    fake = importlib.import_module(f"{name}._subclasses.fake_tensor")
    lines = []

    def show(what: Callable[[], Any]) -> None:
        try:
            text = repr(what())
        except Exception as error:
            text = f"{type(error).__name__}: {error}"
        lines.append(text.replace("flambeau", "torch"))

    program(torch, fake, fake.FakeTensorMode(), show)
    return lines


@pytest.mark.parity
@pytest.mark.parametrize("program", [_creation, _memory, _elements, _inside, _custom])
def test_programs_print_what_pytorch_prints(program: Program) -> None:
    """Values, errors and their texts."""
    pytest.importorskip("torch")
    logging.disable(logging.ERROR)
    try:
        expected = _lines("torch", program)
    finally:
        logging.disable(logging.NOTSET)
    assert _lines("flambeau", program) == expected


@pytest.mark.parametrize("make", [
    lambda nn: (nn.LSTM(3, 4), (2, 5, 3)), lambda nn: (nn.TransformerEncoderLayer(8, 2), (3, 2, 8)),
    lambda nn: (nn.Conv2d(3, 4, 3), (1, 3, 6, 6)), lambda nn: (nn.BatchNorm2d(3), (2, 3, 4, 4)),
    lambda nn: (nn.GRU(3, 4, 2, batch_first=True), (2, 5, 3)), lambda nn: (nn.MaxPool2d(2), (1, 2, 4, 4))])
def test_modules_run_without_elements(make: Any) -> None:
    """Shapes are those on elements, and a backward pass gives fake gradients."""
    from flambeau._subclasses.fake_tensor import FakeCopyMode, FakeTensor, FakeTensorMode

    module, shape = make(flambeau.nn)
    real = module(flambeau.ones(shape))
    mode = FakeTensorMode()
    with FakeCopyMode(mode):
        copied = copy.deepcopy(module)
    with mode:
        out = copied(mode.from_tensor(flambeau.ones(shape, requires_grad=True)))
    out, real = (x[0] if isinstance(x, tuple) else x for x in (out, real))
    assert isinstance(out, FakeTensor)
    assert (out.shape, out.dtype) == (real.shape, real.dtype)
    with mode:
        out.sum().backward()
    for p in copied.parameters():
        assert isinstance(p.grad, FakeTensor)
        assert p.grad.shape == p.shape


def test_passes_take_modes_of_fake_tensors() -> None:
    """ShapeProp and FakeTensorProp compute nothing."""
    from flambeau._subclasses.fake_tensor import FakeTensorMode
    from flambeau.fx.passes.fake_tensor_prop import FakeTensorProp
    from flambeau.fx.passes.shape_prop import ShapeProp

    gm = flambeau.fx.symbolic_trace(flambeau.nn.Linear(2, 3))
    FakeTensorProp(gm, FakeTensorMode(allow_non_fake_inputs=True)).propagate(flambeau.ones(4, 2))
    *_, last, _ = gm.graph.nodes
    assert last.meta["val"].shape == (4, 3)
    result = ShapeProp(gm, fake_mode=FakeTensorMode()).propagate(flambeau.ones(4, 2))
    assert repr(result).startswith("FakeTensor")
    assert last.meta["tensor_meta"].shape == (4, 3)


POOLING = {
    "max_pool1d": ((2, 3, 8), (2,)), "max_pool2d": ((2, 3, 8, 8), (2,)), "max_pool3d": ((2, 3, 4, 4, 4), (2,)),
    "adaptive_max_pool1d": ((2, 3, 8), (2,)), "adaptive_max_pool2d": ((2, 3, 8, 8), (2,)),
    "adaptive_max_pool3d": ((2, 3, 4, 4, 4), (2,)), "fractional_max_pool2d": ((2, 3, 8, 8), (2, 3)),
    "fractional_max_pool3d": ((2, 3, 8, 8, 8), (2, 3)),
}


@pytest.mark.parametrize("name", POOLING)
def test_indices_of_maxima_are_fake(name):
    shape, options = POOLING[name]
    function = getattr(flambeau.nn.functional, name)
    expected = function(flambeau.rand(shape), *options, return_indices=True)
    with FakeTensorMode():
        found = function(flambeau.rand(shape), *options, return_indices=True)
        pair = function(flambeau.rand(shape, requires_grad=True), *options, return_indices=True)
        pair[0].sum().backward()
    for fake, real in zip(found, expected, strict=True):
        assert isinstance(fake, FakeTensor)
        assert (fake.shape, fake.dtype, fake.device) == (real.shape, real.dtype, real.device)


def test_a_mode_does_not_live_for_its_fake_tensors() -> None:
    import weakref

    x = flambeau.ones(2)
    mode = FakeTensorMode()
    made = mode.from_tensor(x)
    assert len(mode.fake_tensor_converter.tensor_memo) == 1
    reference = weakref.ref(mode)
    del mode, made
    assert reference() is None


@pytest.mark.parity
def test_results_are_inferred_once() -> None:
    torch = pytest.importorskip("torch")

    def counts(module: Any) -> list[Any]:
        mode_class = importlib.import_module(f"{module.__name__}._subclasses.fake_tensor").FakeTensorMode
        found = []

        def count(run: Callable[[], Any]) -> None:
            result = run()
            info = mode_class.cache_info()
            found.append((info.hits, info.misses, str(result.dtype)[-7:], tuple(result.shape), result.stride()))

        with mode_class():
            x, y, z = module.ones(3, 2), module.ones(2, 3).t(), module.ones(2, 3)
            mode_class.cache_clear()
            for _ in range(2):
                count(lambda: x + y)
                count(lambda: x + 1.0)
                count(lambda: x + 1)
                count(lambda: x @ z)
            with module.inference_mode():
                count(lambda: x + 1)
        return found

    assert counts(flambeau) == counts(torch)


@pytest.mark.parametrize("make", [
    lambda torch: torch.nn.BatchNorm2d(2), lambda torch: torch.nn.MaxPool2d(2), lambda torch: torch.nn.Dropout(0.5)])
def test_known_results_are_differentiated(make: Any) -> None:
    """Operators that save what their kernels find are not answered from what is known."""
    module = make(flambeau)
    mode = FakeTensorMode(allow_non_fake_inputs=True)
    for _ in range(3):
        with mode:
            x = flambeau.ones(2, 2, 4, 4, requires_grad=True)
            module(x).sum().backward()
            assert x.grad.shape == x.shape
