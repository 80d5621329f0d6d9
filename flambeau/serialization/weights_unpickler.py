"""The unpickler of `weights_only=True`: it makes numbers, texts, containers and tensors, and calls what is trusted.

Python's unpickler does the stack's work; the operations that could run foreign code ask `safe_globals`
first, and those that PyTorch does not know are refused.
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

_KNOWN = ("NONE", "NEWFALSE", "NEWTRUE", "EMPTY_TUPLE", "EMPTY_LIST", "EMPTY_DICT", "EMPTY_SET", "BININT", "BININT1",
          "BININT2", "BINFLOAT", "BINUNICODE", "SHORT_BINSTRING", "LONG1", "MARK", "TUPLE", "TUPLE1", "TUPLE2",
          "TUPLE3", "BINPUT", "LONG_BINPUT", "STOP")


class _Operations(dict):
    """Opcode -> method; those that are not there are refused."""

    def __missing__(self, opcode: int) -> Any:
        raise UnpicklingError(f"Unsupported operand {opcode}")


def read_global(readline: Any) -> tuple[str, str]:
    """The module and the name after a GLOBAL opcode, as Python 3 calls them."""
    module, name = readline()[:-1].decode("utf-8"), readline()[:-1].decode("utf-8")
    renamed = _compat_pickle.NAME_MAPPING.get((module, name))
    if renamed is not None:
        return renamed
    return _compat_pickle.IMPORT_MAPPING.get(module, module), name


class Unpickler(pickle._Unpickler):
    """Unpickles what is safe.

    Raises:
        pickle.UnpicklingError: something is not (PyTorch's texts).
    """

    dispatch: ClassVar[Any] = _Operations((code, pickle._Unpickler.dispatch[code])
                                          for code in (getattr(pickle, name)[0] for name in _KNOWN))
    stack: list[Any]
    memo: dict[int, Any]
    append: Any
    read: Any
    readline: Any
    pop_mark: Any

    def __init__(self, file: Any, *, encoding: str = "bytes") -> None:
        super().__init__(file, encoding=encoding)

    def load_proto(self) -> None:
        """PROTO: a protocol other than 2 is warned of."""
        self.proto = self.read(1)[0]
        if self.proto != 2:
            warnings.warn(f"Detected pickle protocol {self.proto} in the checkpoint, which was not the default pickle "
                          "protocol used by `torch.load` (2). The weights_only Unpickler might not support all "
                          "instructions implemented by this protocol, please file an issue for adding support if you "
                          "encounter this.", stacklevel=user_stacklevel("pickle"))

    def load_get(self) -> None:
        """BINGET, LONG_BINGET: a value from the memo, whose number is the next byte."""
        self.append(self.memo[self.read(1)[0]])

    def load_long_get(self) -> None:
        """LONG_BINGET: a value from the memo, whose number is in the next four bytes."""
        self.append(self.memo[int.from_bytes(self.read(4), "little")])

    def load_global(self) -> None:
        """GLOBAL: a trusted name."""
        module, name = read_global(self.readline)
        path = f"{module}.{name}"
        if module in safe_globals.BLOCKED:
            raise UnpicklingError(f"Trying to load unsupported GLOBAL {path} whose module {module} is blocked.")
        try:
            found = safe_globals.lookup(path)
        except KeyError:
            path = path.removeprefix("builtins.")
            raise UnpicklingError(
                f"Unsupported global: GLOBAL {path} was not an allowed global by default. Please use "
                f"`torch.serialization.add_safe_globals([{path}])` or the `torch.serialization.safe_globals([{path}])` "
                "context manager to allowlist this global if you trust this class/function.") from None
        self.append(found)

    def load_reduce(self) -> None:
        """REDUCE: a call of something trusted."""
        arguments, call = self.stack.pop(), self.stack[-1]
        if not safe_globals.is_safe(call):
            bound = f" which belongs to {call.__self__}" if hasattr(call, "__self__") else ""
            raise UnpicklingError(f"Trying to call reduce for unrecognized function {call}{bound}")
        self.stack[-1] = call(*arguments)

    def load_newobj(self) -> None:
        """NEWOBJ: an instance of a trusted class."""
        arguments, cls = self.stack.pop(), self.stack.pop()
        if cls is Parameter:
            self.append(Parameter(*arguments))
        elif safe_globals.is_safe(cls):
            self.append(cls.__new__(cls, *arguments))
        else:
            raise UnpicklingError("Can only create new object for nn.Parameter or classes allowlisted via "
                                  f"`add_safe_globals` but got {cls}")

    def load_build(self) -> None:
        """BUILD: the state of a tensor, an OrderedDict or an instance of a trusted class."""
        state, made = self.stack.pop(), self.stack[-1]
        cls = type(made)
        if cls is Tensor:
            made.set_(*state)
        elif cls is OrderedDict:
            made.__dict__.update(state)
        elif not safe_globals.is_safe(cls):
            raise UnpicklingError("Can only build Tensor, Parameter, OrderedDict or types allowlisted via "
                                  f"`add_safe_globals`, but got {cls}")
        elif hasattr(made, "__setstate__"):
            made.__setstate__(state)
        else:
            own, slots = state if isinstance(state, tuple) and len(state) == 2 else (state, None)
            if own:
                made.__dict__.update(own)
            for name, value in (slots or {}).items():
                setattr(made, name, value)

    def load_append(self) -> None:
        """APPEND: one more item of a list."""
        item, items = self.stack.pop(), self.stack[-1]
        if type(items) is not list:
            raise UnpicklingError(f"Can only append to lists, but got {type(items)}")
        items.append(item)

    def load_appends(self) -> None:
        """APPENDS: more items of a list."""
        more, items = self.pop_mark(), self.stack[-1]
        if type(items) is not list:
            raise UnpicklingError(f"Can only extend lists, but got {type(items)}")
        items.extend(more)

    def load_setitem(self) -> None:
        """SETITEM: one more item of a dict."""
        value, key = self.stack.pop(), self.stack.pop()
        self._dictionary("SETITEM")[key] = value

    def load_setitems(self) -> None:
        """SETITEMS: more items of a dict."""
        items = self.pop_mark()
        into = self._dictionary("SETITEMS")
        for i in range(0, len(items), 2):
            into[items[i]] = items[i + 1]

    def _dictionary(self, operation: str) -> Any:
        found = self.stack[-1]
        if type(found) not in (dict, OrderedDict, Counter):
            raise UnpicklingError(f"Can only {operation} for dict, collections.OrderedDict, collections.Counter, but "
                                  f"got {type(found)}")
        return found

    def load_binpersid(self) -> None:
        """BINPERSID: a storage."""
        identity = self.stack.pop()
        if type(identity) is not tuple and type(identity) is not int:
            raise UnpicklingError(f"persistent_load id must be tuple or int, but got {type(identity)}")
        if type(identity) is tuple and identity and identity[0] not in ("storage", b"storage"):
            raise UnpicklingError(f"Only persistent_load of storage is allowed, but got {type(identity[0])}")
        self.append(self.persistent_load(identity))

    def persistent_load(self, identity: Any) -> Any:
        """A storage; there is none unless the loader says so."""
        raise UnpicklingError("unsupported persistent id encountered")


Unpickler.dispatch.update({getattr(pickle, name)[0]: method for name, method in {
    "PROTO": Unpickler.load_proto, "BINGET": Unpickler.load_get, "LONG_BINGET": Unpickler.load_long_get,
    "GLOBAL": Unpickler.load_global, "REDUCE": Unpickler.load_reduce, "NEWOBJ": Unpickler.load_newobj,
    "BUILD": Unpickler.load_build, "APPEND": Unpickler.load_append, "APPENDS": Unpickler.load_appends,
    "SETITEM": Unpickler.load_setitem, "SETITEMS": Unpickler.load_setitems, "BINPERSID": Unpickler.load_binpersid,
}.items()})


def load(file: Any, *, encoding: str = "ASCII") -> Any:
    """What a pickle of safe things holds."""
    return Unpickler(file, encoding=encoding).load()


def globals_in(pickled: bytes) -> set[str]:
    """The names that a pickle asks for, found without running it."""
    import io
    import pickletools

    found = set()
    for opcode, argument, _ in pickletools.genops(io.BytesIO(pickled)):
        number = ord(opcode.code)
        if opcode.name == "GLOBAL":
            module, name = str(argument).split(" ", 1)
            module, name = read_global(iter([f"{module}\n".encode(), f"{name}\n".encode()]).__next__)
            found.add(f"{module}.{name}")
        elif number not in Unpickler.dispatch:
            raise UnpicklingError(f"Unsupported operand {number}")
    return found
