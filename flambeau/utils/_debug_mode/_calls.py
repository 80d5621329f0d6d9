"""Entries of the log of a `DebugMode`: calls of operators and functions, and modules, with their texts."""

from __future__ import annotations

import hashlib
import traceback
import weakref
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import flambeau as torch

from ..._subclasses.fake_tensor import FakeTensor
from ...ops.overloads import OpOverload
from .._dtype_abbrs import dtype_abbrs
from .._pytree import tree_map

_PACKAGE = __name__.partition(".")[0]


class TensorNumbers:
    """The numbers of tensors, in the order in which they are first seen."""

    def __init__(self) -> None:
        self._numbers: dict[int, int] = {}
        self._next = 0

    def of(self, x: torch.Tensor) -> int:
        """The number of a tensor for as long as it lives."""
        key = id(x)
        if key not in self._numbers:
            self._numbers[key] = self._next
            self._next += 1
            weakref.finalize(x, self._numbers.pop, key, None)
        return self._numbers[key]


def tensor_text(x: torch.Tensor, attributes: Iterable[str] = (), numbers: TensorNumbers | None = None) -> str:
    """A tensor in a line: `t: f32[2, 3]`, `ft` for fake tensors, `dt` with the placements of a distributed one."""
    mark = "" if numbers is None else f"${numbers.of(x)}"
    shown = ", ".join(f"{name}={getattr(x, name)}" for name in attributes if hasattr(x, name))
    text = f"{dtype_abbrs[x.dtype]}[{', '.join(map(str, x.shape))}]" + (f"{{{shown}}}" if shown else "")
    placements = getattr(x, "placements", None)
    if placements is not None:
        return f"dt{mark}: {text}| {''.join(map(str, placements))}"
    return f"{'ft' if isinstance(x, FakeTensor) else 't'}{mark}: {text}"


def norm_hash_fn(t: torch.Tensor, use_scalar: bool = False) -> Any:
    """The sum of absolute values in double precision.

    >>> import flambeau as torch
    >>> from flambeau.utils._debug_mode import norm_hash_fn
    >>> norm_hash_fn(torch.tensor([1., -2.]), use_scalar=True)
    3.0
    """
    wide = t.detach().to(torch.complex128 if t.is_complex() else torch.float64)
    norm = wide.abs().sum()
    return norm.item() if use_scalar else norm


def hash_tensor_fn(t: torch.Tensor, use_scalar: bool = False) -> Any:
    """An integer that depends on each bit of a tensor's values.

    >>> import flambeau as torch
    >>> from flambeau.utils._debug_mode import hash_tensor_fn
    >>> hash_tensor_fn(torch.ones(2), use_scalar=True) == hash_tensor_fn(torch.zeros(2), use_scalar=True)
    False
    """
    data = t.detach().contiguous().view(-1).view(torch.uint8).numpy().tobytes()
    number = int.from_bytes(hashlib.blake2b(data, digest_size=7).digest(), "little")
    return number if use_scalar else torch.tensor(number)


HASHES: dict[str, Callable[..., Any]] = {"norm": norm_hash_fn, "hash_tensor": hash_tensor_fn}


def hashes_of(value: Any, hash_fn: Callable[[torch.Tensor], Any]) -> Any:
    """A value with the hashes of its tensors in their places, and None for all else."""
    return tree_map(lambda x: hash_fn(x) if isinstance(x, torch.Tensor) and not isinstance(x, FakeTensor)
                    and x.device.type != "meta" else None, value)


def _get_call_name(call: _DebugCall) -> str:
    """The name of what an entry called."""
    return call.name


def callers() -> traceback.FrameSummary | None:
    """The innermost frame outside of this package."""
    frame = next((frame for frame, _ in traceback.walk_stack(None)
                  if str(frame.f_globals.get("__name__", "")).partition(".")[0] != _PACKAGE), None)
    return None if frame is None else traceback.extract_stack(frame, limit=1)[-1]


class _DebugCall:
    """An entry of the log.

    Attributes:
        call_depth: in how many entries it is.
        record: what hooks recorded, None for nothing.
        log: what hooks logged, shown behind the entry.
        stack_trace: the line of the program, as a traceback has it; None if it was not recorded.
    """

    name: str

    def __init__(self, call_depth: int, stack: bool = False) -> None:
        self.call_depth = call_depth
        self.record: dict[str, Any] | None = None
        self.log: dict[str, Any] | None = None
        self.frame = callers() if stack else None
        self.stack_trace = None if self.frame is None else "".join(traceback.format_list([self.frame]))

    def render(self, attributes: Sequence[str] = ()) -> str:
        """The entry as a line without indentation."""
        raise NotImplementedError

    def __repr__(self) -> str:
        return self.render()


class _NNModuleCall(_DebugCall):
    """The forward of a module; what it computes stands below.

    Args:
        module_name: its name, with the class of the outermost module and the path.
        call_depth, stack: of `_DebugCall`.
    """

    def __init__(self, module_name: str, call_depth: int, stack: bool = False) -> None:
        super().__init__(call_depth, stack)
        self.name = self.module_name = module_name

    def render(self, attributes: Sequence[str] = ()) -> str:
        """The entry as a line without indentation."""
        return f"[nn.Mod] {self.module_name}"


class _OpCall(_DebugCall):
    """A call of an operator or a function.

    Args:
        op: the overload or the function.
        args, kwargs: its arguments.
        call_depth, stack: of `_DebugCall`.
    """

    def __init__(self, op: Any, args: tuple[Any, ...], kwargs: dict[str, Any], call_depth: int,
                 stack: bool = False) -> None:
        super().__init__(call_depth, stack)
        self.op, self.args, self.kwargs = op, args, kwargs
        self.args_str = self.kwargs_str = self.output_str = ""
        if isinstance(op, OpOverload):
            self.name = f"{op.namespace}::{op._opname}" + (
                "" if op._overloadname == "default" else f".{op._overloadname}")
        else:
            self.name = torch.overrides.resolve_name(op) or f"{op.__module__}.{op.__qualname__}"

    def stringify_args(self, attributes: Sequence[str] = (), numbers: TensorNumbers | None = None,
                       keep: bool = False) -> None:
        """Replace the arguments by their texts, unless they are kept."""
        def text(x: Any) -> Any:
            return tensor_text(x, attributes, numbers) if isinstance(x, torch.Tensor) else x

        self.args_str = ", ".join(str(tree_map(text, x)) for x in self.args)
        self.kwargs_str = ", ".join(f"{name}={tree_map(text, x)}" for name, x in self.kwargs.items())
        if not keep:
            del self.args, self.kwargs

    def stringify_output(self, output: Any, attributes: Sequence[str] = (),
                         numbers: TensorNumbers | None = None) -> None:
        """Note the text of the result; that of None is empty."""
        if output is not None:
            shown = tree_map(lambda x: tensor_text(x, attributes, numbers) if isinstance(x, torch.Tensor) else x,
                             output)
            self.output_str = f"  ->  {shown}"

    def render(self, attributes: Sequence[str] = ()) -> str:
        """The entry as a line without indentation."""
        arguments = ", ".join(filter(None, (self.args_str, self.kwargs_str)))
        logged = f"  # {self.log}" if self.log else ""
        return f"{self.name}({arguments}){self.output_str}{logged}"


__all__ = ["HASHES", "TensorNumbers", "callers", "hash_tensor_fn", "hashes_of", "norm_hash_fn", "tensor_text"]
