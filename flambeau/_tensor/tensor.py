"""The tensor: a NumPy array and its autograd metadata.

Attributes that every operator reads are slots, set by `wrap`; all others have class-level defaults:

    _array               the elements; its dtype is the tensor's dtype
    _requires_grad       whether gradients flow to it
    _node                the graph node that computed it; None for a leaf
    _output_nr           the number of the node's output that it is
    _grad                the accumulated gradient
    _counter             [version], shared by all tensors on the same memory; None: never viewed nor written to
    _base                the tensor that it is a view of (never itself a view)
    _view_version        the version for which `_node` is valid, for a view; -1: never valid
    _creation            for a view that may not be written to, the reason (PyTorch's `CreationMeta`)
    _view_steps          the chain of views from its base, where dtypes differ (`dtype_views`)
    _own_requires_grad   whether `requires_grad` was set on the view itself
    _accumulator         weak reference to its AccumulateGrad node
    _tangents            forward-mode tangents, by level
    _storage             the object of its memory (`UntypedStorage`), which lives as long; unset before it is asked for
    _transform_depth     the number of transforms inside which it was made
"""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

import numpy as np

from .. import dtypes
from ..backends.compiled.thresholds import LARGE_SEEN, MIN_ELEMENTS
from ..backends.elementless_array import ElementlessArray, MetaArray
from ..backends.sparse_array import check_same_storage, size_in_bytes
from ..devices import CPU, META, device
from ..engine.nodes.hooks import HookDict
from ..engine.nodes.node import Node
from ..engine.saved.version_counters import WRITES
from ..engine.tensor_interface import layer
from ..modes import active_tracer, active_transforms, device_memory, inference, special, transform_stack
from ..shapes import Size, as_size
from ..warning_location import user_stacklevel
from .overriding.dispatch import handles
from .overriding.entry_points import note_instance
from .overriding.protocol import DISABLED, set_plain
from .views.untracked import update_requires_grad

_NON_LEAF_GRAD = (
    "The .grad attribute of a Tensor that is not a leaf Tensor is being accessed. Its .grad attribute won't be "
    "populated during autograd.backward(). If you indeed want the .grad field to be populated for a non-leaf "
    "Tensor, use .retain_grad() on the non-leaf Tensor. If you access the non-leaf Tensor by mistake, make sure you "
    "access the leaf Tensor instead. See github.com/pytorch/pytorch/pull/30531 for more information."
)


class _InferenceVersion:
    """The version of inference tensors: raises when it is tested in order to be saved, and when it is incremented
    outside inference mode."""

    def __bool__(self) -> bool:
        raise RuntimeError("Inference tensors cannot be saved for backward. Please do not use Tensors created in "
                           "inference mode in computation tracked by autograd. To work around this, you can make a "
                           "clone to get a normal tensor and use it in autograd, or use `torch.no_grad()` instead of "
                           "`torch.inference_mode()`.")

    def __add__(self, more: int) -> _InferenceVersion:
        if not inference.get():
            raise RuntimeError("Inplace update to inference tensor outside InferenceMode is not allowed.You can make "
                               "a clone to get a normal tensor before doing inplace update.See "
                               "https://github.com/pytorch/rfcs/pull/17 for more details.")
        return self


#: the version counter of all inference tensors
INFERENCE: list[Any] = [_InferenceVersion()]


def _constant(value: bool, name: str, summary: str) -> property:
    """A property that is the same for all tensors."""
    return property(lambda self: value, doc=f"""{summary}

        >>> import flambeau as torch
        >>> torch.ones(2).{name}
        {value}
        """)


class TensorBase:
    """The base of `Tensor`; `torch._C.TensorBase`.

    Raises:
        RuntimeError: it is constructed, or another class derived from it (PyTorch's texts).

    >>> import flambeau as torch
    >>> isinstance(torch.ones(2), torch._C.TensorBase)
    True
    """

    __slots__ = ()

    def __new__(cls, *args: Any, **kwargs: Any) -> Any:
        raise RuntimeError("Cannot directly construct TensorBase; subclass it and then construct that")

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        if cls.__mro__[1] is TensorBase and cls.__module__ != __name__:
            raise RuntimeError("Cannot subclass _TensorBase directly")
        if handles(cls):
            default = getattr(Tensor, "__torch_function__", None)
            given: Any = getattr(cls, "__torch_function__", None)
            if getattr(given, "__func__", given) is getattr(default, "__func__", default):
                cls.__torch_function__ = DISABLED  # type: ignore[attr-defined]  # results keep their class, as in PyTorch


class Tensor(TensorBase):
    """An n-dimensional array whose operators can be recorded for differentiation.

    Tensors are made by `flambeau.tensor`, `flambeau.zeros` and the other factory functions.
    See https://docs.pytorch.org/docs/stable/tensors.html

    >>> import flambeau as torch
    >>> x = torch.tensor([1., 2.], requires_grad=True)
    >>> (x * x).sum().backward()
    >>> x.grad
    tensor([2., 4.])
    """

    # Read by every operator: a slot costs a tenth of a class-level default.
    __slots__ = ("__dict__", "__weakref__", "_accumulator", "_array", "_base", "_counter", "_grad", "_node",
                 "_output_nr", "_requires_grad", "_storage")
    _array: np.ndarray
    _requires_grad: bool
    _node: Node | None
    _output_nr: int
    _grad: Tensor | None
    _counter: list[int] | None
    _base: Tensor | None
    _accumulator: Any
    _storage: Any
    # Rarely set: class-level defaults.
    _view_version: int = 0
    _creation: str | None = None
    _view_steps: Any = None
    _own_requires_grad: bool = False
    _hooks: HookDict | None = None
    _post_accumulate_hooks: HookDict | None = None
    _tangents: dict[int, Tensor] | None = None
    _inference: bool = False
    _transform_depth: int = 0
    _grad_type: Any = ()  # the dtype of its gradient; (): that of the tensor; None: any
    _retains_grad: Any = None

    __array_priority__ = 1000  # so that `ndarray * tensor` calls `Tensor.__rmul__`

    if TYPE_CHECKING:
        # Installed by `methods`.
        def __getattr__(self, name: str) -> Any: ...
        def __new__(cls, *args: Any, **kwargs: Any) -> Any: ...
        def __repr__(self, *, tensor_contents: Any = None) -> str: ...
        @property
        def grad_fn(self) -> Node | None: ...
        def __getitem__(self, index: Any) -> Any: ...
        def __setitem__(self, index: Any, value: Any) -> None: ...
        def __len__(self) -> int: ...
        def __iter__(self) -> Any: ...
        def __bool__(self) -> bool: ...
        def __float__(self) -> float: ...
        def __int__(self) -> int: ...
        def __neg__(self) -> Any: ...
        def __invert__(self) -> Any: ...
        def __abs__(self) -> Any: ...
        def __eq__(self, other: object) -> Any: ...
        def __ne__(self, other: object) -> Any: ...
        def __hash__(self) -> int: ...
        def __lt__(self, other: Any) -> Any: ...
        def __le__(self, other: Any) -> Any: ...
        def __gt__(self, other: Any) -> Any: ...
        def __ge__(self, other: Any) -> Any: ...
        def __add__(self, other: Any) -> Any: ...
        def __radd__(self, other: Any) -> Any: ...
        def __sub__(self, other: Any) -> Any: ...
        def __rsub__(self, other: Any) -> Any: ...
        def __mul__(self, other: Any) -> Any: ...
        def __rmul__(self, other: Any) -> Any: ...
        def __truediv__(self, other: Any) -> Any: ...
        def __rtruediv__(self, other: Any) -> Any: ...
        def __floordiv__(self, other: Any) -> Any: ...
        def __rfloordiv__(self, other: Any) -> Any: ...
        def __mod__(self, other: Any) -> Any: ...
        def __rmod__(self, other: Any) -> Any: ...
        def __pow__(self, other: Any) -> Any: ...
        def __rpow__(self, other: Any) -> Any: ...
        def __matmul__(self, other: Any) -> Any: ...
        def __rmatmul__(self, other: Any) -> Any: ...
        def __and__(self, other: Any) -> Any: ...
        def __rand__(self, other: Any) -> Any: ...
        def __or__(self, other: Any) -> Any: ...
        def __ror__(self, other: Any) -> Any: ...
        def __xor__(self, other: Any) -> Any: ...
        def __rxor__(self, other: Any) -> Any: ...
        def __lshift__(self, other: Any) -> Any: ...
        def __rlshift__(self, other: Any) -> Any: ...
        def __rshift__(self, other: Any) -> Any: ...
        def __rrshift__(self, other: Any) -> Any: ...

    # ----- attributes -----

    @property
    def dtype(self) -> dtypes.dtype:
        """The dtype of the elements.

        >>> import flambeau as torch
        >>> torch.ones(2).dtype
        flambeau.float32
        """
        return dtypes.OF_NUMPY.get(self._array.dtype) or dtypes.of(self._array.dtype)

    @property
    def shape(self) -> Size:
        """The sizes of the dimensions, a tuple.

        >>> import flambeau as torch
        >>> torch.ones(2, 3).shape
        flambeau.Size([2, 3])
        """
        return as_size(self._array.shape)

    @property
    def _device(self) -> device:
        a = self._array
        if a.__class__ is np.ndarray:
            return CPU
        if a.__class__ is MetaArray:
            return META
        if device_memory.count:
            on: device | None = getattr(a, "torch_device", None)
            if on is not None:
                return on
        return CPU

    @property
    def device(self) -> device:
        """The device of the memory: the CPU, a CUDA device, or "meta" for a tensor without elements.

        >>> import flambeau as torch
        >>> torch.ones(2).device
        device(type='cpu')
        """
        return self._device

    @property
    def ndim(self) -> int:
        """The number of dimensions.

        >>> import flambeau as torch
        >>> torch.ones(2, 3).ndim
        2
        """
        return self._array.ndim

    @property
    def requires_grad(self) -> bool:
        """Whether gradients are computed for this tensor; it can be set on leaves.

        Raises:
            RuntimeError: set to False on a non-leaf, or to True for an integer dtype.

        >>> import flambeau as torch
        >>> x = torch.ones(2)
        >>> x.requires_grad = True
        >>> (x * 2).requires_grad
        True
        """
        return self._requires_grad

    @requires_grad.setter
    def requires_grad(self, value: bool) -> None:
        if value is not True and value is not False:
            raise RuntimeError("requires_grad must be a bool")
        if not value and self._has_node():
            raise RuntimeError("you can only change requires_grad flags of leaf variables. If you want to use a "
                               "computed variable in a subgraph that doesn't require differentiation use "
                               "var_no_grad = var.detach().")
        if value and self._array.dtype.kind not in "fcV":
            raise RuntimeError("only Tensors of floating point dtype can require gradients")
        if value and self._inference and not inference.get():
            raise RuntimeError("Setting requires_grad=True on inference tensor outside InferenceMode is not allowed.")
        base = self._base
        if base is None:
            self._requires_grad = bool(value)
            update_requires_grad(self)
        else:
            self._own_requires_grad = bool(value)
            self._requires_grad = self._own_requires_grad or base._requires_grad or self._node is not None

    @property
    def is_leaf(self) -> bool:
        """Whether no recorded operator computed it: `grad_fn` is None.

        >>> import flambeau as torch
        >>> x = torch.ones(1, requires_grad=True)
        >>> x.is_leaf, (x * 2).is_leaf
        (True, False)
        """
        return self.grad_fn is None

    def _has_node(self) -> bool:
        """Whether it has a history, which may be stale: like `not is_leaf`, without regenerating it."""
        return self._node is not None or self._view_version == -1

    @property
    def grad(self) -> Tensor | None:
        """The gradient accumulated by `backward`, of this tensor's shape and dtype; None if there is none.

        Raises:
            RuntimeError: set to a tensor of another shape or dtype.

        >>> import flambeau as torch
        >>> x = torch.ones(2, requires_grad=True)
        >>> (3 * x).sum().backward()
        >>> x.grad
        tensor([3., 3.])
        """
        if self._grad is None and not self._retains_grad and self._has_node():
            import warnings

            warnings.warn(_NON_LEAF_GRAD, UserWarning, stacklevel=user_stacklevel())
        if special[0]:
            tracer = active_tracer.get()
            if tracer is not None:
                tracer.on_grad_read(self)
        return self._grad

    @grad.setter
    def grad(self, value: Tensor | None) -> None:
        if value is None:
            if special[0]:
                tracer = active_tracer.get()
                if tracer is not None:
                    tracer.on_grad_clear(self)
            self._grad = None
            return
        if not isinstance(value, Tensor):
            raise TypeError(f"assigned grad expected to be a Tensor or None but got grad of type "
                            f"{type(value).__name__}")
        if value is self:
            raise RuntimeError("can't assign Variable as its own grad")
        grad_dtype = self.dtype if self._grad_type == () else self._grad_type
        if grad_dtype is not None and value.dtype is not grad_dtype:
            raise RuntimeError(
                f"attempting to assign a gradient with dtype '{dtypes.C_NAMES[value.dtype.name]}' to a tensor with "
                f"grad_dtype '{grad_dtype.scalar_name}'. The gradient must match the tensor's grad_dtype (defaults to "
                "the tensor's dtype). You can set the tensor's grad_dtype attribute with a specific dtype, or None to "
                "allow any dtype. Set grad_dtype with caution. Diverging the dtypes of a tensor and its gradient may "
                "break downstream systems that assume they match.")
        if value._device != self._device:
            what, theirs, own = "with device type", value._device.type, self._device.type
            if theirs == own:
                what, theirs, own = "located on device with index", str(value._device.index), str(self._device.index)
            raise RuntimeError(f"attempting to assign a gradient {what} '{theirs}' to a tensor {what} '{own}'. "
                               "Please ensure that the gradient and the tensor are on the same device")
        if value._array.shape != self._array.shape:
            raise RuntimeError(f"attempting to assign a gradient of size '{list(value._array.shape)}' to a tensor of "
                               f"size '{list(self._array.shape)}'. Please ensure that the gradient and the tensor are "
                               "the same size")
        if special[0]:
            tracer = active_tracer.get()
            if tracer is not None:
                tracer.note_entry_grad(self)
        self._grad = value

    @grad.deleter
    def grad(self) -> None:
        self.grad = None

    @property
    def data(self) -> Tensor:
        """A tensor on the same memory without a graph; writes to it are not recorded and do not bump the version.

        >>> import flambeau as torch
        >>> torch.ones(1, requires_grad=True).data
        tensor([1.])
        """
        out: Tensor = wrap(self._array)
        if self._inference:
            out._inference, out._counter = True, INFERENCE if inference.get() else [0]
        return out

    @data.setter
    def data(self, value: Tensor) -> None:
        if not isinstance(value, Tensor):
            raise TypeError(f"Variable data has to be a tensor, but got {type(value).__name__}")
        if self._requires_grad and value._array.dtype.kind not in "fcV":
            raise RuntimeError("data set to a tensor that requires gradients must be floating point or complex dtype")
        if value._array.dtype != self._array.dtype:
            self._accumulator = None
        check_same_storage(self._array, value._array)
        if special[0]:
            tracer = active_tracer.get()
            if tracer is not None:
                tracer.on_memory_change("data")
        self._array = value._array
        self._storage = None

    @property
    def _version(self) -> int:
        """The number of in-place writes to the memory."""
        if self._counter is INFERENCE:
            raise RuntimeError("Inference tensors do not track version counter.")
        if special[0]:
            tracer = active_tracer.get()
            if tracer is not None:
                tracer.graph_break("_version counts all writes, and increases with every call")
        return 0 if self._counter is None else self._counter[0] & WRITES

    def _bump_version(self) -> None:
        """Count a write to the memory."""
        counter = self._counter
        if counter is None:
            self._counter = [1]
        else:
            counter[0] += 1

    def _is_view(self) -> bool:
        """Whether the tensor is a view of another one."""
        return self._base is not None

    @property
    def output_nr(self) -> int:
        """The number of the `grad_fn`'s output that this tensor is.

        >>> import flambeau as torch
        >>> x = torch.ones(3, requires_grad=True)
        >>> torch.unbind(x)[2].output_nr
        2
        """
        return self._output_nr

    @property
    def name(self) -> None:
        """None: tensors have no names.

        >>> import flambeau as torch
        >>> torch.ones(2).name is None
        True
        """
        return None

    is_cpu = property(lambda self: self._device is CPU, doc="""Whether the tensor is on the CPU.

        >>> import flambeau as torch
        >>> torch.ones(2).is_cpu
        True
        """)
    is_cuda = property(lambda self: self._device.type == "cuda", doc="""Whether the tensor is on a CUDA device.

        >>> import flambeau as torch
        >>> torch.ones(2).is_cuda
        False
        """)
    is_mps = _constant(False, "is_mps", "Whether the tensor is on an MPS device: never.")
    is_xpu = _constant(False, "is_xpu", "Whether the tensor is on an XPU device: never.")
    is_meta = property(lambda self: self._device is META, doc="""Whether the tensor has no elements (device meta).

        >>> import flambeau as torch
        >>> torch.ones(2, device="meta").is_meta
        True
        """)
    is_mkldnn = _constant(False, "is_mkldnn", "Whether the tensor has MKL-DNN layout: never.")
    is_nested = _constant(False, "is_nested", "Whether the tensor is nested: never.")
    is_quantized = _constant(False, "is_quantized", "Whether the tensor is quantized: never.")
    itemsize = property(lambda self: self._array.dtype.itemsize, doc="""The size of an element in bytes.

        >>> import flambeau as torch
        >>> torch.ones(2, dtype=torch.float64).itemsize
        8
        """)
    nbytes = property(lambda self: size_in_bytes(self._array),
                      doc="""The size of all elements in bytes.

        >>> import flambeau as torch
        >>> torch.ones(2, 3).nbytes
        24
        """)
    @property
    def retains_grad(self) -> bool:
        """Whether this non-leaf stores its gradient in `.grad` (`retain_grad`).

        >>> import flambeau as torch
        >>> y = torch.ones(3, requires_grad=True) * 2
        >>> y.retain_grad()
        >>> y.retains_grad
        True
        """
        return bool(self._retains_grad)

    def is_inference(self) -> bool:
        """Whether it was created in inference mode.

        >>> import flambeau as torch
        >>> with torch.inference_mode():
        ...     x = torch.ones(1)
        >>> x.is_inference()
        True
        """
        return self._inference


_new = object.__new__


def wrap(array: np.ndarray, cls: type = Tensor) -> Any:
    """A tensor on an array, without a graph."""
    out: Any = _new(cls)
    out._array = array
    out._requires_grad = False
    out._node = out._grad = out._counter = out._base = out._accumulator = None
    out._output_nr = 0
    if active_transforms[0]:
        out._transform_depth = len(transform_stack.get())
    if not LARGE_SEEN[0] and array.size > MIN_ELEMENTS[0] and not isinstance(array, ElementlessArray):
        LARGE_SEEN[0] = True
    if cls is not Tensor:
        note_instance(out)
    return out


@functools.cache
def _own_slots(cls: type) -> tuple[str, ...]:
    """The slots that a class and its bases below `Tensor` declare."""
    found: list[str] = []
    for base in cls.__mro__[:cls.__mro__.index(Tensor)]:
        slots = base.__dict__.get("__slots__", ())
        found += [slots] if isinstance(slots, str) else slots
    return tuple(name for name in found if name not in ("__dict__", "__weakref__"))


def slots_of(x: Tensor) -> dict[str, Any]:
    """What a tensor of a subclass keeps in slots of its own, by name."""
    cls: Any = type(x)
    return {name: getattr(x, name) for name in _own_slots(cls) if hasattr(x, name)}


def transform_depth(x: Tensor) -> int:
    """The number of this thread's active transforms inside which a tensor was made."""
    depth = x._transform_depth
    node = x._node
    if node is not None:  # recorded by a fast path, which sets no depth
        for k, frame in enumerate(transform_stack.get(), 1):
            if k > depth and node.seq > frame.start:
                depth = k
    return depth


def set_requires_grad(x: Tensor) -> Tensor:
    """Set `requires_grad` on a tensor without a graph, without the checks of `requires_grad_`."""
    x._requires_grad = True
    return x


layer.wrap = wrap
layer.tensor_class = Tensor
set_plain(Tensor)
