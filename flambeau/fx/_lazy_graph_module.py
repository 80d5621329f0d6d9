"""Graph modules that generate their code on first use."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from .code.generated_code import _format_import_block, sys_importer
from .graph_module import GraphModule, reduce_graph_module

_use_lazy_graph_module_flag = False
_force_skip_lazy_graph_module_flag = False


@contextmanager
def _force_skip_lazy_graph_module() -> Iterator[None]:
    global _force_skip_lazy_graph_module_flag
    former = _force_skip_lazy_graph_module_flag
    try:
        _force_skip_lazy_graph_module_flag = True
        yield
    finally:
        _force_skip_lazy_graph_module_flag = former


@contextmanager
def _use_lazy_graph_module(should_use: bool) -> Iterator[None]:
    global _use_lazy_graph_module_flag
    former = _use_lazy_graph_module_flag
    try:
        _use_lazy_graph_module_flag = should_use and not _force_skip_lazy_graph_module_flag
        yield
    finally:
        _use_lazy_graph_module_flag = former


def _get_graph_module_cls() -> type[GraphModule]:
    return _LazyGraphModule if _use_lazy_graph_module_flag else GraphModule


def _make_graph_module(*args: Any, graph_module_cls: Any = None, **kwargs: Any) -> Any:
    return (graph_module_cls or _get_graph_module_cls())(*args, **kwargs)


class _LazyGraphModule(GraphModule):
    """A graph module that generates its code when it is first called or printed."""

    @classmethod
    def from_graphmodule(cls, gm: GraphModule) -> GraphModule:
        """A lazy module of another one's graph."""
        return gm if isinstance(gm, _LazyGraphModule) else _LazyGraphModule(gm, gm.graph)

    @staticmethod
    def force_recompile(gm: Any) -> None:
        """Generate the code of a lazy module."""
        if isinstance(gm, _LazyGraphModule):
            gm.real_recompile()

    def real_recompile(self) -> None:
        """Generate the code, if it has not been generated."""
        if self._needs_recompile():
            self._real_recompile()

    @classmethod
    def _needs_recompile(cls) -> bool:
        return cls.forward is cls._lazy_forward

    def _lazy_forward(self, *args: Any, **kwargs: Any) -> Any:
        self.real_recompile()
        if self._needs_recompile():
            raise AssertionError("Recompilation required after real_recompile()")
        return self(*args, **kwargs)

    forward = _lazy_forward

    def __reduce__(self) -> Any:
        code = self._real_recompile()
        attributes = self.__dict__.copy()
        del attributes["_graph"]
        return reduce_graph_module, (attributes, _format_import_block(code.globals, sys_importer))

    def _real_recompile(self) -> Any:
        return super().recompile()

    @classmethod
    def recompile(cls) -> Any:
        """Make the code be generated again."""
        cls.forward = cls._lazy_forward

    @property
    def code(self) -> str:
        """The generated code."""
        self.real_recompile()
        return super().code

    def __str__(self) -> str:
        self.real_recompile()
        return super().__str__()
