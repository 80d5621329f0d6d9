"""Random number generators: `Generator`, the default one, its seed and its state.

The engines are those of `kernels.random`, whose numbers equal PyTorch's bit for bit; CUDA devices have Philox engines.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator
from typing import Any

import numpy as np

from ... import devices
from ...backends.bit_views import resolve
from ...kernels import random as kernels
from ..argument_errors.type_names import type_name
from ..tensor import Tensor, wrap

__all__ = ["Generator", "default_generator", "fork_rng", "get_rng_state", "initial_seed", "manual_seed", "seed",
           "set_rng_state"]



class _Lock:
    """A reentrant lock.

    Attributes:
        quick: the lock itself, for draws that keep the interpreter's.
        held: [how often the thread that has it has taken it otherwise].
    """

    __slots__ = ("held", "quick")

    def __init__(self) -> None:
        self.quick, self.held = threading.RLock(), [0]

    def __enter__(self) -> None:
        self.quick.acquire()
        self.held[0] += 1

    def __exit__(self, *exception: object) -> None:
        self.held[0] -= 1
        self.quick.release()


#: guards the generator's state, as PyTorch's mutex does
lock = _Lock()
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

    __module__ = f"{__name__.partition('.')[0]}._C"  # the public name in `repr`

    def __init__(self, device: Any = "cpu") -> None:
        d = devices.CPU if device is None else devices.of_argument(device)
        self._engine: Any = None
        self._philox = d.type == "cuda"
        if self._philox:
            found = devices.cuda_resolver[0](d)
            if found is None:
                raise RuntimeError(_NO_CUDA)
            self.device, self._engine = found, engine_of_device[0](found)
        elif d.type == "meta":
            raise RuntimeError("META device type not an accelerator.")
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
        with lock:
            self.engine.seed(_seed(seed))
        return self

    def seed(self) -> int:
        """Set a nondeterministic seed and return it."""
        with lock:
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
        with lock:
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
        with lock:
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
