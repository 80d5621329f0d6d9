"""Random numbers on a device, drawn as by earlier calls of the same layouts: a launch stub with the generator's state.

Nothing of a call but the state is another one's: the seed, and the number of the first block of words, are written into
the stub's constants before it is entered.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

from .... import devices, dtypes
from ....backends.cuda_devices.array import DeviceArray
from ....backends.cuda_devices.launch_recording import LaunchRecording, Unrecordable
from ....codegen.gpu.statements import Buffer
from ....engine.grad_mode import grad_mode, no_grad
from ....kernels.philox import PhiloxEngine
from ....modes import inference_used
from ...parameter import Parameter
from ...tensor import Tensor, wrap
from .. import draws, sampling
from ..calls import called_on_device
from ..generators import default_generator
from .conditions import may_draw

_TENSORS = frozenset((Tensor, Parameter))
_PLAIN = frozenset((bool, int, float, str, tuple, type(None), dtypes.dtype, devices.device))
FILLS = frozenset(f"torch.Tensor.{name}_" for name in (
    "uniform", "normal", "exponential", "random", "bernoulli", "cauchy", "geometric", "log_normal"))
FACTORIES = frozenset(("torch.rand", "torch.randn", "torch.randint"))
#: dropout's functions -> the names of their arguments, and the values of those that may be left out
DROPOUT = {"torch.dropout": (("input", "p", "train"), {}),
           "torch.nn.functional.dropout": (("input", "p", "training", "inplace"),
                                           {"p": 0.5, "training": True, "inplace": False})}
_LAYOUTS = 512
#: words of a call of the driver before the kernel's parameters; those of `cuCtxSetCurrent` in a stub's table
_BEFORE, _CONTEXT = 9, 6
#: in place of a launch: the arguments came once; they cannot be recorded
_SEEN, _NEVER = object(), object()
#: guards stubs' constants between their being written and the launch
_lock = threading.Lock()


def recorded(runtime: Any, device: int, engine: PhiloxEngine, run: Callable[[], tuple[tuple[DeviceArray, ...],
                                                                                        tuple[DeviceArray, ...]]]
             ) -> Callable[..., Any]:
    """A function of arrays that draws as another one does, which is run once; the generator does not notice.

    Args:
        run: returns the arrays that it is given and the new ones.

    Raises:
        Unrecordable: it launches something else than one kernel that draws.
    """
    if engine.graph is not None or runtime.is_capturing(device, runtime.current_stream(device)):
        raise Unrecordable
    before = engine.offset
    try:
        with LaunchRecording(runtime, device) as recording:
            given, made = run()
        words = engine.offset - before
    finally:
        engine.offset = before
    kernels = [step for step in recording.steps if step[0] == "kernel"]
    if len(recording.steps) != 1 or len(kernels) != 1 or not words:
        raise Unrecordable
    launch = recording.launch(given, made)
    stub = recording.stub
    assert stub is not None
    parameters = kernels[0][1].parameters
    seed, first = [i for i, each in enumerate(parameters) if not isinstance(each, Buffer)][:2]
    start = 3 + (_CONTEXT if runtime.count > 1 else 0)
    seed_at, first_at = (start + 3 * (_BEFORE + i) + 2 for i in (seed, first))
    table: Any = memoryview(stub.table.data)

    def draw(*arrays: DeviceArray) -> Any:
        with _lock:
            offset, key = engine.offset, engine.initial_seed
            table[seed_at] = key - (1 << 64) if key >= 1 << 63 else key
            table[first_at] = offset >> 2
            result = launch(*arrays)
            if result is not None:
                engine.offset = offset + words
        return result

    return draw


class _Table:
    """The launches of one function by its arguments.

    Args:
        name: the function's.
        runtime: the device's runtime.
    """

    def __init__(self, name: str, runtime: Any) -> None:
        self._name, self._runtime = name, runtime
        self._known: dict[Any, Any] = {}

    def _next(self, key: Any) -> Any:
        """The launch of a key, None where it is to be recorded now; `_NEVER` where the function itself runs."""
        try:
            known = self._known.get(key)
        except TypeError:  # a list of sizes
            return _NEVER
        if known is None:
            if len(self._known) >= _LAYOUTS:
                self._known.clear()
            self._known[key] = _SEEN
            return _NEVER
        if known is _SEEN:
            self._known[key] = _NEVER
            return None
        return known

    def _key(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Arguments that are no tensors, with their types; None where there are others than plain ones."""
        values = [*args, *kwargs.values()]
        if any(each.__class__ not in _PLAIN for each in values):
            return None
        return (*kwargs, *values, *[each.__class__ for each in values])


class FactoryTable(_Table):
    """`rand` and its like."""

    def call(self, implementation: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """The tensor of a call; NotImplemented where the function itself has to run."""
        key = self._key(args, kwargs) if may_draw() else None
        if key is None:
            return NotImplemented
        key = (devices.ambient[0], self._runtime.current.device, dtypes.get_default_dtype(), *key)
        known = self._next(key)
        if known is _NEVER or (known is not None and known[1].graph is not None):
            return NotImplemented
        if known is None:
            made: Any = called_on_device(self._name, implementation, args, kwargs)
            if made.__class__ is Tensor and made._array.__class__ is DeviceArray and made._array.size:
                device = made._array.memory.device.index
                engine = default_generator(device).engine

                def run() -> Any:
                    return (), (called_on_device(self._name, implementation, args, kwargs)._array,)

                try:
                    self._known[key] = recorded(self._runtime, device, engine, run), engine, made._requires_grad
                except Unrecordable:
                    pass
            return made
        result: Tensor = wrap(known[0]())
        result._requires_grad = known[2]
        return result


class FillTable(_Table):
    """Methods that fill a tensor."""

    def call(self, implementation: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """The tensor, filled; NotImplemented where the method itself has to run."""
        x: Any = args[0] if args else None
        if x.__class__ not in _TENSORS or x._node is not None or x._base is not None or (
                x._requires_grad and grad_mode.get()) or (inference_used[0] and x._inference) or not may_draw():
            return NotImplemented
        a: Any = x._array
        rest = self._key(args[1:], kwargs) if a.__class__ is DeviceArray and a.size else None
        if rest is None:
            return NotImplemented
        key = (a.memory.device, a.dtype.num, a.dtype.names, a.shape, a.strides, *rest)
        known = self._next(key)
        if known is _NEVER or (known is not None and known[1].graph is not None):
            return NotImplemented
        if known is None:
            result = called_on_device(self._name, implementation, args, kwargs)
            device = a.memory.device.index
            engine = default_generator(device).engine

            def run() -> Any:
                other = self._runtime.empty(device, a.shape, a.dtype, a.strides)
                called_on_device(self._name, implementation, (wrap(other), *args[1:]), kwargs)
                return (other,), ()

            try:
                self._known[key] = recorded(self._runtime, device, engine, run), engine
            except Unrecordable:
                pass
            return result
        if known[0](a) is None:
            return NotImplemented
        x._bump_version()
        return x


class DropoutTable(_Table):
    """`dropout` of dense floating tensors."""

    def call(self, implementation: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """The tensor, dropped out; NotImplemented where the function itself has to run."""
        names, defaults = DROPOUT[self._name]
        given = {**defaults, **dict(zip(names, args, strict=False)), **kwargs}
        if len(given) != len(names) or len(args) > len(names) or not may_draw():
            return NotImplemented
        x, p, train, *inplace = (given.get(each) for each in names)
        if x.__class__ not in _TENSORS or (inference_used[0] and x._inference):
            return NotImplemented
        if p.__class__ is not float or not 0 < p < 1 or inplace == [True]:
            return NotImplemented
        if train is False:
            return x
        a: Any = x._array
        if a.__class__ is not DeviceArray or not a.size or not a.flags.c_contiguous or train is not True:
            return NotImplemented
        vector = draws.vector_size(a)
        key = a.memory.device, a.dtype.num, a.dtype.names, a.shape, p, vector
        known = self._next(key)
        if known is _NEVER or (known is not None and known[1].graph is not None):
            return NotImplemented
        if known is None:
            result = called_on_device(self._name, implementation, args, kwargs)
            device = a.memory.device.index
            generator = default_generator(device)

            def run() -> Any:
                other = self._runtime.empty(device, a.shape, a.dtype)
                return (other,), sampling.dropped(generator, other, 1 - p, vector)

            try:
                with no_grad():
                    self._known[key] = recorded(self._runtime, device, generator.engine, run), generator.engine
            except Unrecordable:
                pass
            return result
        made = known[0](a)
        if made is None:
            return NotImplemented
        return draws.recorded(x, wrap(made[0]), wrap(made[1]), 1 / (1 - p))


def table(name: str, runtime: Any) -> Any:
    """What runs a function's repeated calls; None: it does not draw."""
    if name in FACTORIES:
        return FactoryTable(name, runtime).call
    if name in FILLS:
        return FillTable(name, runtime).call
    return DropoutTable(name, runtime).call if name in DROPOUT else None


__all__ = ["DropoutTable", "FactoryTable", "FillTable", "recorded", "table"]
