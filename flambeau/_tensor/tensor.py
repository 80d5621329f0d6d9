"""The tensor: one NumPy array, and what autograd needs to know of it.

What every operator reads is a slot, set by `wrap`; the rest has a class-level default:

    _array            the values; its dtype is the tensor's dtype
    _requires_grad    whether gradients flow to it
    _node             the node that made it; None for a leaf
    _output_nr        which output of that node it is
    _grad             its gradient, once accumulated
    _counter          [version], shared by all that share memory; None: never viewed nor written to
    _base             the tensor it is a view of (never itself a view)
    _view_version     the version at which `_node` was true, for a view
    _creation         how a view came to be, where that forbids writing to it
    _steps            how to get from its base to a view whose dtype differs on the way (`replaying`)
    _own              whether a view was itself told to require grad
    _accumulator      weak reference to its AccumulateGrad node
    _tangents         forward-mode tangents, by level
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from .. import dtypes
from ..backends.compiled.thresholds import LEAST, MET
from ..devices import CPU, device
from ..engine.nodes.hooks import HookDict
from ..engine.nodes.node import Node
from ..engine.saved.version_counters import WRITES
from ..engine.tensor_interface import layer
from ..modes import active_tracer, inference, special, transforming, transforms
from ..shapes import Size, as_size
from .untracked_views import tell

_NON_LEAF_GRAD = (
    "The .grad attribute of a Tensor that is not a leaf Tensor is being accessed. Its .grad attribute won't be "
    "populated during autograd.backward(). If you indeed want the .grad field to be populated for a non-leaf "
    "Tensor, use .retain_grad() on the non-leaf Tensor. If you access the non-leaf Tensor by mistake, make sure you "
    "access the leaf Tensor instead. See github.com/pytorch/pytorch/pull/30531 for more information."
)


class _NeverSaved:
    """Stands where an inference tensor's version would be: who asks whether there is one to save is told off, and who
    counts a write outside inference mode."""

    def __bool__(self) -> bool:
        raise RuntimeError("Inference tensors cannot be saved for backward. Please do not use Tensors created in "
                           "inference mode in computation tracked by autograd. To work around this, you can make a "
                           "clone to get a normal tensor and use it in autograd, or use `torch.no_grad()` instead of "
                           "`torch.inference_mode()`.")

    def __add__(self, more: int) -> _NeverSaved:
        if not inference.get():
            raise RuntimeError("Inplace update to inference tensor outside InferenceMode is not allowed.You can make "
                               "a clone to get a normal tensor before doing inplace update.See "
                               "https://github.com/pytorch/rfcs/pull/17 for more details.")
        return self


#: the version counter of all inference tensors
INFERENCE: list[Any] = [_NeverSaved()]

class Tensor:
    """An n-dimensional array that records what is done to it.

    Made by `flambeau._tensor`, `flambeau.zeros` and their kin.
    See https://docs.pytorch.org/docs/stable/tensors.html

    >>> import flambeau as torch
    >>> x = torch.tensor([1., 2.], requires_grad=True)
    >>> (x * x).sum().backward()
    >>> x.grad
    tensor([2., 4.])
    """

    # Read at every operator: slots, which cost a tenth of a class-level default.
    __slots__ = ("__dict__", "__weakref__", "_accumulator", "_array", "_base", "_counter", "_grad", "_node",
                 "_output_nr", "_requires_grad")
    _array: np.ndarray
    _requires_grad: bool
    _node: Node | None
    _output_nr: int
    _grad: Tensor | None
    _counter: list[int] | None
    _base: Tensor | None
    _accumulator: Any
    # Rare: class-level defaults.
    _view_version: int = 0
    _creation: str | None = None
    _steps: Any = None
    _own: bool = False
    _hooks: HookDict | None = None
    _post_accumulate_hooks: HookDict | None = None
    _tangents: dict[int, Tensor] | None = None
    _inference: bool = False
    _depth: int = 0  # in how many transforms it was made
    _grad_type: Any = ()  # the dtype its gradient must have: (), its own; None, any
    _retains: Any = None

    __array_priority__ = 1000  # ndarray * tensor is a tensor's business

    if TYPE_CHECKING:
        # Filled in from the declarations, by `methods`.
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

    # ----- what it is -----

    @property
    def dtype(self) -> dtypes.dtype:
        """The type of the elements."""
        return dtypes.OF_NUMPY.get(self._array.dtype) or dtypes.of(self._array.dtype)

    @property
    def shape(self) -> Size:
        """The sizes of the dimensions."""
        return as_size(self._array.shape)

    @property
    def device(self) -> device:
        """Where the elements lie."""
        return CPU

    @property
    def ndim(self) -> int:
        """The number of dimensions."""
        return self._array.ndim

    @property
    def requires_grad(self) -> bool:
        """Whether gradients are computed for this tensor."""
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
            tell(self)
        else:
            self._own = bool(value)
            self._requires_grad = self._own or base._requires_grad or self._node is not None

    @property
    def is_leaf(self) -> bool:
        """Whether no recorded operator made it."""
        return self.grad_fn is None

    def _has_node(self) -> bool:
        """Whether it has a history, if maybe one that is to be made anew: what `is_leaf` looks at more closely."""
        return self._node is not None or self._view_version == -1

    @property
    def grad(self) -> Tensor | None:
        """The gradient that `backward` accumulated; None before."""
        if self._grad is None and not self._retains and self._has_node():
            import warnings

            warnings.warn(_NON_LEAF_GRAD, UserWarning, stacklevel=2)
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
        wanted = self.dtype if self._grad_type == () else self._grad_type
        if wanted is not None and value.dtype is not wanted:
            raise RuntimeError(
                f"attempting to assign a gradient with dtype '{dtypes.C_NAMES[value.dtype.name]}' to a tensor with "
                f"grad_dtype '{wanted.scalar_name}'. The gradient must match the tensor's grad_dtype (defaults to "
                "the tensor's dtype). You can set the tensor's grad_dtype attribute with a specific dtype, or None to "
                "allow any dtype. Set grad_dtype with caution. Diverging the dtypes of a tensor and its gradient may "
                "break downstream systems that assume they match.")
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
        """The same values without history: writes to it are not recorded nor counted."""
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
        if special[0]:
            tracer = active_tracer.get()
            if tracer is not None:
                tracer.on_memory_change("data")
        self._array = value._array

    @property
    def _version(self) -> int:
        """How often the memory was written to in place."""
        if self._counter is INFERENCE:
            raise RuntimeError("Inference tensors do not track version counter.")
        if special[0]:
            tracer = active_tracer.get()
            if tracer is not None:
                tracer.graph_break("_version counts writes, of which there are more in the next call")
        return 0 if self._counter is None else self._counter[0] & WRITES

    def _bump_version(self) -> None:
        counter = self._counter
        if counter is None:
            self._counter = [1]
        else:
            counter[0] += 1

    def _is_view(self) -> bool:
        return self._base is not None

    @property
    def output_nr(self) -> int:
        """Which output of its node this tensor is."""
        return self._output_nr

    @property
    def name(self) -> None:
        return None

    @property
    def layout(self) -> Any:
        from ..devices import strided

        return strided

    is_cpu = property(lambda self: True)
    is_cuda = is_sparse = is_quantized = is_meta = is_mps = is_mkldnn = is_xpu = is_nested = is_sparse_csr = property(
        lambda self: False)
    itemsize = property(lambda self: self._array.dtype.itemsize)
    nbytes = property(lambda self: self._array.size * self._array.dtype.itemsize)
    names = property(lambda self: (None,) * self._array.ndim)

    @property
    def retains_grad(self) -> bool:
        """Whether this non-leaf keeps its gradient (`retain_grad`)."""
        return bool(self._retains)

    def is_inference(self) -> bool:
        """Whether it was made in inference mode."""
        return self._inference

def wrap(array: np.ndarray, cls: type = Tensor) -> Any:
    """A tensor of an array, without history."""
    out: Any = object.__new__(cls)
    out._array = array
    out._requires_grad = False
    out._node = out._grad = out._counter = out._base = out._accumulator = None
    out._output_nr = 0
    if transforms[0]:
        out._depth = len(transforming.get())
    if not MET[0] and array.size > LEAST[0]:
        MET[0] = True
    return out


def depth_of(x: Tensor) -> int:
    """In how many of the transforms that this thread is in a tensor was made."""
    depth = x._depth
    node = x._node
    if node is not None:  # what the quick ways record says so by its node
        for k, frame in enumerate(transforming.get(), 1):
            if k > depth and node.seq > frame.start:
                depth = k
    return depth


def as_leaf(x: Tensor) -> Tensor:
    """A tensor without history, now requiring grad: what `requires_grad_` does, without asking whether it may."""
    x._requires_grad = True
    return x


layer.wrap = wrap
layer.tensor_class = Tensor
