"""`torch._dynamo.testing`: backends that count and record graphs, and helpers of PyTorch's tests."""

from __future__ import annotations

import contextlib
import functools
import random
import re
import sys
import unittest
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import flambeau as torch

from ..api import reset
from . import config, optimize_assert
from . import utils as utils
from .eval_frame import unsupported as unsupported
from .utils import CompileCounterInt, same

three = 3


class CompileCounter:
    """A backend that counts graphs and their calls, and runs them as they are.

    Attributes:
        frame_count: graphs.
        op_count: calls in them.

    >>> counter = CompileCounter()
    >>> torch.compile(lambda x: x.sin() + 1, backend=counter)(torch.zeros(2))
    tensor([1., 1.])
    >>> counter.frame_count, counter.op_count
    (1, 2)
    """

    def __init__(self) -> None:
        self.clear()

    def __call__(self, gm: Any, example_inputs: Sequence[Any]) -> Callable[..., Any]:
        self.frame_count += 1
        self.op_count += sum("call" in node.op for node in gm.graph.nodes)
        forward: Callable[..., Any] = gm.forward
        return forward

    def clear(self) -> None:
        """Set both counts to 0."""
        self.frame_count: int = CompileCounterInt(0) if config.debug_disable_compile_counter else 0
        self.op_count = 0


class CompileCounterWithBackend(CompileCounter):
    """A `CompileCounter` that lets another backend compile the graphs, and keeps them.

    Args:
        backend: the name of the backend.

    Attributes:
        graphs: the graphs.

    >>> counter = CompileCounterWithBackend("inductor")
    >>> torch.compile(lambda x: x.sin() + 1, backend=counter)(torch.zeros(2))
    tensor([1., 1.])
    >>> len(counter.graphs)
    1
    """

    def __init__(self, backend: Any) -> None:
        self.backend = backend
        super().__init__()

    def __call__(self, gm: Any, example_inputs: Sequence[Any]) -> Callable[..., Any]:
        super().__call__(gm, example_inputs)
        self.graphs.append(gm)
        if callable(self.backend):
            made: Callable[..., Any] = self.backend(gm, example_inputs)
            return made
        return torch.compile(gm.forward, backend=self.backend)

    def clear(self) -> None:
        """Set both counts to 0, and drop the graphs."""
        super().clear()
        self.graphs: list[Any] = []


class EagerAndRecordGraphs:
    """A backend that keeps graphs, and runs them as they are.

    >>> backend = EagerAndRecordGraphs()
    >>> torch.compile(lambda x: x + 1, backend=backend)(torch.zeros(2))
    tensor([1., 1.])
    >>> [node.op for node in backend.graphs[0].graph.nodes]
    ['placeholder', 'call_function', 'output']
    """

    def __init__(self) -> None:
        self.graphs: list[Any] = []

    def __call__(self, gm: Any, example_inputs: Sequence[Any]) -> Callable[..., Any]:
        self.graphs.append(gm)
        forward: Callable[..., Any] = gm.forward
        return forward


def rand_strided(size: Sequence[int], stride: Sequence[int], dtype: Any = torch.float32, device: Any = "cpu",
                 extra_size: int = 0) -> Any:
    """A tensor of this shape and these strides: normal numbers, or zeros for dtypes that are not floating.

    Args:
        size, stride: shape and strides.
        dtype, device: as usual.
        extra_size: how many elements more its memory has.

    >>> rand_strided((2, 3), (1, 2)).stride()
    (1, 2)
    """
    needed = extra_size
    if 0 not in size:
        needed += 1 + sum((n - 1) * s for n, s in zip(size, stride, strict=True))
    if dtype.is_floating_point and dtype.itemsize == 1:
        memory = torch.randn(needed, dtype=torch.float16, device=device).to(dtype)
    elif dtype.is_floating_point:
        memory = torch.randn(needed, dtype=dtype, device=device)
    else:
        memory = torch.zeros(needed, dtype=dtype, device=device)
    return torch.as_strided(memory, tuple(size), tuple(stride))


def reset_rng_state(use_xla: bool = False) -> None:
    """Seed the generators of this package, Python and NumPy with 1337."""
    torch.manual_seed(1337)
    random.seed(1337)
    np.random.seed(1337)


def clone_me(x: Any) -> Any:
    """A copy of a tensor that is a leaf; None for None."""
    return None if x is None else x.detach().clone().requires_grad_(x.requires_grad)


def remove_optimized_module_prefix(name: str) -> str:
    """The name of a parameter without the prefix of compiled modules.

    >>> remove_optimized_module_prefix("_orig_mod.weight")
    'weight'
    """
    return re.sub(r"^_orig_mod[.]", "", name)


def requires_bwd_pass(out: Any) -> bool:
    """Whether a tensor among nested results requires grad.

    >>> requires_bwd_pass([torch.ones(1), None])
    False
    """
    if isinstance(out, torch.Tensor):
        return bool(out.requires_grad)
    if isinstance(out, (list, tuple)):
        return any(map(requires_bwd_pass, out))
    if out is None or isinstance(out, int):
        return False
    raise NotImplementedError("Don't know how to reduce", type(out))


def reduce_to_scalar_loss(out: Any) -> Any:
    """The mean of a tensor, or the mean of those of nested results.

    >>> reduce_to_scalar_loss([torch.ones(2), torch.zeros(3)])
    tensor(0.5000)
    """
    if isinstance(out, torch.Tensor):
        return out.sum() / out.numel()
    if isinstance(out, (list, tuple)):
        return sum(map(reduce_to_scalar_loss, out)) / len(out)
    if isinstance(out, dict) and not hasattr(out, "logits"):
        return sum(map(reduce_to_scalar_loss, out.values())) / len(out)
    if hasattr(out, "logits"):
        return reduce_to_scalar_loss(out.logits)
    raise NotImplementedError("Don't know how to reduce", type(out))


def collect_results(model: Any, prediction: Any, loss: Any, example_inputs: Any) -> list[Any]:
    """Prediction, loss, gradients, buffers and the inputs' gradients of a step, for comparison."""
    grads = {name + ".grad": clone_me(p.grad) for name, p in model.named_parameters()}
    buffers = {name: clone_me(b) for name, b in model.named_buffers()}
    inputs = example_inputs.values() if isinstance(example_inputs, dict) else example_inputs
    found = [prediction, loss, {remove_optimized_module_prefix(k): v for k, v in grads.items()},
             {remove_optimized_module_prefix(k): v for k, v in buffers.items()}]
    return found + [clone_me(x.grad) for each in inputs for x in (each if isinstance(each, (list, tuple)) else [each])
                    if isinstance(x, torch.Tensor)]


def strip_comment(code: str) -> str:
    """Python code without comments.

    >>> strip_comment("x = 1  # one")
    'x = 1  '
    """
    return re.sub(r"(?m)^ *#.*\n?|#.*$", "", str(code))


def remove_trailing_space(code: str) -> str:
    """Code without spaces at the ends of lines."""
    return "\n".join(line.rstrip() for line in code.split("\n"))


def normalize_gm(gm_str: str) -> str:
    """The code of a graph without comments, trailing spaces and repeated empty lines."""
    return re.sub(r"\n{2,}", "\n\n", remove_trailing_space(strip_comment(gm_str)))


def empty_line_normalizer(code: str) -> str:
    """Code without empty lines.

    >>> empty_line_normalizer("a\\n\\nb")
    'a\\nb'
    """
    return re.sub(r"[\r\n]+", "\n", code)


def check_dynamic_shape_capture() -> bool:
    """Whether sizes vary from the first call on (`config.assume_static_by_default`)."""
    return not config.assume_static_by_default


def extract_graph(fn: Callable[..., Any], *args: Any, **kwargs: Any) -> list[Any]:
    """The graphs of a call of a function."""
    backend = EagerAndRecordGraphs()
    optimize_assert(backend)(fn)(*args, **kwargs)
    return backend.graphs


def standard_test(self: Any, fn: Callable[..., Any], nargs: int, expected_ops: int | None = None,
                  expected_ops_dynamic: int | None = None, expected_frame_count: int = 1) -> None:
    """Compare a function with its compiled form, and the counts of its graphs with those that are expected.

    Args:
        self: the test case.
        fn: the function.
        nargs: how many tensors of 10 x 10 it takes.
        expected_ops, expected_ops_dynamic: calls in the graphs, with fixed and with varying sizes; None: any number.
        expected_frame_count: graphs.
    """
    if check_dynamic_shape_capture() and expected_ops_dynamic is not None:
        expected_ops = expected_ops_dynamic
    counter = CompileCounter()
    calls = [[torch.randn(10, 10) for _ in range(nargs)] for _ in range(2)]
    expected = [fn(*args) for args in calls]
    reset()
    compiled = optimize_assert(counter)(fn)
    found = [compiled(*args) for args in (*calls, *calls)]
    reset()
    for a, b in zip(found, expected * 2, strict=True):
        self.assertTrue(same(a, b))  # noqa: PT009
    self.assertEqual(counter.frame_count, expected_frame_count)  # noqa: PT009
    if expected_ops is not None:
        self.assertEqual(counter.op_count, expected_ops)  # noqa: PT009


def _make_fn_with_patches(fn: Callable[..., Any], *patches: tuple[Any, str, Any]) -> Callable[..., Any]:
    @functools.wraps(fn)
    def patched(*args: Any, **kwargs: Any) -> Any:
        with contextlib.ExitStack() as stack:
            for module, name, value in patches:
                stack.enter_context(module.patch({name: value}))
            return fn(*args, **kwargs)

    return patched


def make_test_cls_with_patches(cls: type, cls_prefix: str, fn_suffix: str, *patches: Any, xfail_prop: str | None = None,
                               decorator: Callable[[Any], Any] = lambda x: x) -> type:
    """A copy of a test class whose tests run with settings changed.

    Args:
        cls: the class.
        cls_prefix, fn_suffix: of the names of the class and of its tests.
        patches: triples of a settings module, a name and a value.
        xfail_prop: an attribute of tests that are expected to fail.
        decorator: applied to each test.
    """
    made = type(f"{cls_prefix}{cls.__name__}", cls.__bases__, {})
    made.__qualname__ = made.__name__
    for name in dir(cls):
        found = getattr(cls, name)
        if not name.startswith("test_"):
            if not hasattr(made, name):
                setattr(made, name, found)
        elif not callable(found):
            setattr(made, name, found)
        else:
            test = _make_fn_with_patches(found, *patches)
            test.__name__ = f"{name}{fn_suffix}"
            if xfail_prop is not None and hasattr(found, xfail_prop):
                test = unittest.expectedFailure(test)
            setattr(made, f"{name}{fn_suffix}", decorator(test))
    return made


def _marked(name: str) -> Callable[[Any], Any]:
    def mark(fn: Any) -> Any:
        setattr(fn, name, True)
        return fn

    return mark


# decorators of tests that fail in some of PyTorch's configurations
expectedFailureDynamic = _marked("_expected_failure_dynamic")  # noqa: N816
expectedFailureCodegenDynamic = _marked("_expected_failure_codegen_dynamic")  # noqa: N816
expectedFailureDynamicWrapper = _marked("_expected_failure_dynamic_wrapper")  # noqa: N816


def skipIfPy312(fn: Any) -> Any:
    """Skip a test on Python 3.12 and later."""
    return unittest.skipIf(sys.version_info >= (3, 12), "Not supported in Python 3.12+")(fn)


def skipIfNotPy311(fn: Any) -> Any:
    """Skip a test before Python 3.11."""
    return unittest.skipIf(sys.version_info < (3, 11), "Requires Python 3.11+")(fn)


def skipIfNotPy312(fn: Any) -> Any:
    """Skip a test before Python 3.12."""
    return unittest.skipIf(sys.version_info < (3, 12), "Requires Python 3.12+")(fn)


def skipIfOnlyNotPy312(fn: Any) -> Any:
    """Skip a test except on Python 3.12."""
    return unittest.skipIf(sys.version_info[:2] != (3, 12), "Requires Python 3.12")(fn)


def xfailIfPy312(fn: Any) -> Any:
    """Expect a test to fail on Python 3.12 and later."""
    return unittest.expectedFailure(fn) if sys.version_info >= (3, 12) else fn


__all__ = ["CompileCounter", "CompileCounterInt", "CompileCounterWithBackend", "EagerAndRecordGraphs",
           "check_dynamic_shape_capture", "clone_me", "collect_results", "empty_line_normalizer",
           "expectedFailureCodegenDynamic", "expectedFailureDynamic", "expectedFailureDynamicWrapper", "extract_graph",
           "make_test_cls_with_patches", "normalize_gm", "optimize_assert", "rand_strided", "reduce_to_scalar_loss",
           "remove_optimized_module_prefix", "remove_trailing_space", "requires_bwd_pass", "reset", "reset_rng_state",
           "same", "skipIfNotPy311", "skipIfNotPy312", "skipIfOnlyNotPy312", "skipIfPy312", "standard_test",
           "strip_comment", "three", "unsupported", "xfailIfPy312"]
