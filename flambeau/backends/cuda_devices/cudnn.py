"""Convolutions by cuDNN 9, through ctypes: its functions of descriptors and algorithms.

cuDNN's graph interface would name engines; the functions of descriptors choose among the same kernels with a tenth of
the calls. Of an algorithm cuDNN tells in advance what memory it needs, so a program reserves that when it is built.
"""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Sequence
from ctypes import POINTER, addressof, byref, c_char_p, c_double, c_float, c_int, c_size_t, c_void_p
from math import prod
from typing import Any, NamedTuple

import numpy as np

from ...dtypes import BFLOAT16
from .convolutions import Convolution, ConvolutionOperands
from .launch_stub import STREAM, Word
from .libraries import address, functions
from .runtime import Place

#: dtypes of elements -> cudnnDataType_t
_TYPES: dict[np.dtype, int] = {np.dtype(np.float32): 0, np.dtype(np.float64): 1, np.dtype(np.float16): 2, BFLOAT16: 9}
#: cudnnMathType_t, cudnnConvolutionMode_t, cudnnTensorFormat_t, cudnnDeterminism_t
_DEFAULT_MATH, _TENSOR_OP_MATH, _FMA_MATH = 0, 1, 3
_CROSS_CORRELATION = 1
_NCHW, _NHWC = 0, 1
_DETERMINISTIC = 1
#: statuses that say that a convolution is not computed: bad parameters of descriptors, and what is not supported
_REFUSED = range(2000, 4000)
#: kind -> cuDNN's name, and its operands in the order of all functions; the last one is written
_KINDS: dict[str, tuple[str, tuple[str, str, str]]] = {
    "forward": ("Forward", ("image", "weight", "result")),
    "image": ("BackwardData", ("weight", "result", "image")),
    "weight": ("BackwardFilter", ("image", "result", "weight")),
}
#: the most algorithms of a kind, and elements of an array, which cuDNN counts in 32 bits
_ALGORITHMS, _ELEMENTS = 16, 1 << 31
#: a workspace may take this part of a device's memory
_PART = 8


class Performance(ctypes.Structure):
    """What cuDNN says of an algorithm (cudnnConvolutionFwdAlgoPerf_t and its siblings, which are alike)."""

    _fields_ = (("algorithm", c_int), ("status", c_int), ("time", c_float), ("memory", c_size_t),
                ("determinism", c_int), ("math", c_int), ("reserved", c_int * 3))


_PROTOTYPES: dict[str, Sequence[Any]] = {
    "cudnnCreate": [POINTER(c_void_p)],
    "cudnnSetStream": [c_void_p, c_void_p],
    "cudnnCreateTensorDescriptor": [POINTER(c_void_p)],
    "cudnnCreateFilterDescriptor": [POINTER(c_void_p)],
    "cudnnCreateConvolutionDescriptor": [POINTER(c_void_p)],
    "cudnnSetTensorNdDescriptor": [c_void_p, c_int, c_int, POINTER(c_int), POINTER(c_int)],
    "cudnnSetFilterNdDescriptor": [c_void_p, c_int, c_int, c_int, POINTER(c_int)],
    "cudnnSetConvolutionNdDescriptor": [c_void_p, c_int, POINTER(c_int), POINTER(c_int), POINTER(c_int), c_int, c_int],
    "cudnnSetConvolutionGroupCount": [c_void_p, c_int],
    "cudnnSetConvolutionMathType": [c_void_p, c_int],
}
for _name, _ in _KINDS.values():
    _PROTOTYPES |= {
        f"cudnnGetConvolution{_name}Algorithm_v7": [c_void_p] * 5 + [c_int, POINTER(c_int), POINTER(Performance)],
        f"cudnnFindConvolution{_name}AlgorithmEx": [c_void_p] * 8 + [c_int, POINTER(c_int), POINTER(Performance),
                                                                     c_void_p, c_size_t],
        f"cudnnConvolution{_name}": [c_void_p] * 7 + [c_int, c_void_p, c_size_t] + [c_void_p] * 3,
    }


class _Plan(NamedTuple):
    """A convolution's descriptors and algorithm.

    Attributes:
        operands: descriptors of the operands, in cuDNN's order.
        convolution: that of the geometry.
        algorithm: its number.
        workspace: the bytes of its memory.
        one, zero: pointers to the factors of the result and of what was in its memory.
    """

    operands: tuple[c_void_p, ...]
    convolution: c_void_p
    algorithm: int
    workspace: int
    one: Any
    zero: Any


class Cudnn:
    """cuDNN on the GPUs of a runtime.

    Args:
        runtime: the `CupyRuntime`.

    Attributes:
        version: 10000 for a major version, 100 for a minor one.

    Raises:
        OSError: cuDNN is not installed.
    """

    def __init__(self, runtime: Any) -> None:
        library = runtime.library("cudnn")
        self._runtime, self._functions = runtime, functions(library, _PROTOTYPES)
        self._text = functions(library, {"cudnnGetErrorString": [c_int]}, c_char_p).cudnnGetErrorString
        self.version = int(functions(library, {"cudnnGetVersion": []}, c_size_t).cudnnGetVersion())
        self._local = threading.local()  # handles: of a thread, by device
        self._recorded: dict[int, c_void_p] = {}  # handles of recorded calls, by device
        self._lock = threading.Lock()
        self._plans: dict[tuple[int, Convolution], _Plan | None] = {}

    def workspace(self, device: int, convolution: Convolution) -> int | None:
        """The bytes of memory that a convolution needs; None: cuDNN does not compute it.

        Args:
            device: the device's index.
            convolution: it.

        Raises:
            RuntimeError: cuDNN failed.
        """
        key = device, convolution
        if key not in self._plans:
            with self._lock:
                self._plans[key] = self._runtime.launch("convolution", device, (), (), lambda: self._made(
                    device, convolution))
        plan = self._plans[key]
        return None if plan is None else plan.workspace

    def convolve(self, device: int, convolution: Convolution, operands: ConvolutionOperands) -> None:
        """Start a convolution, of which `workspace` was asked, on a device's current stream; within `launch`.

        Args:
            device: the current device's index.
            convolution: it.
            operands: where its arrays are.

        Raises:
            RuntimeError: cuDNN failed.
        """
        plan = self._plans[device, convolution]
        assert plan is not None
        name, order = _KINDS[convolution.kind]
        places = [getattr(operands, each) for each in order]
        recording = self._runtime.current.recording
        if recording is not None:
            self._note(recording, device, f"cudnnConvolution{name}", plan, places, operands.workspace)
        first, second, last = plan.operands
        at = [self._runtime.address_of(each) for each in places]
        self._call(f"cudnnConvolution{name}", self._handle(device), plan.one, first, at[0], second, at[1],
                   plan.convolution, plan.algorithm,
                   self._runtime.address_of(operands.workspace) if plan.workspace else None, plan.workspace, plan.zero,
                   last, at[2])

    def _note(self, recording: Any, device: int, name: str, plan: _Plan, places: Sequence[Place], workspace: Place
              ) -> None:
        """Let a recording call a function as it is called now, with a handle that no other code has."""
        handle = self._recorded.get(device)
        if handle is None:
            handle = self._recorded[device] = c_void_p()
            self._call("cudnnCreate", byref(handle))
        first, second, last = (each.value for each in plan.operands)
        one, zero = (addressof(each._obj) for each in (plan.one, plan.zero))
        recording.call(address(self._functions, "cudnnSetStream"), [handle.value, Word(STREAM)])
        recording.call(address(self._functions, name), [
            handle.value, one, first, places[0], second, places[1], plan.convolution.value, plan.algorithm,
            workspace if plan.workspace else 0, plan.workspace, zero, last, places[2]])

    def _call(self, name: str, *args: Any) -> None:
        status = getattr(self._functions, name)(*args)
        if status:
            raise _CudnnError(status, self._text(status).decode())

    def _handle(self, device: int) -> c_void_p:
        """The handle of this thread on the current device, for its current stream."""
        handles: dict[Any, c_void_p] = self._local.__dict__
        found = handles.get(device)
        if found is None:
            found = c_void_p()
            self._call("cudnnCreate", byref(found))
            handles[device] = found
        stream = self._runtime.stream_address(device, self._runtime.current_stream(device))
        self._call("cudnnSetStream", found, stream or None)
        return found

    def _made(self, device: int, convolution: Convolution) -> _Plan | None:
        shapes = convolution.image, convolution.weight, convolution.result
        if convolution.dtype not in _TYPES or max(map(prod, shapes)) >= _ELEMENTS:
            return None
        try:
            return self._chosen(device, convolution)
        except _CudnnError as error:
            if error.status in _REFUSED:
                return None
            raise

    def _chosen(self, device: int, convolution: Convolution) -> _Plan | None:
        """The plan of a convolution, by the algorithm that is expected or found to be the fastest."""
        handle, limit = self._handle(device), self._runtime.properties(device).total_memory // _PART
        name, order = _KINDS[convolution.kind]
        kind, is_double = _TYPES[convolution.dtype], convolution.dtype == np.float64
        exact = convolution.dtype == np.float32 and not convolution.tf32
        descriptors = tuple(self._filter(convolution, kind) if each == "weight" else self._tensor(
            getattr(convolution, each), convolution.last, kind) for each in order)
        geometry = self._geometry(convolution, _TYPES[np.dtype(np.float64 if is_double else np.float32)])
        self._call("cudnnSetConvolutionMathType", geometry, _FMA_MATH if exact else _DEFAULT_MATH if kind < 2 else (
            _TENSOR_OP_MATH))
        found, count = (Performance * _ALGORITHMS)(), c_int()
        self._call(f"cudnnGetConvolution{name}Algorithm_v7", handle, *descriptors[:2], geometry, descriptors[2],
                   _ALGORITHMS, byref(count), found)
        choices = _usable(found[:count.value], limit, convolution.deterministic)
        if convolution.benchmark and choices and not self._runtime.is_capturing(
                device, self._runtime.current_stream(device)):
            memory = max(each.memory for each in choices)
            sizes = [prod(getattr(convolution, each)) * convolution.dtype.itemsize for each in order]
            blocks = [self._runtime.allocate(device, each) for each in (*sizes, memory)]
            first, second, last, workspace = (self._runtime.address_of((each, 0)) or None for each in blocks)
            self._call(f"cudnnFindConvolution{name}AlgorithmEx", handle, descriptors[0], first, descriptors[1], second,
                       geometry, descriptors[2], last, _ALGORITHMS, byref(count), found, workspace, memory)
            choices = _usable(found[:count.value], limit, convolution.deterministic) or choices
        if not choices:
            return None
        best = choices[0]
        self._call("cudnnSetConvolutionMathType", geometry, _FMA_MATH if exact else best.math)
        number = c_double if is_double else c_float
        return _Plan(descriptors, geometry, best.algorithm, best.memory, byref(number(1)), byref(number(0)))

    def _tensor(self, shape: tuple[int, ...], last: bool, kind: int) -> c_void_p:
        made, dims = c_void_p(), _four(shape, 1)
        self._call("cudnnCreateTensorDescriptor", byref(made))
        self._call("cudnnSetTensorNdDescriptor", made, kind, len(dims), _ints(dims), _ints(_strides(dims, last)))
        return made

    def _filter(self, convolution: Convolution, kind: int) -> c_void_p:
        made, dims = c_void_p(), _four(convolution.weight, 1)
        self._call("cudnnCreateFilterDescriptor", byref(made))
        self._call("cudnnSetFilterNdDescriptor", made, kind, _NHWC if convolution.last else _NCHW, len(dims),
                   _ints(dims))
        return made

    def _geometry(self, convolution: Convolution, kind: int) -> c_void_p:
        made, each = c_void_p(), convolution
        padding, stride, dilation = ((*neutral, *numbers) if len(numbers) == 1 else numbers for neutral, numbers in (
            ((0,), each.padding), ((1,), each.stride), ((1,), each.dilation)))
        self._call("cudnnCreateConvolutionDescriptor", byref(made))
        self._call("cudnnSetConvolutionNdDescriptor", made, len(padding), _ints(padding), _ints(stride),
                   _ints(dilation), _CROSS_CORRELATION, kind)
        self._call("cudnnSetConvolutionGroupCount", made, each.groups)
        return made


class _CudnnError(RuntimeError):
    """An error of cuDNN's, in PyTorch's words."""

    def __init__(self, status: int, text: str) -> None:
        self.status = status
        super().__init__(f"cuDNN error: {text}")


def _usable(found: Sequence[Performance], limit: int, deterministic: bool) -> list[Performance]:
    return [each for each in found if not each.status and each.memory <= limit and (
        not deterministic or each.determinism == _DETERMINISTIC)]


def _ints(numbers: Sequence[int]) -> Any:
    return (c_int * len(numbers))(*numbers)


def _four(shape: tuple[int, ...], size: int) -> tuple[int, ...]:
    """A shape with two or more spatial dimensions."""
    return (*shape[:2], size, *shape[2:]) if len(shape) == 3 else shape


def _strides(shape: tuple[int, ...], last: bool) -> tuple[int, ...]:
    """The strides of a dense array in elements, row-major or with channels last."""
    order = [1, *range(len(shape) - 1, 1, -1), 0] if last else range(len(shape) - 1, -1, -1)
    strides, step = [0] * len(shape), 1
    for axis in order:
        strides[axis] = step
        step *= shape[axis]
    return tuple(strides)


__all__ = ["Cudnn"]
