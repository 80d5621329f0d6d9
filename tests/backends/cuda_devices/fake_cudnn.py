"""cuDNN without a GPU: the functions of convolutions that flambeau calls, by NumPy, on the memory of `fake_cupy`.

Prototypes are those of cuDNN 9's `cudnn_graph.h`, `cudnn_ops.h` and `cudnn_cnn.h`. Descriptors are checked against each
other: the result's size, dtypes, and dense layouts of one order. Of two algorithms the one that is offered first needs
a workspace and is not deterministic; what it needs must lie in the device's memory.
"""

from __future__ import annotations

import ctypes
from types import SimpleNamespace
from typing import Any

import numpy as np

from flambeau.dtypes import BFLOAT16, cast, widen
from flambeau.kernels import convolution
from tests.backends.cuda_devices.c_functions import c_function, store

_TYPES = {0: np.dtype("f4"), 1: np.dtype("f8"), 2: np.dtype("f2"), 9: BFLOAT16}
_OPAQUE = ("cudnnHandle_t", "cudaStream_t", "cudnnTensorDescriptor_t", "cudnnFilterDescriptor_t",
           "cudnnConvolutionDescriptor_t")
_BAD_PARAMETER, _NOT_SUPPORTED = 2000, 3000
#: number of the algorithm -> bytes of its workspace, whether it is deterministic
_ALGORITHMS = {1: (4096, 0), 0: (0, 1)}


class _Performance(ctypes.Structure):
    _fields_ = (("algo", ctypes.c_int), ("status", ctypes.c_int), ("time", ctypes.c_float),
                ("memory", ctypes.c_size_t), ("determinism", ctypes.c_int), ("mathType", ctypes.c_int),
                ("reserved", ctypes.c_int * 3))


def fake_cudnn(state: Any) -> Any:
    """The library.

    Args:
        state: that of the module of `fake_cupy`; convolutions are noted in its `convolutions`, as the function's
            name, the layout of the weight, the dtype and the math type.
    """
    handles: dict[int, SimpleNamespace] = {}
    made: dict[int, SimpleNamespace] = {}
    state.convolutions, state.tried = [], []

    def ints(address, count):
        return tuple((ctypes.c_int * count).from_address(address)) if count else ()

    def creator(name, kind):
        @c_function(f"cudnnStatus_t cudnnCreate{name}({kind} *descriptor)")
        def create(descriptor):
            number = 0x2000 + 16 * len(made)
            made[number] = SimpleNamespace(kind=name, groups=1, math=0)
            store(descriptor, number)
            return 0

        return create

    @c_function("size_t cudnnGetVersion(void)")
    def get_version():
        return 92801

    @c_function("const char * cudnnGetErrorString(cudnnStatus_t status)")
    def get_error_string(status):
        return {_BAD_PARAMETER: b"CUDNN_STATUS_BAD_PARAM", _NOT_SUPPORTED: b"CUDNN_STATUS_NOT_SUPPORTED"}.get(
            status, b"CUDNN_STATUS_EXECUTION_FAILED")

    @c_function("cudnnStatus_t cudnnCreate(cudnnHandle_t *handle)", *_OPAQUE)
    def create_handle(handle):
        number = 0x1000 + 16 * len(handles)
        handles[number] = SimpleNamespace(device=state.device, stream=0)
        store(handle, number)
        return 0

    @c_function("cudnnStatus_t cudnnSetStream(cudnnHandle_t handle, cudaStream_t streamId)", *_OPAQUE)
    def set_stream(handle, stream):
        assert handles[handle].device == state.device
        handles[handle].stream = stream
        return 0

    @c_function("cudnnStatus_t cudnnSetTensorNdDescriptor(cudnnTensorDescriptor_t tensorDesc, cudnnDataType_t "
                "dataType, int nbDims, const int dimA[], const int strideA[])", *_OPAQUE)
    def set_tensor(descriptor, kind, count, dims, strides):
        its = made[descriptor]
        if its.kind != "TensorDescriptor" or not 4 <= count <= 8 or kind not in _TYPES:
            return _BAD_PARAMETER
        its.dtype, its.shape, its.strides = _TYPES[kind], ints(dims, count), ints(strides, count)
        return 0 if min(its.shape) > 0 and min(its.strides) > 0 else _BAD_PARAMETER

    @c_function("cudnnStatus_t cudnnSetFilterNdDescriptor(cudnnFilterDescriptor_t filterDesc, cudnnDataType_t "
                "dataType, cudnnTensorFormat_t format, int nbDims, const int filterDimA[])", *_OPAQUE)
    def set_filter(descriptor, kind, layout, count, dims):
        its = made[descriptor]
        if its.kind != "FilterDescriptor" or count < 4 or layout not in (0, 1) or kind not in _TYPES:
            return _BAD_PARAMETER
        its.dtype, its.shape, its.last = _TYPES[kind], ints(dims, count), bool(layout)
        its.strides = dense(its.shape, its.last)
        return 0

    @c_function("cudnnStatus_t cudnnSetConvolutionNdDescriptor(cudnnConvolutionDescriptor_t convDesc, int arrayLength, "
                "const int padA[], const int filterStrideA[], const int dilationA[], cudnnConvolutionMode_t mode, "
                "cudnnDataType_t computeType)", *_OPAQUE)
    def set_convolution(descriptor, count, padding, stride, dilation, mode, kind):
        its = made[descriptor]
        if its.kind != "ConvolutionDescriptor" or count < 2 or mode != 1 or kind not in (0, 1):
            return _BAD_PARAMETER
        its.padding, its.stride, its.dilation = (ints(each, count) for each in (padding, stride, dilation))
        its.compute = _TYPES[kind]
        return 0 if min(its.padding) >= 0 and min(its.stride) > 0 and min(its.dilation) > 0 else _BAD_PARAMETER

    @c_function("cudnnStatus_t cudnnSetConvolutionGroupCount(cudnnConvolutionDescriptor_t convDesc, int groupCount)",
                *_OPAQUE)
    def set_groups(descriptor, groups):
        made[descriptor].groups = groups
        return 0

    @c_function("cudnnStatus_t cudnnSetConvolutionMathType(cudnnConvolutionDescriptor_t convDesc, "
                "cudnnMathType_t mathType)", *_OPAQUE)
    def set_math(descriptor, math):
        made[descriptor].math = math
        return 0 if math in (0, 1, 2, 3) else _BAD_PARAMETER

    def problem(image, weight, result, geometry):
        """Why descriptors do not fit."""
        x, w, y, g = (made[each] for each in (image, weight, result, geometry))
        if not x.dtype == w.dtype == y.dtype or g.compute != (np.float64 if x.dtype == np.float64 else np.float32):
            return _NOT_SUPPORTED
        if x.dtype == np.float64 and w.last:
            return _NOT_SUPPORTED
        if any(each.strides != dense(each.shape, w.last) for each in (x, y)):
            return _NOT_SUPPORTED
        sizes = zip(x.shape[2:], w.shape[2:], g.stride, g.padding, g.dilation, y.shape[2:], strict=True)
        if any((n + 2 * p - d * (k - 1) - 1) // s + 1 != m for n, k, s, p, d, m in sizes):
            return _BAD_PARAMETER
        if x.shape[:2] != (y.shape[0], w.shape[1] * g.groups) or y.shape[1] != w.shape[0] or w.shape[0] % g.groups:
            return _BAD_PARAMETER
        return 0

    def fill(found, count, wanted, geometry):
        choices = list(_ALGORITHMS.items())[:wanted]
        entries = (_Performance * wanted).from_address(found)
        for entry, (number, (memory, determinism)) in zip(entries, choices, strict=False):
            entry.algo, entry.memory, entry.determinism = number, memory, determinism
            entry.mathType = made[geometry].math
        store(count, len(choices), ctypes.c_int)
        return 0

    def functions(name, first, second, last, roles):
        def status(*descriptors):
            a, b, geometry, c = descriptors
            by_role = dict(zip(roles, (a, b, c), strict=True))
            return problem(by_role["image"], by_role["weight"], by_role["result"], geometry)

        @c_function(f"cudnnStatus_t cudnnGetConvolution{name}Algorithm_v7(cudnnHandle_t handle, const {first} a, const "
                    f"{second} b, const cudnnConvolutionDescriptor_t convDesc, const {last} c, const int "
                    "requestedAlgoCount, int *returnedAlgoCount, cudnnConvolutionAlgoPerf_t *perfResults)", *_OPAQUE)
        def get(handle, a, b, geometry, c, wanted, count, found):
            return status(a, b, geometry, c) or fill(found, count, wanted, geometry)

        @c_function(f"cudnnStatus_t cudnnFindConvolution{name}AlgorithmEx(cudnnHandle_t handle, const {first} aDesc, "
                    f"const void *a, const {second} bDesc, const void *b, const cudnnConvolutionDescriptor_t convDesc, "
                    f"const {last} cDesc, void *c, const int requestedAlgoCount, int *returnedAlgoCount, "
                    "cudnnConvolutionAlgoPerf_t *perfResults, void *workSpace, size_t workSpaceSizeInBytes)", *_OPAQUE)
        def find(handle, a, a_at, b, b_at, geometry, c, c_at, wanted, count, found, workspace, size):
            assert handles[handle].stream not in state.capturing
            for each, at in ((a, a_at), (b, b_at), (c, c_at)):
                state.bytes_at(at, int(np.prod(made[each].shape)) * made[each].dtype.itemsize)
            state.bytes_at(workspace, size)
            state.tried.append(name)
            return status(a, b, geometry, c) or fill(found, count, wanted, geometry)

        @c_function(f"cudnnStatus_t cudnnConvolution{name}(cudnnHandle_t handle, const void *alpha, const {first} "
                    f"aDesc, const void *a, const {second} bDesc, const void *b, const cudnnConvolutionDescriptor_t "
                    "convDesc, cudnnConvolutionAlgo_t algo, void *workSpace, size_t workSpaceSizeInBytes, const void "
                    f"*beta, const {last} cDesc, void *c)", *_OPAQUE)
        def run(handle, alpha, a, a_at, b, b_at, geometry, algorithm, workspace, size, beta, c, c_at):
            its, g = handles[handle], made[geometry]
            assert its.device == state.device
            assert [g.compute.type(ctypes.c_double.from_address(each).value if g.compute == np.float64 else (
                ctypes.c_float.from_address(each).value)) for each in (alpha, beta)] == [1, 0]
            found = status(a, b, geometry, c)
            if found or size < _ALGORITHMS[algorithm][0]:
                return found or _BAD_PARAMETER
            dtype = made[a].dtype
            weight = made[{"Forward": b, "BackwardData": a, "BackwardFilter": c}[name]]
            state.convolutions.append((name, weight.last, str(dtype) if dtype != BFLOAT16 else "bfloat16", g.math))

            def work():
                if size:
                    state.bytes_at(workspace, size)[:] = 0x5A
                x, y, target = (np.ndarray(each.shape, dtype, state.bytes_at(at, int(np.prod(each.shape))
                                                                             * dtype.itemsize), 0,
                                           [s * dtype.itemsize for s in each.strides])
                                for each, at in ((made[a], a_at), (made[b], b_at), (made[c], c_at)))
                x, y = (widen(each) if dtype == BFLOAT16 else each.astype(g.compute) for each in (x, y))
                options = g.stride, g.padding, g.dilation, g.groups
                if name == "Forward":
                    result = convolution.conv_forward(x, y, *options)
                elif name == "BackwardData":
                    result = convolution.conv_input_grad(y, x, made[c].shape[2:], *options)
                else:
                    result = convolution.conv_weight_grad(y, x, made[c].shape[2:], *options)
                target[...] = cast(result, dtype)

            state.submit(its.stream, work)
            return 0

        return get, find, run

    tensor, weight = "cudnnTensorDescriptor_t", "cudnnFilterDescriptor_t"
    found = [get_version, get_error_string, create_handle, set_stream, set_tensor, set_filter, set_convolution,
             set_groups, set_math, *(creator(f"{each}Descriptor", f"cudnn{each}Descriptor_t")
                                     for each in ("Tensor", "Filter", "Convolution")),
             *functions("Forward", tensor, weight, tensor, ("image", "weight", "result")),
             *functions("BackwardData", weight, tensor, tensor, ("weight", "result", "image")),
             *functions("BackwardFilter", tensor, tensor, weight, ("image", "result", "weight"))]
    return SimpleNamespace(**{each.name: each for each in found})


def dense(shape: tuple[int, ...], last: bool) -> tuple[int, ...]:
    """The strides of a dense array in elements, row-major or with channels last."""
    order = (0, *range(2, len(shape)), 1) if last else tuple(range(len(shape)))
    stored = np.empty([shape[axis] for axis in order], np.uint8).strides
    return tuple(stored[order.index(axis)] for axis in range(len(shape)))
