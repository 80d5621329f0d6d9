"""Stub for PyTorch's base class of module tests; its tables of modules are empty."""

from __future__ import annotations

from typing import Any

import torch

from ..placeholder import Placeholder
from .common_utils import TestCase, freeze_rng_state, gradcheck, set_default_dtype

module_tests: list[Any] = []
new_module_tests: list[Any] = []
criterion_tests: list[Any] = []
loss_reference_fns: dict[str, Any] = {}


def get_new_module_tests() -> list[Any]:
    """No tables."""
    return []


class NewModuleTest:
    """A test of a module on one input: it runs, and its derivatives agree with differences.

    Args:
        settings: `constructor`, `constructor_args`, `fullname`, `input_size` or `input_fn`, `default_dtype`, ...
    """

    test_cpu = True
    with_tf32 = check_half = check_bfloat16 = False

    def __init__(self, **settings: Any) -> None:
        self.settings = settings
        self.default_dtype = settings.get("default_dtype") or torch.float

    def get_name(self) -> str:
        """The name of the test."""
        name = self.settings.get("fullname") or self.settings["constructor"].__name__
        return "_".join(filter(None, ("test", name, self.settings.get("desc"))))

    def __call__(self, test_case: Any) -> None:
        settings = self.settings
        with set_default_dtype(self.default_dtype):
            module = settings["constructor"](*settings.get("constructor_args", ()))
            x = settings["input_fn"]() if "input_fn" in settings else torch.randn(settings["input_size"])
            x = x.to(torch.double).requires_grad_()
            gradcheck(module.double(), (x,), check_batched_grad=False)

    def test_cuda(self, test_case: Any) -> None:
        """There is no GPU."""
        test_case.skipTest("for another device")


class NNTestCase(TestCase):
    """Base of module tests."""


def _test_module_empty_input(test_case: Any, module: Any, inp: Any, check_size: bool = True,
                             inference: bool = False) -> None:
    """Forward and, unless `inference`, backward of an input without elements."""
    if not inference:
        inp.requires_grad_(True)
    out = module(inp)
    if not inference:
        out.backward(torch.rand_like(out))
    if check_size:
        test_case.assertEqual(out.size(), inp.size())
    if inference:
        return
    for parameter in module.parameters():
        if parameter.requires_grad:
            test_case.assertEqual(parameter.grad, torch.zeros_like(parameter.grad))
    test_case.assertEqual(inp.grad, torch.zeros_like(inp))


def _create_basic_net() -> tuple[Any, Any, Any]:
    """Three nested modules, the inner ones with a parameter and a buffer."""
    class Layer(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layer_dummy_param = torch.nn.Parameter(torch.empty(3, 5))
            self.layer_dummy_buf = torch.nn.Buffer(torch.zeros(1, 3, 3, 7))

    class Net(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.l1 = Layer()
            self.dummy_param = torch.nn.Parameter(torch.empty(3, 5))
            self.dummy_buf = torch.nn.Buffer(torch.zeros(7, 3, 3, 1))

    layer, net = Layer(), Net()
    return layer, net, torch.nn.Sequential(net, torch.nn.ReLU())


def __getattr__(name: str) -> Any:
    if name.startswith("__"):
        raise AttributeError(name)
    return Placeholder(f"torch.testing._internal.common_nn.{name}", internal=True)


__all__ = ["NNTestCase", "criterion_tests", "freeze_rng_state", "loss_reference_fns", "module_tests",
           "new_module_tests"]
