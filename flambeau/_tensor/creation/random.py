"""Random tensors: PyTorch's CPU generator, random functions and in-place methods.

The samples come from `kernels.random` and equal PyTorch's bit for bit; the exceptions are listed there.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator
from typing import Any

import numpy as np

from ... import devices, dtypes
from ...backends.bit_views import resolve
from ...backends.compiled.thresholds import LARGE_SEEN
from ...backends.numpy.memory import in_memory_of
from ...backends.sparse_array import CooArray, SparseArray, not_implemented
from ...dtypes import dtype as dtype_type
from ...errstate import run_in_quiet
from ...kernels import random as kernels
from ...kernels.memory_format import empty_in_layout, with_preserved_strides
from ...modes import active_tracers, device_memory, inference, special
from ...ops.declare import REGISTRY
from ...shapes import broadcast_shapes
from ..argument_errors.out_arguments import check_records_nothing
from ..argument_errors.type_names import type_name
from ..dispatch.apply import apply
from ..dispatch.binding import give_shape
from ..dispatch.complex_half import warn_of_complex_half
from ..dispatch.handlers import handlers
from ..dispatch.inplace import apply_inplace, record_underived
from ..dispatch.write_checks import check_overlap, check_writable, is_tracked, prepare_write, warn_of_resize
from ..meta import is_meta, meta_array, no_meta_kernel, reserved
from ..tensor import INFERENCE, Tensor, wrap
from ..tracer_notifications import notify_created, notify_overwritten
from .constants import empty_like, with_flag
from .from_data import makes_meta, parse_sizes, refuse_pinned, refuse_sparse, wrap_new

__all__ = ["Generator", "_sample_dirichlet", "_standard_gamma", "bernoulli", "binomial", "default_generator",
           "fork_rng", "get_rng_state", "initial_seed", "manual_seed", "multinomial", "normal", "poisson", "rand",
           "rand_like", "randint", "randint_like", "randn", "randn_like", "randperm", "seed", "set_rng_state"]

#: guards the generator's state, as PyTorch's mutex does
_lock = threading.RLock()
#: [a CUDA device -> a new Philox engine], [-> the default generators of all devices]: set by `accelerated.generators`
engine_of_device: list[Any] = [None]
device_generators: list[Any] = [tuple]
#: [a generator or None, a CUDA device -> the generator of a call, checked]: set by `accelerated.generators`
generator_for_device: list[Any] = [None]


#: PyTorch's text, whatever it says of libraries: programs look for it
_NO_CUDA = (
    "Cannot get CUDA generator without ATen_cuda library. PyTorch splits its backend into two shared libraries: a"
    " CPU library and a CUDA library; this error has occurred because you are trying to use some CUDA "
    "functionality, but the CUDA library has not been loaded by the dynamic linker for some reason.  The CUDA "
    "library MUST be loaded, EVEN IF you don't directly use any symbols from the CUDA library! One common culprit"
    " is a lack of -Wl,--no-as-needed in your link arguments; many dynamic linkers will delete dynamic library "
    "dependencies if you don't depend on any of their symbols.  You can check if this has occurred by using ldd "
    "on your binary to see if there is a dependency on *_cuda.so library.")


class Generator:
    """A random number generator with its own state: mt19937, as PyTorch's on the CPU, or Philox on a CUDA device.

    Args:
        device: the CPU, or a CUDA device.

    >>> import flambeau as torch
    >>> g = torch.Generator().manual_seed(0)
    >>> torch.rand(2, generator=g)
    tensor([0.4963, 0.7682])
    """

    def __init__(self, device: Any = "cpu") -> None:
        d = devices.device(device)
        self._engine: Any = None
        self._philox = d.type == "cuda"
        if device.__class__ is int and devices.cuda_resolver[0](d) is None:
            raise RuntimeError("Cannot access accelerator device when none is available.")
        if self._philox:
            found = devices.cuda_resolver[0](d)
            if found is None:
                raise RuntimeError(_NO_CUDA)
            self.device, self._engine = found, engine_of_device[0](found)
        else:
            self.device = devices.check(d)

    @property
    def engine(self) -> Any:
        """The Mersenne Twister, made on first use."""
        if self._engine is None:
            self._engine = kernels.Engine()
        return self._engine

    def manual_seed(self, seed: int) -> Generator:
        """Set the seed and return the generator."""
        if not isinstance(seed, (int, np.integer)) or seed.__class__ is bool:
            raise RuntimeError(f"manual_seed expected a long, but got {type_name(seed)}")
        with _lock:
            self.engine.seed(_seed(seed))
        return self

    def seed(self) -> int:
        """Set a nondeterministic seed and return it."""
        with _lock:
            if self._philox:
                import secrets

                self.engine.seed(secrets.randbits(53))
                return self.engine.initial_seed
            return self.engine.seed_from_system()

    def initial_seed(self) -> int:
        """The last seed that was set."""
        return self.engine.initial_seed

    def get_state(self) -> Tensor:
        """The state, as a uint8 tensor of PyTorch's 5056 bytes; of a CUDA device's, 16: the seed and the offset."""
        with _lock:
            if self._philox:
                return wrap(np.array([self.engine.initial_seed, self.engine.offset], np.uint64).view(np.uint8))
            return wrap(self.engine.get_state())

    def set_state(self, new_state: Tensor) -> Generator:
        """Restore a state of `get_state`, flambeau's or PyTorch's, and return the generator.

        Raises:
            TypeError: not a uint8 tensor.
            RuntimeError: the size is wrong.
        """
        if not isinstance(new_state, Tensor):
            raise TypeError(f"expected a torch.ByteTensor, but got {type_name(new_state)}")
        if new_state._array.dtype != np.uint8:
            raise TypeError("RNG state must be a torch.ByteTensor")
        with _lock:
            if self._philox:
                if new_state._array.size not in (8, 16):
                    raise RuntimeError("RNG state is wrong size")
                words = [int(word) for word in np.ascontiguousarray(resolve(new_state._array)).view(np.uint64)]
                self.engine.seed(words[0])
                self.engine.offset = words[1] if len(words) > 1 else 0
                return self
            self.engine.set_state(new_state._array)
        return self

    def graphsafe_get_state(self) -> Generator:
        """Only generators of devices that record graphs have such states.

        Raises:
            NotImplementedError: this is none.
        """
        if not self._philox:
            raise NotImplementedError("graphsafe_get_state is not supported in this Generator")
        return self.clone_state()

    def clone_state(self) -> Generator:
        """A new generator with the same state."""
        other = Generator(self.device)
        if self._philox:
            return other.set_state(self.get_state())
        other._engine = self.engine.copy()
        return other

    def set_offset(self, offset: int) -> None:
        """Set the offset of a CUDA device's generator, a multiple of 4.

        Raises:
            RuntimeError: not a multiple of 4, or a generator of the CPU.
        """
        if not self._philox:
            raise RuntimeError("CPU Generator does not use offset")
        if offset % 4:
            raise RuntimeError("offset must be a multiple of 4")
        self.engine.offset = int(offset)

    def get_offset(self) -> int:
        """The offset of a CUDA device's generator.

        Raises:
            RuntimeError: a generator of the CPU.
        """
        if not self._philox:
            raise RuntimeError("CPU Generator does not use offset")
        return int(self.engine.offset)

    def __reduce__(self) -> Any:
        return Generator, (self.device,), (self.initial_seed(), None, self.get_state())

    def __setstate__(self, state: tuple[int, None, Tensor]) -> None:
        seed, _, stream = state
        self.manual_seed(seed)
        self.set_state(stream)


def _seed(seed: Any) -> int:
    seed = int(seed)
    if not -(2**63) <= seed < 2**64:
        raise ValueError("Overflow when unpacking long long")
    return seed


default_generator = Generator()


def manual_seed(seed: int) -> Generator:
    """Set the seed of the default generator; the samples that follow equal PyTorch's.

    >>> import flambeau as torch
    >>> _ = torch.manual_seed(0)
    >>> torch.rand(2)
    tensor([0.4963, 0.7682])
    """
    seed = int(seed)
    for each in device_generators[0]():
        each.manual_seed(seed)
    seeded[0] = True
    return default_generator.manual_seed(seed)


#: [whether `manual_seed` was called: it seeds devices, too, also those that are first used later]
seeded = [False]


def seed() -> int:
    """Set a nondeterministic seed of the default generator and return it.

    >>> import flambeau as torch
    >>> torch.seed() == torch.initial_seed()
    True
    """
    chosen = default_generator.seed()
    for each in device_generators[0]():
        each.manual_seed(chosen)
    seeded[0] = True
    return chosen


def initial_seed() -> int:
    """The last seed of the default generator.

    >>> import flambeau as torch
    >>> _ = torch.manual_seed(7)
    >>> torch.initial_seed()
    7
    """
    return default_generator.initial_seed()


def get_rng_state() -> Tensor:
    """The state of the default generator, a uint8 tensor.

    >>> import flambeau as torch
    >>> torch.get_rng_state().shape
    flambeau.Size([5056])
    """
    return default_generator.get_state()


def set_rng_state(new_state: Tensor) -> None:
    """Restore a state of the default generator.

    Args:
        new_state: uint8, from `get_rng_state`.

    >>> import flambeau as torch
    >>> state = torch.get_rng_state()
    >>> x = torch.rand(2)
    >>> torch.set_rng_state(state)
    >>> torch.equal(torch.rand(2), x)
    True
    """
    default_generator.set_state(new_state)


@contextlib.contextmanager
def fork_rng(devices: Any = None, enabled: bool = True, _caller: str = "fork_rng", _devices_kw: str = "devices",
             device_type: str = "cuda") -> Iterator[None]:
    """A context manager that restores the states of the default generators at exit.

    Args:
        devices: the CUDA devices whose generators are restored, too; default: all of them.
        enabled: whether to restore.

    >>> import flambeau as torch
    >>> _ = torch.manual_seed(0)
    >>> with torch.random.fork_rng():
    ...     x = torch.rand(2)
    >>> torch.equal(torch.rand(2), x)
    True
    """
    if not enabled:
        yield
        return
    state, states = get_rng_state(), device_states(devices)
    try:
        yield
    finally:
        set_rng_state(state)
        restore_device_states(states)


def device_states(wanted: Any = None) -> dict[int, Any]:
    """The states of the default generators of CUDA devices, by index.

    Args:
        wanted: the devices; None: all of them. A device that is used for the first time later has the state that its
            seed gives it.
    """
    generators = device_generators[0]()
    if wanted is None:
        wanted = range(len(generators)) if generators else [_FIRST_SEED]
    if not generators:
        return {_FIRST_SEED: (seeded[0], default_generator.initial_seed())} if len(wanted) else {}
    indices = [each if isinstance(each, int) else devices.check(each).index or 0 for each in wanted]
    return {index: generators[index].get_state() for index in indices}


def restore_device_states(states: dict[int, Any]) -> None:
    """Restore what `device_states` has returned."""
    for index, state in states.items():
        generators = device_generators[0]()
        if index != _FIRST_SEED:
            generators[index].set_state(state)
            continue
        was_seeded, seed = state
        for each in generators:  # which were made meanwhile
            each.manual_seed(seed if was_seeded else Generator(each.device).initial_seed())


#: in place of an index: the seed of devices that are not in use yet
_FIRST_SEED = -1


def _engine(generator: Generator | None) -> Any:
    return (default_generator if generator is None else generator).engine


def _generator_on(device: Any, generator: Generator | None) -> Generator | None:
    """The generator of a factory with this argument `device=`: by default that of the CUDA device.

    Once such devices are in use, `accelerated.factories` chooses it; this serves the call that finds them.
    """
    target = devices.storage_device(device)
    return generator_for_device[0](generator, target) if target.type == "cuda" else generator


_SMALL = 1024


def _sample(kernel: Any, generator: Generator | None, *args: Any) -> Any:
    """Call a sampling kernel, with memory from the caching allocator for large results."""
    engine = _engine(generator)
    if generator is not None and generator._philox:
        return handlers.sample_on_device(kernel.__name__, generator, args)
    if args[0].__class__ is int and args[0] < _SMALL:  # a number of samples
        return kernel(engine, *args)
    return run_in_quiet(kernel, (engine, *args)) if LARGE_SEEN[0] and not special[0] else kernel(engine, *args)


def _wrap_sample(array: np.ndarray, out: Tensor | None, device: Any, requires_grad: bool, called: str = "") -> Tensor:
    """The sample as a tensor, or `out` with the sample written to it by PyTorch's operator `called`."""
    if array.dtype == dtypes.COMPLEX32:
        warn_of_complex_half()
    if device is not None or devices.ambient[0] is not None:
        target = devices.storage_device(device)
        if target is devices.META or (out is None and target is not devices.CPU):
            return wrap_new(array, target, requires_grad)
    if out is not None:
        if called:
            check_records_nothing(called, (), (out,))
        elif out._requires_grad and out._array.shape != array.shape:
            raise RuntimeError("cannot resize variables that require grad")
        check_overlap(out._array)
        if out._array.dtype != array.dtype:
            raise RuntimeError(f"dtype {dtypes.of(array.dtype).scalar_name} does not match dtype of out parameter "
                               f"({out.dtype.scalar_name})")
        prepare_write(out)
        if is_meta(out):
            if out._array.shape != array.shape:
                out._array = meta_array(array.shape, array.dtype)
        elif out._array.shape == array.shape:
            out._array[...] = array
        else:
            out._array = array if active_tracers[0] else in_memory_of(out._array, array)
        out._bump_version()
        if not called:  # PyTorch resizes it, then draws
            out._bump_version()
        elif out._requires_grad:
            record_underived(called, None, out)
        if special[0]:
            notify_overwritten(out, array, out._array is array)
        return with_flag(out, requires_grad) if called or requires_grad else out
    tensor: Tensor = wrap(array)
    if requires_grad:
        if array.dtype.kind not in "fcV":
            raise RuntimeError("Only Tensors of floating point and complex dtype can require gradients")
        tensor._requires_grad = True
    if inference.get():
        tensor._inference, tensor._counter = True, INFERENCE
    return tensor


def _prepare_out(called: str, out: Tensor, shape: tuple[int, ...], dtype: dtype_type | None) -> None:
    """Check an `out=` tensor and give it its shape, before numbers are drawn or dtypes refused, as PyTorch does.

    Raises:
        RuntimeError: it requires grad, or has not the dtype that is asked for.
    """
    if called:
        check_records_nothing(called, (), (out,))
    if dtype is not None and dtype is not out.dtype:
        raise RuntimeError(f"dtype {dtype.scalar_name} does not match dtype of out parameter ({out.dtype.scalar_name})")
    if not special[0] and out._array.shape != shape and not out._requires_grad:
        give_shape(out, shape)


def _any_meta(*values: Any) -> bool:
    return any(map(is_meta, values))


def _in_vmap() -> bool:
    """Whether a `vmap` level is active (`vmap_random`)."""
    from ..dispatch.batched_tensor import active_levels

    return bool(active_levels())


def _draw_in_vmap(make: Any, shape: tuple[int, ...], out: Any = None) -> Any:
    from ..dispatch.vmap_random import draw_batched

    return draw_batched(make, shape, out)


def _draw_in_vmap_from(make: Any, inputs: list[Any], out: Any = None) -> Any:
    from ..dispatch.vmap_random import draw_batched_from

    return draw_batched_from(make, inputs, out)


def _size(size: tuple[Any, ...], kwargs: dict[str, Any], name: str) -> tuple[int, ...]:
    if not size and "size" in kwargs:
        size = (kwargs.pop("size"),)
    if not size or kwargs:
        types = [*(type(x).__name__ for x in size), *(f"{k}={type(x).__name__}" for k, x in kwargs.items())]
        got = ", ".join(types)
        raise TypeError(f"{name}() received an invalid combination of arguments - got ({got}), but expected one of:\n"
                        " * (tuple of ints size, *, torch.Generator generator, Tensor out = None, ...)")
    return parse_sizes(size, name)


def _count(shape: tuple[int, ...]) -> int:
    n = 1
    for s in shape:
        n *= s
    return n


def rand(*size: Any, generator: Generator | None = None, out: Any = None, dtype: dtype_type | None = None,
         layout: Any = None, device: Any = None, requires_grad: bool = False, pin_memory: bool = False,
         names: Any = None, **kwargs: Any) -> Tensor:
    """Samples of the uniform distribution over [0, 1).

    Args:
        size: the shape, as ints or as one sequence.

    >>> import flambeau as torch
    >>> _ = torch.manual_seed(0)
    >>> torch.rand(2)
    tensor([0.4963, 0.7682])
    """
    if pin_memory and out is None:
        refuse_pinned(device, layout)
    shape = _size(size, kwargs, "rand")
    if layout is not None:
        refuse_sparse(layout, "uniform_")
    if dtype is not None:
        dtype = dtypes.of_argument(dtype, "rand")
    d = dtype or (out.dtype if out is not None else dtypes.get_default_dtype())
    if special[0] and _in_vmap():
        return _draw_in_vmap(lambda size: rand(size, generator=generator, dtype=d, requires_grad=requires_grad),
                             shape, out)
    if device is not None or devices.ambient[0] is not None:
        if makes_meta(device):
            return wrap_new(reserved(shape, d.numpy), device, requires_grad)
        generator = _generator_on(device, generator)
    if out is not None:
        _prepare_out("rand", out, shape, dtype)
    with _lock:
        stream = _sample(kernels.uniform, generator, _count(shape), d.numpy, 0.0, 1.0)
    return _wrap_sample(stream.reshape(shape), out, device, requires_grad, "rand")


def randn(*size: Any, generator: Generator | None = None, out: Any = None, dtype: dtype_type | None = None,
          layout: Any = None, device: Any = None, requires_grad: bool = False, pin_memory: bool = False,
          names: Any = None, **kwargs: Any) -> Tensor:
    """Samples of the standard normal distribution.

    Args:
        size: the shape, as ints or as one sequence.

    >>> import flambeau as torch
    >>> _ = torch.manual_seed(6)
    >>> torch.randn(2)
    tensor([-1.8744, -0.9937])
    """
    if pin_memory and out is None:
        refuse_pinned(device, layout)
    shape = _size(size, kwargs, "randn")
    if layout is not None:
        refuse_sparse(layout, "normal_")
    if dtype is not None:
        dtype = dtypes.of_argument(dtype, "randn")
    d = dtype or (out.dtype if out is not None else dtypes.get_default_dtype())
    if special[0] and _in_vmap():
        return _draw_in_vmap(lambda size: randn(size, generator=generator, dtype=d, requires_grad=requires_grad),
                             shape, out)
    if device is not None or devices.ambient[0] is not None:
        if makes_meta(device):
            return wrap_new(reserved(shape, d.numpy), device, requires_grad)
        generator = _generator_on(device, generator)
    if out is not None and out._requires_grad:
        raise RuntimeError("cannot resize variables that require grad")
    if out is not None:
        _prepare_out("", out, shape, dtype)
    with _lock:
        stream = _sample(kernels.normal, generator, _count(shape), d.numpy, 0.0, 1.0)
    return _wrap_sample(stream.reshape(shape), out, device, requires_grad)


def _integer(value: Any) -> int:
    """A bound, which may be a tensor.

    Raises:
        TypeError: it is no integer; a guard says more.
    """
    if isinstance(value, float):
        raise TypeError("a bound must be int, not float")
    return int(value)


def randint(*args: Any, generator: Generator | None = None, out: Any = None, dtype: dtype_type | None = None,
            layout: Any = None, device: Any = None, requires_grad: bool = False, pin_memory: bool = False,
            **kwargs: Any) -> Tensor:
    """randint(low=0, high, size): integers of the uniform distribution over [low, high).

    >>> import flambeau as torch
    >>> _ = torch.manual_seed(0)
    >>> torch.randint(10, (3,))
    tensor([4, 9, 3])
    """
    if pin_memory and out is None:
        refuse_pinned(device, layout)
    arguments = list(args)
    size = kwargs.pop("size", None)
    if size is None:
        size = arguments.pop()
    high = kwargs.pop("high", None)
    low = kwargs.pop("low", None)
    if high is None:
        high = arguments.pop()
    if low is None:
        low = arguments.pop() if arguments else 0
    if kwargs or arguments:
        raise TypeError(f"randint() got unexpected arguments {[*arguments, *kwargs]}")
    if dtype is not None:
        dtype = dtypes.of_argument(dtype, "randint")
    d = dtype or (out.dtype if out is not None else dtypes.int64)
    shape = parse_sizes((size,) if isinstance(size, (tuple, list)) else size, "randint")
    if layout is not None:
        refuse_sparse(layout, "random_.from")
    if special[0] and _in_vmap():
        return _draw_in_vmap(lambda size: randint(low, high, size, generator=generator, dtype=d,
                                                  requires_grad=requires_grad), shape, out)
    if device is not None or devices.ambient[0] is not None:
        if makes_meta(device):
            return wrap_new(reserved(shape, d.numpy), device, requires_grad)
        generator = _generator_on(device, generator)
    if out is not None:
        _prepare_out("randint", out, shape, dtype)
    with _lock:
        stream = _sample(kernels.randint, generator, _count(shape), _integer(low), _integer(high), d.numpy)
    return _wrap_sample(stream.reshape(shape), out, device, requires_grad, "randint")


def randperm(n: int, *, generator: Generator | None = None, out: Any = None, dtype: dtype_type | None = None,
             layout: Any = None, device: Any = None, requires_grad: bool = False, pin_memory: bool = False) -> Tensor:
    """A random permutation of the integers from 0 to n - 1.

    >>> import flambeau as torch
    >>> _ = torch.manual_seed(0)
    >>> torch.randperm(4)
    tensor([0, 1, 3, 2])
    """
    if pin_memory and out is None:
        refuse_pinned(device, layout)
    if n < 0:
        raise RuntimeError(f"Trying to create tensor with negative dimension {n}: [{n}]")
    if layout is not None:
        refuse_sparse(layout, "randperm.generator_out")
    if dtype is not None:
        dtype = dtypes.of_argument(dtype, "randperm")
    d = dtype or (out.dtype if out is not None else dtypes.int64)
    if special[0] and _in_vmap():
        return _draw_in_vmap(lambda size: _permutations(size, generator, d), (int(n),), out)
    if device is not None or devices.ambient[0] is not None:
        if makes_meta(device):
            return wrap_new(reserved((n,), d.numpy), device, requires_grad)
        generator = _generator_on(device, generator)
    if out is not None:
        _prepare_out("randperm", out, (int(n),), dtype)
    with _lock:
        stream = _sample(kernels.randperm, generator, int(n), d.numpy)
    return _wrap_sample(stream, out, device, requires_grad, "randperm")


def _permutations(size: tuple[int, ...], generator: Generator | None, d: dtype_type) -> Tensor:
    """A permutation for each row, drawn in order."""
    *front, n = size
    with _lock:
        rows = [_sample(kernels.randperm, generator, n, d.numpy) for _ in range(_count(tuple(front)))]
    return wrap(np.array(rows, d.numpy).reshape(size))


def _own_part(x: Tensor) -> Tensor:
    """What a process draws for: its part of a distributed tensor, else the tensor."""
    part: Tensor = x._own_part() if special[0] and getattr(type(x), "_has_parts", False) else x
    return part


def _sample_like(input: Tensor, d: dtype_type, memory_format: Any, sampler: Any, operator: str = "normal_", *,
                 over: bool = False) -> np.ndarray:
    """Samples in an array of the input's shape and memory format, in PyTorch's order.

    Args:
        sampler: called with the number of elements, and whether PyTorch's output would be contiguous.
        operator: ATen's name of what fills the array; only `normal_` fills the values of a compressed sparse one.
        over: the samples are for the input itself, in place: use its strides.
    """
    if special[0]:
        input = _own_part(input)
    a = input._array if not device_memory.count else handlers.stand_in(input)
    if isinstance(a, SparseArray):
        if operator != "normal_" or isinstance(a, CooArray):
            raise not_implemented(operator, a.layout)
        with _lock:
            samples = sampler(a.values.size, True).reshape(a.values.shape)
        return a.copy().with_values(samples)
    is_row_major = memory_format is not None and memory_format.name == "contiguous_format"
    empty = np.empty_like(a, d.numpy, "C" if is_row_major else "K") if over or is_row_major else (
        empty_in_layout(a, d.numpy))
    contiguous = (a if over else empty).flags.c_contiguous
    with _lock:
        stream = sampler(a.size, contiguous)
    if stream.__class__ is not np.ndarray:  # of a device's generator
        return stream if over else stream.placed(empty)
    result = stream.reshape(a.shape) if contiguous else kernels.place(stream, empty)
    return result if is_row_major else with_preserved_strides(result, a)


def _check_rank(input: Tensor, memory_format: Any) -> None:
    """Raise PyTorch's error unless a tensor has as many dimensions as a memory format."""
    rank = {"channels_last": 4, "channels_last_3d": 5}.get(memory_format.name)
    if rank is not None and input._array.ndim != rank:
        raise RuntimeError(f"required rank {rank} tensor to use {memory_format.name} format")


def rand_like(input: Tensor, *, generator: Generator | None = None, dtype: dtype_type | None = None,
              layout: Any = None, device: Any = None, requires_grad: bool = False, pin_memory: bool = False,
              memory_format: Any = None) -> Tensor:
    """`rand` with the shape and dtype of `input`.

    >>> import flambeau as torch
    >>> torch.rand_like(torch.ones(2, 3)).shape
    flambeau.Size([2, 3])
    """
    if pin_memory:
        refuse_pinned(device, layout)
    if layout is not None:
        refuse_sparse(layout, "empty_strided")
    if memory_format is not None:
        _check_rank(input, memory_format)
    if dtype is not None:
        dtype = dtypes.of_argument(dtype, "rand_like")
    d = dtype or input.dtype
    if special[0] and _in_vmap():
        return rand(input._array.shape, generator=generator, dtype=d, requires_grad=requires_grad)
    if makes_meta(device) if device is not None or devices.ambient[0] is not None else is_meta(input):
        return empty_like(input, dtype=d, device=device, requires_grad=requires_grad, memory_format=memory_format)
    if device is not None or devices.ambient[0] is not None:
        generator = _generator_on(device, generator)
    array = _sample_like(input, d, memory_format,
                         lambda n, _: _sample(kernels.uniform, generator, n, d.numpy, 0.0, 1.0), "uniform_")
    return _wrap_sample(array, None, device, requires_grad)


def randn_like(input: Tensor, *, generator: Generator | None = None, dtype: dtype_type | None = None,
               layout: Any = None, device: Any = None, requires_grad: bool = False, pin_memory: bool = False,
               memory_format: Any = None) -> Tensor:
    """`randn` with the shape and dtype of `input`.

    >>> import flambeau as torch
    >>> torch.randn_like(torch.ones(2, 3)).shape
    flambeau.Size([2, 3])
    """
    if pin_memory:
        refuse_pinned(device, layout)
    if layout is not None:
        refuse_sparse(layout, "empty_strided")
    if memory_format is not None:
        _check_rank(input, memory_format)
    if dtype is not None:
        dtype = dtypes.of_argument(dtype, "randn_like")
    d = dtype or input.dtype
    if special[0] and _in_vmap():
        return randn(input._array.shape, generator=generator, dtype=d, requires_grad=requires_grad)
    if makes_meta(device) if device is not None or devices.ambient[0] is not None else is_meta(input):
        return empty_like(input, dtype=d, device=device, requires_grad=requires_grad, memory_format=memory_format)
    if device is not None or devices.ambient[0] is not None:
        generator = _generator_on(device, generator)
    array = _sample_like(input, d, memory_format,
                         lambda n, c: _sample(kernels.normal, generator, n, d.numpy, 0.0, 1.0, c))
    return _wrap_sample(array, None, device, requires_grad)


def randint_like(input: Tensor, low: int | None = None, high: int | None = None, *, generator: Generator | None = None,
                 dtype: dtype_type | None = None, layout: Any = None, device: Any = None,
                 requires_grad: bool = False, pin_memory: bool = False, memory_format: Any = None) -> Tensor:
    """`randint` with the shape and dtype of `input`.

    >>> import flambeau as torch
    >>> torch.randint_like(torch.ones(2), 1)
    tensor([0., 0.])
    """
    if pin_memory:
        refuse_pinned(device, layout)
    if low is None or high is None:
        low, high = 0, low if high is None else high
        if high is None:
            raise TypeError('randint_like() missing 1 required positional arguments: "high"')
    if layout is not None:
        refuse_sparse(layout, "empty_strided")
    if memory_format is not None:
        _check_rank(input, memory_format)
    if dtype is not None:
        dtype = dtypes.of_argument(dtype, "randint_like")
    d = dtype or input.dtype
    first, last = _integer(low), _integer(high)
    if special[0] and _in_vmap():
        return randint(first, last, input._array.shape, generator=generator, dtype=d, requires_grad=requires_grad)
    if makes_meta(device) if device is not None or devices.ambient[0] is not None else is_meta(input):
        return empty_like(input, dtype=d, device=device, requires_grad=requires_grad, memory_format=memory_format)
    if device is not None or devices.ambient[0] is not None:
        generator = _generator_on(device, generator)
    array = _sample_like(input, d, memory_format,
                         lambda n, _: _sample(kernels.randint, generator, n, first, last, d.numpy), "random_.from")
    return _wrap_sample(array, None, device, requires_grad)


def normal(mean: Any = 0.0, std: Any = 1.0, size: Any = None, *, generator: Generator | None = None, out: Any = None,
           dtype: dtype_type | None = None, layout: Any = None, device: Any = None, pin_memory: bool = False,
           requires_grad: bool = False) -> Tensor:
    """Samples of normal distributions with the given mean and standard deviation, scalars or tensors that broadcast.

    >>> import flambeau as torch
    >>> torch.normal(torch.zeros(3), 1.).shape
    flambeau.Size([3])
    """
    if pin_memory and out is None:
        refuse_pinned(device, layout)
    if size is not None:
        shape = parse_sizes((size,) if isinstance(size, (tuple, list)) else size, "normal")
        if layout is not None:
            refuse_sparse(layout, "normal_")
        d = dtype or (out.dtype if out is not None else dtypes.get_default_dtype())
        if special[0] and _in_vmap():
            return _draw_in_vmap(lambda size: normal(mean, std, size, generator=generator, dtype=d,
                                                     requires_grad=requires_grad), shape, out)
        if device is not None or devices.ambient[0] is not None:
            if makes_meta(device):
                return wrap_new(reserved(shape, d.numpy), device, requires_grad)
            generator = _generator_on(device, generator)
        if out is not None:
            _prepare_out("normal", out, shape, dtype)
        with _lock:
            stream = _sample(kernels.normal, generator, _count(shape), d.numpy, float(mean), float(std))
        return _wrap_sample(stream.reshape(shape), out, device, requires_grad, "normal")
    if special[0] and _in_vmap():
        return _draw_in_vmap_from(lambda *arguments: normal(*arguments, generator=generator), [mean, std], out)
    m = mean._array if isinstance(mean, Tensor) else float(mean)
    s = std._array if isinstance(std, Tensor) else float(std)
    if not isinstance(mean, Tensor) and not isinstance(std, Tensor):
        raise TypeError("normal() received an invalid combination of arguments: numbers for both mean and std need a "
                        "size, normal(mean, std, size)")
    if out is not None and out._array.dtype.kind not in "fcV":
        raise NotImplementedError(f"\"normal_kernel_cpu\" not implemented for '{out.dtype.scalar_name}'")
    if out is not None and not isinstance(mean, Tensor):
        broadcast_shapes(s.shape, out._array.shape)  # type: ignore[union-attr]
    if isinstance(m, np.ndarray) and isinstance(s, np.ndarray):
        broadcast_shapes(m.shape, s.shape)
    with _lock:
        array = _normals_on_meta(m, s) if _any_meta(mean, std) else _sample(kernels.normal_around, generator, m, s)
    if out is not None:
        if out._array.shape != array.shape:
            warn_of_resize(out._array.shape, array.shape)
        return _wrap_sample(array, out, device, False)
    if isinstance(mean, Tensor) and isinstance(std, Tensor):
        return apply(REGISTRY["_normal_NormalBackward3"], [mean, std], {"values": array})
    node = "NormalBackward1" if isinstance(mean, Tensor) else "NormalBackward2"
    parameter = mean if isinstance(mean, Tensor) else std
    return apply(REGISTRY[f"_normal_{node}"], [parameter], {"values": array})


def _normals_on_meta(*parameters: Any) -> np.ndarray:
    """What stands for samples of normal distributions, of which a mean or a deviation has no elements."""
    arrays = [x for x in parameters if isinstance(x, np.ndarray)]
    return meta_array(broadcast_shapes(arrays[0].shape, arrays[-1].shape), arrays[0].dtype)


def bernoulli(input: Tensor, p: Any = None, *, generator: Generator | None = None, out: Any = None) -> Tensor:
    """Samples of Bernoulli distributions, 0 or 1, with the probabilities `input` (or `p`).

    >>> import flambeau as torch
    >>> torch.bernoulli(torch.ones(2))
    tensor([1., 1.])
    """
    if special[0] and _in_vmap():
        return _draw_in_vmap_from(lambda *arguments: bernoulli(*arguments, generator=generator), [input, p], out)
    if p is not None and is_meta(input):
        return bernoulli_(empty_like(input), p, generator=generator)
    if p is not None:
        result: Tensor = wrap(np.empty(input._array.shape, input._array.dtype))
        if special[0]:
            notify_created(result._array, True)
        return bernoulli_(result, p, generator=generator)
    if input._array.dtype.kind not in "fV":
        raise NotImplementedError(f"\"bernoulli_tensor_cpu_p_\" not implemented for '{input.dtype.scalar_name}'")
    a = _own_part(input)._array
    with _lock:
        values = a.copy() if is_meta(input) else _sample(kernels.bernoulli_each, generator, a, a.dtype)
    values = values.reshape(a.shape)
    if out is not None:
        check_records_nothing("bernoulli", (input,), (out,))
        return _wrap_sample(dtypes.cast(values, out._array.dtype), out, None, False)
    return apply(REGISTRY["_bernoulli_BernoulliBackward0"], [input], {"values": values})


def poisson(input: Tensor, generator: Generator | None = None) -> Tensor:
    """Samples of Poisson distributions with the rates `input`.

    >>> import flambeau as torch
    >>> torch.poisson(torch.zeros(2))
    tensor([0., 0.])
    """
    if special[0] and _in_vmap():
        return _draw_in_vmap_from(lambda rates: poisson(rates, generator), [input])
    with _lock:
        values = input._array.copy() if is_meta(input) else _sample(
            kernels.poisson, generator, _own_part(input)._array)
    return apply(REGISTRY["_poisson_PoissonBackward0"], [input], {"values": values})


def binomial(count: Tensor, prob: Tensor, generator: Generator | None = None) -> Tensor:
    """Samples of binomial distributions: the successes among `count` trials of probability `prob`.

    >>> import flambeau as torch
    >>> torch.binomial(torch.tensor([3.]), torch.ones(1))
    tensor([3.])
    """
    if special[0] and _in_vmap():
        return _draw_in_vmap_from(lambda count, prob: binomial(count, prob, generator), [count, prob])
    if _any_meta(count, prob):
        raise no_meta_kernel("binomial")
    with _lock:
        values = _sample(kernels.binomial, generator, count._array, prob._array)
    return apply(REGISTRY["_not_differentiable"], [count, prob], {"value": values, "of": "binomial"})


def _generator_and_array(generator: Generator | None, input: Tensor) -> tuple[Generator | None, np.ndarray]:
    """The generator that draws for a tensor, None for the CPU's default one, and its elements."""
    if device_memory.count:
        generator = handlers.generator_of(generator, input)
    return generator, _own_part(input)._array


def _standard_gamma(input: Tensor, generator: Generator | None = None) -> Tensor:
    """Samples of gamma distributions of the concentrations `input` and rate 1, differentiable by `input`.

    >>> import flambeau as torch
    >>> torch._standard_gamma(torch.zeros(2)) > 0
    tensor([True, True])
    """
    if special[0] and _in_vmap():
        return _draw_in_vmap_from(lambda alpha: _standard_gamma(alpha, generator), [input])
    with _lock:
        values = input._array.copy() if is_meta(input) else _sample(
            kernels.standard_gamma, *_generator_and_array(generator, input))
    return apply(REGISTRY["_standard_gamma"], [input], {"values": values})


def _sample_dirichlet(input: Tensor, generator: Generator | None = None) -> Tensor:
    """Samples of Dirichlet distributions of the concentrations `input`, (..., k).

    >>> import flambeau as torch
    >>> torch._sample_dirichlet(torch.ones(1))
    tensor([1.0000])
    """
    if special[0] and _in_vmap():
        return _draw_in_vmap_from(lambda alpha: _sample_dirichlet(alpha, generator), [input])
    if is_meta(input):
        raise no_meta_kernel("_sample_dirichlet")
    with _lock:
        values = _sample(kernels.dirichlet, *_generator_and_array(generator, input))
    return apply(REGISTRY["_not_differentiable"], [input], {"value": values, "of": "_sample_dirichlet"})


def multinomial(input: Tensor, num_samples: int, replacement: bool = False, *, generator: Generator | None = None,
                out: Any = None) -> Tensor:
    """Indices sampled with the weights of each row of `input`, (n) or (m, n).

    >>> import flambeau as torch
    >>> torch.multinomial(torch.tensor([0., 1.]), 1)
    tensor([1])
    """
    if not input.dtype.is_floating_point:
        raise RuntimeError("multinomial only supports floating-point dtypes for input, got: "
                           f"{input.dtype.scalar_name}")
    if not 1 <= input._array.ndim <= 2 and not (special[0] and _in_vmap()):
        raise RuntimeError("prob_dist must be 1 or 2 dim")
    if out is not None and out.dtype is not dtypes.int64:
        raise RuntimeError(f"multinomial expects Long tensor out, got: {out.dtype.scalar_name}")
    if special[0] and _in_vmap():
        def rows(weights: Tensor) -> Tensor:
            *front, n = weights._array.shape
            matrix = weights.reshape(_count(tuple(front)), n)
            indices = multinomial(matrix, num_samples, replacement, generator=generator)
            return indices.reshape(*front, num_samples)

        return _draw_in_vmap_from(rows, [input], out)
    if special[0] and getattr(type(input), "_has_parts", False):
        drawn: Tensor = input._by_rows(
            lambda rows: multinomial(rows, num_samples, replacement, generator=generator), num_samples)
        return drawn
    with _lock:
        result = meta_array((*input._array.shape[:-1], num_samples), dtypes.int64.numpy) if is_meta(input) else _sample(
            kernels.multinomial, generator, input._array, num_samples, replacement)
    return _wrap_sample(result, out, None, False)


# ----- in place -----

def _fill(self: Tensor, key: str, sampler: Any, others: tuple[Tensor, ...] = ()) -> Tensor:
    if special[0] and _in_vmap():
        from ..dispatch.vmap_random import fill_batched

        return fill_batched(self, key, sampler)
    check_writable(self, is_tracked([self, *others]))
    if is_meta(self):  # no number is drawn
        return apply_inplace(REGISTRY[key], [self, *others], {"values": self._array})
    values = _sample_like(self, self.dtype, None, sampler, over=True)
    return apply_inplace(REGISTRY[key], [self, *others], {"values": values})


def uniform_(self: Tensor, from_: float = 0, to: float = 1, *, generator: Generator | None = None,
             **kwargs: Any) -> Tensor:
    """Fill with samples of the uniform distribution over [from, to).

    >>> import flambeau as torch
    >>> _ = torch.manual_seed(0)
    >>> torch.empty(3).uniform_(-1, 1)
    tensor([-0.0075,  0.5364, -0.8230])
    """
    low, high = float(kwargs.pop("from", from_)), float(to)
    d = self._array.dtype
    return _fill(self, "_uniform_UniformBackward0",
                 lambda n, _: _sample(kernels.uniform, generator, n, d, low, high))


def normal_(self: Tensor, mean: float = 0, std: float = 1, *, generator: Generator | None = None) -> Tensor:
    """Fill with samples of a normal distribution.

    >>> import flambeau as torch
    >>> _ = torch.manual_seed(0)
    >>> torch.empty(3).normal_(mean=10, std=2)
    tensor([13.0820,  9.4131,  5.6424])
    """
    d = self._array.dtype
    return _fill(self, "_normal_NormalBackward0",
                 lambda n, c: _sample(kernels.normal, generator, n, d, float(mean), float(std), c))


_NOT_GIVEN: Any = object()


def random_(self: Tensor, from_: Any = None, to: Any = _NOT_GIVEN, *, generator: Generator | None = None,
            **kwargs: Any) -> Tensor:
    """Fill with uniform integers over the range of the dtype, over [0, to), or over [from, to).

    >>> import flambeau as torch
    >>> _ = torch.manual_seed(0)
    >>> torch.empty(5).random_(10)
    tensor([4., 9., 3., 0., 3.])
    """
    low, high = kwargs.pop("from", from_), None if to is _NOT_GIVEN else to
    if to is _NOT_GIVEN and from_ is not None:
        low, high, node = None, from_, "RandomBackward1"
    else:
        node = "RandomBackward2" if low is None and high is None else "RandomBackward0"
    d = self._array.dtype
    if isinstance(low, float) or isinstance(high, float):
        raise TypeError("random_(): a bound must be int, not float")  # a guard says more
    if low is None and high is not None:
        low = 0
    return _fill(self, f"_random_{node}", lambda n, _: _sample(kernels.random, generator, n, d, low, high))


def bernoulli_(self: Tensor, p: Any = 0.5, *, generator: Generator | None = None) -> Tensor:
    """Fill with samples of a Bernoulli distribution: 1 with probability `p`, else 0.

    >>> import flambeau as torch
    >>> _ = torch.manual_seed(0)
    >>> torch.empty(5).bernoulli_(0.3)
    tensor([0., 0., 0., 0., 0.])
    """
    d = self._array.dtype
    if isinstance(p, Tensor):
        if special[0] and _in_vmap():
            from ..dispatch.vmap_random import fill_batched_from

            return fill_batched_from(self, p, lambda probabilities: bernoulli(probabilities, generator=generator))
        probabilities = np.broadcast_to(_own_part(p)._array, _own_part(self)._array.shape)
        return _fill(self, "_bernoulli_BernoulliBackward1",
                     lambda n, _: _sample(kernels.bernoulli_each, generator, probabilities, d).reshape(-1), (p,))
    return _fill(self, "_bernoulli_BernoulliBackward2",
                 lambda n, _: _sample(kernels.bernoulli, generator, n, float(p), d))


def bernoulli_array(shape: tuple[int, ...], p: float, dtype: np.dtype) -> np.ndarray:
    """What `bernoulli_` writes into a contiguous tensor, by the default generator."""
    with _lock:
        samples = _sample(kernels.bernoulli, None, _count(shape), p, dtype)
    return samples.reshape(shape)


def exponential_(self: Tensor, lambd: float = 1, *, generator: Generator | None = None) -> Tensor:
    """Fill with samples of an exponential distribution of rate `lambd`.

    >>> import flambeau as torch
    >>> _ = torch.manual_seed(0)
    >>> torch.empty(3).exponential_(lambd=2)
    tensor([1.7542, 0.6152, 0.3075])
    """
    d = self._array.dtype
    return _fill(self, "_exponential_ExponentialBackward0",
                 lambda n, _: _sample(kernels.exponential, generator, n, d, float(lambd)))


def geometric_(self: Tensor, p: float, *, generator: Generator | None = None) -> Tensor:
    """Fill with samples of a geometric distribution: trials of probability `p` up to the first success.

    >>> import flambeau as torch
    >>> _ = torch.manual_seed(0)
    >>> torch.empty(5).geometric_(0.25)
    tensor([1., 2., 3., 1., 2.])
    """
    d = self._array.dtype
    return _fill(self, "_geometric_GeometricBackward0",
                 lambda n, _: _sample(kernels.geometric, generator, n, float(p), d))


def cauchy_(self: Tensor, median: float = 0, sigma: float = 1, *, generator: Generator | None = None) -> Tensor:
    """Fill with samples of a Cauchy distribution.

    >>> import flambeau as torch
    >>> _ = torch.manual_seed(0)
    >>> torch.empty(3).cauchy_()
    tensor([10.5977,  0.7648, -0.1283])
    """
    d = self._array.dtype
    return _fill(self, "_cauchy_CauchyBackward0",
                 lambda n, _: _sample(kernels.cauchy, generator, n, d, float(median), float(sigma)))


def log_normal_(self: Tensor, mean: float = 1, std: float = 2, *, generator: Generator | None = None) -> Tensor:
    """Fill with samples of a log-normal distribution.

    >>> import flambeau as torch
    >>> _ = torch.manual_seed(0)
    >>> torch.empty(3).log_normal_()
    tensor([5.9263e+01, 1.5116e+00, 3.4819e-02])
    """
    d = self._array.dtype
    return _fill(self, "_log_normal_LogNormalBackward0",
                 lambda n, _: _sample(kernels.log_normal, generator, n, d, float(mean), float(std)))


METHODS: dict[str, Any] = {
    "uniform_": uniform_, "normal_": normal_, "random_": random_, "bernoulli_": bernoulli_, "bernoulli": bernoulli,
    "exponential_": exponential_, "geometric_": geometric_, "cauchy_": cauchy_, "log_normal_": log_normal_,
    "multinomial": multinomial,
}
