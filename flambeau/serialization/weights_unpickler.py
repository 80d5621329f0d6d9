"""The restricted unpickler of `weights_only=True`: plain values, containers, tensors, and calls of allowed globals.

It derives from the standard library's Python unpickler. Opcodes that can call code look up `safe_globals` first;
opcodes that PyTorch's restricted unpickler lacks are rejected.
"""

from __future__ import annotations

import _compat_pickle
import pickle
import warnings
from collections import Counter, OrderedDict
from pickle import UnpicklingError
from typing import Any, ClassVar

from .._tensor import Parameter, Tensor
from ..warning_location import user_stacklevel
from . import safe_globals

_ALLOWED_OPCODES = (
    "NONE", "NEWFALSE", "NEWTRUE", "EMPTY_TUPLE", "EMPTY_LIST", "EMPTY_DICT", "EMPTY_SET", "BININT", "BININT1",
    "BININT2", "BINFLOAT", "BINUNICODE", "SHORT_BINSTRING", "LONG1", "MARK", "TUPLE", "TUPLE1", "TUPLE2", "TUPLE3",
    "BINPUT", "LONG_BINPUT", "STOP")


class _DispatchTable(dict):
    """Opcode -> method; raises for opcodes that are not allowed."""

    def __missing__(self, opcode: int) -> Any:
        raise UnpicklingError(f"Unsupported operand {opcode}")


def read_global(readline: Any) -> tuple[str, str]:
    """The module and the name after a GLOBAL opcode, with names of Python 2 mapped to those of Python 3."""
    module, name = readline()[:-1].decode("utf-8"), readline()[:-1].decode("utf-8")
    renamed = _compat_pickle.NAME_MAPPING.get((module, name))
    if renamed is not None:
        return renamed
    return _compat_pickle.IMPORT_MAPPING.get(module, module), name


class Unpickler(pickle._Unpickler):
    """Unpickler that calls only allowed globals.

    Raises:
        pickle.UnpicklingError: an opcode or a global is not allowed (PyTorch's messages).
    """

    dispatch: ClassVar[Any] = _DispatchTable((code, pickle._Unpickler.dispatch[code])
                                             for code in (getattr(pickle, name)[0] for name in _ALLOWED_OPCODES))
    stack: list[Any]
    memo: dict[int, Any]
    append: Any
    read: Any
    readline: Any
    pop_mark: Any

    def __init__(self, file: Any, *, encoding: str = "bytes") -> None:
        super().__init__(file, encoding=encoding)

    def load_proto(self) -> None:
        """PROTO: warn if the protocol is not 2."""
        self.proto = self.read(1)[0]
        if self.proto != 2:
            warnings.warn(f"Detected pickle protocol {self.proto} in the checkpoint, which was not the default pickle "
                          "protocol used by `torch.load` (2). The weights_only Unpickler might not support all "
                          "instructions implemented by this protocol, please file an issue for adding support if you "
                          "encounter this.", stacklevel=user_stacklevel("pickle"))

    def load_get(self) -> None:
        """BINGET: push the memo entry whose index is the next byte."""
        self.append(self.memo[self.read(1)[0]])

    def load_long_get(self) -> None:
        """LONG_BINGET: push the memo entry whose index is in the next four bytes."""
        self.append(self.memo[int.from_bytes(self.read(4), "little")])

    def load_global(self) -> None:
        """GLOBAL: push an allowed global."""
        module, name = read_global(self.readline)
        full_name = f"{module}.{name}"
        if module in safe_globals.BLOCKED:
            raise UnpicklingError(f"Trying to load unsupported GLOBAL {full_name} whose module {module} is blocked.")
        try:
            resolved = safe_globals.lookup(full_name)
        except KeyError:
            full_name = full_name.removeprefix("builtins.")
            raise UnpicklingError(
                f"Unsupported global: GLOBAL {full_name} was not an allowed global by default. Please use "
                f"`torch.serialization.add_safe_globals([{full_name}])` or the "
                f"`torch.serialization.safe_globals([{full_name}])` context manager to "
                "allowlist this global if you trust this class/function.") from None
        self.append(resolved)

    def load_reduce(self) -> None:
        """REDUCE: call an allowed function or class."""
        arguments, function = self.stack.pop(), self.stack[-1]
        if not safe_globals.is_safe(function):
            bound = f" which belongs to {function.__self__}" if hasattr(function, "__self__") else ""
            raise UnpicklingError(f"Trying to call reduce for unrecognized function {function}{bound}")
        self.stack[-1] = function(*arguments)

    def load_newobj(self) -> None:
        """NEWOBJ: create an instance of an allowed class."""
        arguments, cls = self.stack.pop(), self.stack.pop()
        if cls is Parameter:
            self.append(Parameter(*arguments))
        elif safe_globals.is_safe(cls):
            self.append(cls.__new__(cls, *arguments))
        else:
            raise UnpicklingError("Can only create new object for nn.Parameter or classes allowlisted via "
                                  f"`add_safe_globals` but got {cls}")

    def load_build(self) -> None:
        """BUILD: set the state of a tensor, an OrderedDict or an instance of an allowed class."""
        state, obj = self.stack.pop(), self.stack[-1]
        cls = type(obj)
        if cls is Tensor:
            obj.set_(*state)
        elif cls is OrderedDict:
            obj.__dict__.update(state)
        elif not safe_globals.is_safe(cls):
            raise UnpicklingError("Can only build Tensor, Parameter, OrderedDict or types allowlisted via "
                                  f"`add_safe_globals`, but got {cls}")
        elif hasattr(obj, "__setstate__"):
            obj.__setstate__(state)
        else:
            attributes, slots = state if isinstance(state, tuple) and len(state) == 2 else (state, None)
            if attributes:
                obj.__dict__.update(attributes)
            for name, value in (slots or {}).items():
                setattr(obj, name, value)

    def load_append(self) -> None:
        """APPEND: append an item to a list."""
        item, items = self.stack.pop(), self.stack[-1]
        if type(items) is not list:
            raise UnpicklingError(f"Can only append to lists, but got {type(items)}")
        items.append(item)

    def load_appends(self) -> None:
        """APPENDS: extend a list."""
        more, items = self.pop_mark(), self.stack[-1]
        if type(items) is not list:
            raise UnpicklingError(f"Can only extend lists, but got {type(items)}")
        items.extend(more)

    def load_setitem(self) -> None:
        """SETITEM: set an item of a dict."""
        value, key = self.stack.pop(), self.stack.pop()
        self._target_dict("SETITEM")[key] = value

    def load_setitems(self) -> None:
        """SETITEMS: set several items of a dict."""
        items = self.pop_mark()
        target = self._target_dict("SETITEMS")
        for i in range(0, len(items), 2):
            target[items[i]] = items[i + 1]

    def _target_dict(self, opcode_name: str) -> Any:
        target = self.stack[-1]
        if type(target) not in (dict, OrderedDict, Counter):
            raise UnpicklingError(f"Can only {opcode_name} for dict, collections.OrderedDict, collections.Counter, but "
                                  f"got {type(target)}")
        return target

    def load_binpersid(self) -> None:
        """BINPERSID: push the storage of a persistent id."""
        pid = self.stack.pop()
        if type(pid) is not tuple and type(pid) is not int:
            raise UnpicklingError(f"persistent_load id must be tuple or int, but got {type(pid)}")
        if type(pid) is tuple and pid and pid[0] not in ("storage", b"storage"):
            raise UnpicklingError(f"Only persistent_load of storage is allowed, but got {type(pid[0])}")
        self.append(self.persistent_load(pid))

    def persistent_load(self, pid: Any) -> Any:
        """The storage of a persistent id; the loader overrides this."""
        raise UnpicklingError("unsupported persistent id encountered")


Unpickler.dispatch.update({getattr(pickle, name)[0]: method for name, method in {
    "PROTO": Unpickler.load_proto, "BINGET": Unpickler.load_get, "LONG_BINGET": Unpickler.load_long_get,
    "GLOBAL": Unpickler.load_global, "REDUCE": Unpickler.load_reduce, "NEWOBJ": Unpickler.load_newobj,
    "BUILD": Unpickler.load_build, "APPEND": Unpickler.load_append, "APPENDS": Unpickler.load_appends,
    "SETITEM": Unpickler.load_setitem, "SETITEMS": Unpickler.load_setitems, "BINPERSID": Unpickler.load_binpersid,
}.items()})


def load(file: Any, *, encoding: str = "ASCII") -> Any:
    """Load a pickle that has no persistent ids."""
    return Unpickler(file, encoding=encoding).load()


def globals_in(pickled: bytes) -> set[str]:
    """The globals in a pickle, read from its opcodes without executing them."""
    import io
    import pickletools

    names = set()
    for opcode, argument, _ in pickletools.genops(io.BytesIO(pickled)):
        code = ord(opcode.code)
        if opcode.name == "GLOBAL":
            module, name = str(argument).split(" ", 1)
            module, name = read_global(iter([f"{module}\n".encode(), f"{name}\n".encode()]).__next__)
            names.add(f"{module}.{name}")
        elif code not in Unpickler.dispatch:
            raise UnpicklingError(f"Unsupported operand {code}")
    return names
