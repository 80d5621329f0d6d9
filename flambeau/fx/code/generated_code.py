"""Functions made of generated source, with the source in `linecache`, and errors that show the generated line."""

from __future__ import annotations

import linecache
import os
import sys
import traceback
from collections.abc import Callable
from typing import Any

from .namespace import _custom_builtins, import_statement
from .torch_names import is_from_torch


class _EvalCacheLoader:
    """Generated sources under the names of files, for `linecache`."""

    def __init__(self) -> None:
        self.eval_cache: dict[str, str] = {}
        self.next_id = 0

    def cache(self, src: str, globals: dict[str, Any], co_fields: dict[str, Any] | None = None) -> str:
        """Keep a source; the name of its file.

        Args:
            src: the source.
            globals: the globals with which it runs.
            co_fields: file, line and name of the function from which it was generated.
        """
        key = f"<eval_with_key>.{self.next_id}"
        self.next_id += 1
        if co_fields and "co_filename" in co_fields:
            if "co_firstlineno" not in co_fields or "co_name" not in co_fields:
                key = co_fields["co_filename"]
            else:
                key += f" from {co_fields['co_filename']}:{co_fields['co_firstlineno']} in {co_fields['co_name']}"
        self.eval_cache[key] = src
        linecache.lazycache(key, {**globals, "__file__": key, "__name__": key, "__loader__": self})
        return key

    def get_source(self, module_name: str) -> str | None:
        """The source of a file name; `linecache` calls it."""
        return self.eval_cache.get(module_name)


_loader = _EvalCacheLoader()


def _exec_with_source(src: str, globals: dict[str, Any], co_fields: dict[str, Any] | None = None) -> None:
    exec(compile(src, _loader.cache(src, globals, co_fields), "exec", dont_inherit=True), globals)


def _method_from_src(method_name: str, src: str, globals: dict[str, Any],
                     co_fields: dict[str, Any] | None = None) -> Callable[..., Any]:
    own = globals.copy()
    _exec_with_source(src, own, co_fields)
    return own.pop(method_name)


def _forward_from_src(src: str, globals: dict[str, Any],
                      co_fields: dict[str, Any] | None = None) -> Callable[..., Any]:
    return _method_from_src("forward", src, globals, co_fields)


class SystemImporter:
    """Finds the statement that imports an object."""

    def get_name(self, obj: Any) -> tuple[str, str]:
        """The module and the name of an object.

        Raises:
            AttributeError: the module has no such name.
        """
        name = getattr(obj, "__qualname__", None) or obj.__name__
        module = getattr(obj, "__module__", None) or next(
            (key for key, value in sys.modules.items() if getattr(value, name, None) is obj), "__main__")
        if module not in sys.modules and module != "__main__":
            __import__(module)
        found = sys.modules.get(module)
        for part in name.split("."):
            found = getattr(found, part)
        return module, name


sys_importer = SystemImporter()


def _format_import_statement(name: str, obj: Any, importer: Any) -> str:
    if name in _custom_builtins:
        return import_statement(_custom_builtins[name].import_str)
    if is_from_torch(name):
        return import_statement("import torch")
    if isinstance(obj, str):  # an annotation that was not evaluated
        return f"{name} = {obj!r}"
    module, attribute = importer.get_name(obj)
    return f"from {module} import {attribute} as {name}"


def _format_import_block(globals: dict[str, Any], importer: Any) -> str:
    return "\n".join(sorted({_format_import_statement(name, obj, importer) for name, obj in globals.items()}))


_PACKAGE = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))) + os.sep
#: parts of the package whose frames PyTorch has, too
_PYTHON_IN_PYTORCH = tuple(os.path.join(_PACKAGE, name) + os.sep for name in ("nn", "fx"))


def _runs_an_operator(filename: str) -> bool:
    """Whether code is that of an operator, which has no frame in PyTorch."""
    return filename.startswith(_PACKAGE) and not filename.startswith(_PYTHON_IN_PYTORCH)


class _WrappedCall:
    """The call of a generated module: an error in its code is shown with the generated lines."""

    def __init__(self, cls: type, cls_call: Callable[..., Any] | None) -> None:
        self.cls, self.cls_call = cls, cls_call

    @staticmethod
    def _generate_error_message(frame_summary: traceback.FrameSummary) -> str:
        number, line = frame_summary.lineno, frame_summary.line
        if number is None:
            raise AssertionError("frame_summary.lineno is None")
        if line is None:
            raise AssertionError("frame_summary.line is None")
        lines = linecache.getlines(frame_summary.filename)
        return "\n".join([
            traceback.format_exc(),
            f"Call using an FX-traced Module, line {number} of the traced Module's generated forward function:",
            "".join(lines[number - 2:number]), "~" * len(line) + "~~~ <--- HERE",
            "\n".join(lines[number:number + 2])])

    def __call__(self, obj: Any, *args: Any, **kwargs: Any) -> Any:
        try:
            if self.cls_call is not None:
                return self.cls_call(obj, *args, **kwargs)
            parent: Any = super(self.cls, obj)
            return parent.__call__(*args, **kwargs)
        except Exception as error:
            if not error.__traceback__:
                raise AssertionError("Exception has no traceback") from error
            innermost = [each for each in traceback.StackSummary.extract(traceback.walk_tb(error.__traceback__))
                         if not _runs_an_operator(each.filename)][-1]
            if "eval_with_key" in innermost.filename:
                print(_WrappedCall._generate_error_message(innermost), file=sys.stderr)
                raise error.with_traceback(None)  # noqa: B904
            raise error


__all__: list[str] = []
