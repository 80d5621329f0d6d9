"""`torch.utils.show_pickle`: print what a pickle holds, without importing its classes or running its functions."""

from __future__ import annotations

import fnmatch
import pickle
import pprint
import struct
import sys
import zipfile
from collections.abc import Callable, Sequence
from typing import IO, Any


class FakeObject:
    """What a call in a pickle made: the name that was called, its arguments, and the state that was set."""

    def __init__(self, module: str, name: str, args: tuple[Any, ...]) -> None:
        self.module, self.name, self.args = module, name, args
        self.state: Any = None

    def __repr__(self) -> str:
        state = "" if self.state is None else f"(state={self.state!r})"
        return f"{self.module}.{self.name}{self.args!r}{state}"

    def __setstate__(self, state: Any) -> None:
        self.state = state

    @staticmethod
    def pp_format(printer: Any, obj: FakeObject, stream: IO[str], indent: int, allowance: int, context: Any,
                  level: int) -> None:
        """Print an object over several lines, for `pprint`."""
        name = f"{obj.module}.{obj.name}"
        if obj.state is None and obj.args:
            stream.write(name)
            printer._format(obj.args, stream, indent + 1, allowance + 1, context, level)
        elif obj.state is not None and not obj.args:
            indent += printer._indent_per_level
            stream.write(f"{name}()(state=\n{' ' * indent}")
            printer._format(obj.state, stream, indent, allowance + 1, context, level + 1)
            stream.write(")")
        else:
            stream.write(repr(obj))


class FakeClass:
    """A name in a pickle; a call of it is a `FakeObject`."""

    def __init__(self, module: str, name: str) -> None:
        self.module, self.name = module, name
        self.__new__ = self.fake_new  # type: ignore[method-assign, assignment]

    def __repr__(self) -> str:
        return f"{self.module}.{self.name}"

    def __call__(self, *args: Any) -> FakeObject:
        return FakeObject(self.module, self.name, args)

    def fake_new(self, *args: Any) -> FakeObject:
        """A new object, as `__new__` is called, with the class first."""
        return FakeObject(self.module, self.name, args[1:])


_UnpicklerInPython: Any = pickle._Unpickler  # the one in C cannot be changed


class DumpUnpickler(_UnpicklerInPython):  # type: ignore[misc]
    """An unpickler that makes fake objects.

    Args:
        file: the pickle.
        catch_invalid_utf8: whether strings that are no UTF-8 become fake objects, too.

    >>> import io, pickle
    >>> from flambeau.utils.show_pickle import DumpUnpickler
    >>> DumpUnpickler.dump(io.BytesIO(pickle.dumps({"a": complex(1, 2)})), None)
    {'a': builtins.complex(1.0, 2.0)}
    {'a': builtins.complex(1.0, 2.0)}
    """

    def __init__(self, file: IO[bytes], *, catch_invalid_utf8: bool = False, **kwargs: Any) -> None:
        super().__init__(file, **kwargs)
        self.catch_invalid_utf8 = catch_invalid_utf8

    def find_class(self, module: str, name: str) -> FakeClass:
        """The fake class of a name."""
        return FakeClass(module, name)

    def persistent_load(self, pid: Any) -> FakeObject:
        """The fake object of a reference to what is outside of the pickle."""
        return FakeObject("pers", "obj", (pid,))

    def load_binunicode(self) -> None:
        """Read a string."""
        length, = struct.unpack("<I", self.read(4))
        encoded = self.read(length)
        try:
            self.append(str(encoded, "utf-8", "surrogatepass"))
        except UnicodeDecodeError as error:
            if not self.catch_invalid_utf8:
                raise
            self.append(FakeObject("builtin", "UnicodeDecodeError", (str(error),)))

    dispatch: dict[int, Callable[..., None]] = {  # noqa: RUF012
        **_UnpicklerInPython.dispatch, pickle.BINUNICODE[0]: load_binunicode}

    @classmethod
    def dump(cls, in_stream: IO[bytes], out_stream: IO[str] | None) -> Any:
        """Print what a pickle holds; its fake value."""
        value = cls(in_stream).load()
        pprint.pprint(value, stream=out_stream)
        return value


_USAGE = """usage: show_pickle PICKLE_FILE
  PICKLE_FILE can be any of:
    path to a pickle file
    file.zip@member.pkl
    file.zip@*/pattern.*
      (shell glob pattern for members)
      (only first match will be shown)
"""


def main(argv: Sequence[str], output_stream: IO[str] | None = None) -> int | None:
    """Print the pickle that the command line names; 2 if it names none."""
    if len(argv) != 2:
        if output_stream is not None:
            raise Exception("Pass argv of length 2.")
        sys.stderr.write(_USAGE)
        return 2
    path, _, member = argv[1].partition("@")
    if not member:
        with open(path, "rb") as file:
            DumpUnpickler.dump(file, output_stream)
        return None
    with zipfile.ZipFile(path) as archive:
        names = [member] if "*" not in member else fnmatch.filter(archive.namelist(), member)[:1]
        if not names:
            raise Exception(f"Could not find member matching {member} in {path}")
        with archive.open(names[0]) as file:
            DumpUnpickler.dump(file, output_stream)
    return None


if __name__ == "__main__":
    pprint.PrettyPrinter._dispatch[FakeObject.__repr__] = FakeObject.pp_format  # type: ignore[attr-defined]
    sys.exit(main(sys.argv))


__all__ = ["DumpUnpickler", "FakeClass", "FakeObject", "main"]
