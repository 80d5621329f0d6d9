"""Modules whose `forward` is generated from a graph."""

from __future__ import annotations

import contextlib
import copy
import itertools
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import flambeau as torch

from ..nn.modules.module import Module
from ._compatibility import compatibility
from .code.generated_code import (
    _exec_with_source,
    _format_import_block,
    _forward_from_src,
    _loader,
    _WrappedCall,
    sys_importer,
)
from .code.namespace import _custom_builtins, import_statement
from .code.pytree_codegen import _BoxedCodeGen, _PyTreeCodeGen
from .graph import Graph, PythonCode
from .module_paths import _assign_attr, _copy_attr, _del_attr, _get_attr, _get_attr_via_attr_list, _has_attr

__all__ = ["GraphModule", "reduce_graph_module", "reduce_package_graph_module"]

_USER_PRESERVED_ATTRIBUTES_KEY = "_user_preserved_attributes"
_HOOKS = ("_replace_hooks", "_create_node_hooks", "_erase_node_hooks", "_deepcopy_hooks")
_STATE_DICT_HOOKS = ("_state_dict_hooks", "_load_state_dict_pre_hooks", "_load_state_dict_post_hooks")


def _indented(text: str, spaces: int) -> str:
    """Text with all lines but the first indented, as representations of modules are."""
    first, *rest = text.split("\n")
    return "\n".join([first, *((" " * spaces + line).rstrip() and " " * spaces + line for line in rest)])


def _print_readable(module: Any, module_name: str, print_output: bool = True, include_stride: bool = False,
                    include_device: bool = False, colored: bool = False, expanded_def: bool = False,
                    additional_meta: list[str] | None = None) -> str:
    graph = module.graph
    if not isinstance(graph, Graph):
        raise AssertionError("print_readable must be used on a module with a graph")
    code = graph.python_code(root_module="self", verbose=True, include_stride=include_stride,
                             include_device=include_device, colored=colored, expanded_def=expanded_def,
                             additional_meta=additional_meta).src.lstrip("\n")
    text = _indented(f"class {module_name}(torch.nn.Module):\n{code}", 4)
    inner = "\n".join(["", *(
        _print_readable(child, name, False, include_stride, include_device, colored, additional_meta=additional_meta)
        for name, child in module.named_children() if isinstance(child, GraphModule))])
    text += _indented(inner, 4)
    if print_output:
        print(text)
    return text


@compatibility(is_backward_compatible=True)
def reduce_graph_module(body: dict[str, Any], import_block: str) -> Any:
    """The module of a pickle: attributes, and code that is traced again."""
    source = body.get("_code") or body["code"]
    return _deserialize_graph_module(_forward_from_src(import_block + source, {}), body)


@compatibility(is_backward_compatible=True)
def reduce_package_graph_module(importer: Any, body: dict[str, Any], generated_module_name: str) -> Any:
    """The module of a package: attributes, and code of the package that is traced again."""
    return _deserialize_graph_module(importer.import_module(generated_module_name).forward, body)


class _CodeOnlyModule(Module):
    """A module of given attributes; its class gets the `forward` to be traced."""

    def __init__(self, body: dict[str, Any]) -> None:
        super().__init__()
        self.__dict__ = body


def _deserialize_graph_module(forward: Callable[..., Any], body: dict[str, Any],
                              graph_module_cls: type | None = None) -> Any:
    _CodeOnlyModule.forward = forward
    tracer_cls: Any = body.get("_tracer_cls") or torch.fx.Tracer

    class KeepModules(tracer_cls):  # type: ignore[misc]
        def is_leaf_module(self, _: Any, __: str) -> bool:
            return True

    module = _CodeOnlyModule(body)
    graph = KeepModules().trace(module, **body.get("_tracer_extras", {}))
    stacks = body.pop("_graphmodule_graph_node_meta_stack_trace", None) or {}
    for node in graph.nodes:
        if stacks.get(node.name) is not None:
            node.meta["stack_trace"] = stacks[node.name]
    graph._tracer_cls = tracer_cls
    result = torch.fx._lazy_graph_module._make_graph_module(
        module, graph, class_name=body.get("_graphmodule_cls_name", "GraphModule"), graph_module_cls=graph_module_cls)
    for name, value in body.items():
        if not hasattr(result, name):
            setattr(result, name, value)
    return result


@compatibility(is_backward_compatible=True)
class GraphModule(Module):
    """A module whose `forward` is generated from a graph.

    Assigning `graph` generates the code; after a change of the graph, `recompile` does.

    Args:
        root: the module, or the dictionary, from which the attributes and submodules that the graph names are taken.
        graph: the graph.
        class_name: the name of the module's class.

    >>> import flambeau as torch
    >>> gm = torch.fx.symbolic_trace(lambda x: torch.relu(x) + 1)
    >>> print(gm.code.strip())
    def forward(self, x):
        relu = torch.relu(x);  x = None
        add = relu + 1;  relu = None
        return add
    """

    def __new__(cls, *args: Any, **kwargs: Any) -> Any:
        # each instance has a class of its own, because `forward` belongs to the class
        base = next(c for c in cls.__mro__ if c.__qualname__.split(".")[-1] != "GraphModuleImpl")

        class GraphModuleImpl(base):  # type: ignore[misc, valid-type]
            pass

        return super().__new__(GraphModuleImpl)

    def __init__(self, root: Any, graph: Graph, class_name: str = "GraphModule") -> None:
        super().__init__()
        type(self).__name__ = class_name
        targets = [node.target for node in graph.nodes if node.op in ("get_attr", "call_module")]
        for target in targets:
            if not isinstance(target, str):
                raise AssertionError(f"Expected node.target to be str, got {type(target)}")
        if isinstance(root, torch.nn.Module):
            if hasattr(root, "training"):
                self.training = root.training
            if isinstance(root, _CodeOnlyModule):  # a pickle keeps all attributes
                for name, _ in (*root.named_children(), *root.named_buffers(), *root.named_parameters()):
                    _copy_attr(root, self, name)
            for target in targets:
                _copy_attr(root, self, target)
        elif isinstance(root, dict):
            for node in graph.nodes:
                if node.op in ("get_attr", "call_module") and node.target not in root:
                    raise RuntimeError(f"Node {node} referenced target {node.target} but that target was not provided "
                                       "in ``root``!")
            for target in sorted(targets, key=lambda t: t.count(".")):  # parents before what they contain
                _assign_attr(root[target], self, target)
        else:
            raise RuntimeError(f"Unsupported type {root} passed for root!")
        self.graph = graph
        tracer_cls = graph._tracer_cls
        local = tracer_cls is None or "<locals>" in tracer_cls.__qualname__  # local classes cannot be pickled
        self._tracer_cls = None if local else tracer_cls
        self._tracer_extras = graph._tracer_extras or {}
        self.meta: dict[str, Any] = {}
        for hooks in _HOOKS:
            setattr(self, hooks, [])
        self.shape_env: Any = None

    __jit_unused_properties__ = ("graph", "_boxed_call")

    @property
    def _boxed_call(self) -> bool:
        return isinstance(self._graph._codegen, _BoxedCodeGen)

    @property
    def graph(self) -> Graph:
        """The graph; assigning one generates the code."""
        return self._graph

    @graph.setter
    def graph(self, g: Graph) -> None:
        if not isinstance(g, Graph):
            raise AssertionError(f"Expected a Graph instance, but got {type(g)}")
        self._graph = g
        g.owning_module = self
        self.recompile()

    @property
    def code(self) -> str:
        """The generated code."""
        if not hasattr(self, "_code"):
            raise RuntimeError("Code has not been generated! Please report a bug to PyTorch")
        return self._code

    def recompile(self) -> PythonCode:
        """Generate the code from the graph."""
        codegen = self._graph._codegen
        if isinstance(codegen, _PyTreeCodeGen):
            self._in_spec, self._out_spec = codegen.pytree_info.in_spec, codegen.pytree_info.out_spec
        code = self._graph.python_code(root_module="self")
        self._code, self._lineno_map = code.src, code._lineno_map
        self._prologue_start = code._prologue_start
        cls: Any = type(self)
        cls.forward = _forward_from_src(self._code, code.globals, getattr(self._graph, "_co_fields", {}))
        # `__call__` of torch.nn.Module is looked up at each call, because tracing replaces it
        own_call = cls.__call__ if "__call__" in vars(cls) else None
        if "_wrapped_call" not in vars(cls):
            cls._wrapped_call = _WrappedCall(cls, own_call)
        self._recompile_submodules()

        def call_wrapped(self: Any, *args: Any, **kwargs: Any) -> Any:
            return self._wrapped_call(self, *args, **kwargs)

        cls.__call__ = call_wrapped
        return code

    def _recompile_submodules(self) -> list[tuple[str, Any]]:
        return [(name, child.recompile()) for name, child in self.named_children() if isinstance(child, GraphModule)]

    # -- submodules ----------------------------------------------------------------------------------

    def add_submodule(self, target: str, m: Any) -> bool:
        """Install a submodule at a path; modules on the path that are missing are made.

        Args:
            target: the path, `a.b`.
            m: the submodule.

        Returns:
            Whether it was installed: not if an attribute on the path is no module.
        """
        *prefix, field = target.split(".")
        owner: Any = self
        for name in prefix:
            inner = getattr(owner, name, None)
            if inner is None:
                inner = torch.nn.Module()
                setattr(owner, name, inner)
            if not isinstance(inner, torch.nn.Module):
                return False
            owner = inner
        owner.add_module(field, m)
        return True

    def delete_submodule(self, target: str) -> bool:
        """Delete the submodule at a path; whether there was one."""
        *prefix, field = target.split(".")
        owner: Any = self
        for name in prefix:
            owner = getattr(owner, name, None)
            if not isinstance(owner, torch.nn.Module):
                return False
        if not isinstance(getattr(owner, field, None), torch.nn.Module):
            return False
        delattr(owner, field)
        return True

    def delete_all_unused_submodules(self) -> None:
        """Delete the submodules that the graph neither calls nor reads attributes of."""
        used: set[str] = set()
        for node in self.graph.nodes:
            if node.op not in ("call_module", "get_attr"):
                continue
            used.update(itertools.accumulate(node.target.split("."), lambda x, y: f"{x}.{y}" if y else x))
            if node.op == "call_module":
                try:
                    called = self.get_submodule(node.target)
                except AttributeError:
                    continue
                used.update(f"{node.target}.{name}" for name, _ in called.named_modules() if name)
        for name in [name for name, _ in self.named_modules() if name not in used]:
            self.delete_submodule(name)

    # -- copies, files -------------------------------------------------------------------------------

    def to_folder(self, folder: Any, module_name: str = "FxModule") -> None:
        """Write the module as Python code, with its state, to a folder that can be imported.

        Args:
            folder: the folder; made if it does not exist.
            module_name: the name of the class.
        """
        folder = Path(folder)
        folder.mkdir(exist_ok=True)
        torch.save(self.state_dict(), folder / "state_dict.pt")
        imports = "\n".join(import_statement(each.import_str) for each in _custom_builtins.values())
        text = (f"\n{import_statement('import torch')}\n{imports}\n\n{import_statement('from torch.nn import *')}\n"
                f"class {module_name}(torch.nn.Module):\n    def __init__(self):\n        super().__init__()\n")
        nn = torch.nn
        written = (nn.Linear, nn.Conv1d, nn.Conv2d, nn.Conv3d, nn.BatchNorm1d, nn.BatchNorm2d, nn.BatchNorm3d)
        pickled = []
        for name, module in self.named_children():
            shown = repr(module)
            if type(module) in written:
                text += f"        setattr(self, '{name}', {shown})\n"
                continue
            file = folder / f"{name}.pt"
            torch.save(module, file)
            pickled.append(name)
            comment = shown.replace("\r", " ").replace("\n", " ")
            text += f"        setattr(self, '{name}', torch.load(r'{file}', weights_only=False)) # {comment}\n"
        for name, buffer in self._buffers.items():
            if buffer is not None:
                dtype = str(buffer.dtype).rpartition(".")[2]
                text += (f"        self.register_buffer('{name}', torch.empty({list(buffer.shape)}, "
                         f"dtype=torch.{dtype}))\n")
        for name, param in self._parameters.items():
            if param is not None:
                dtype = str(param.dtype).rpartition(".")[2]
                text += (f"        setattr(self, '{name}', torch.nn.Parameter(torch.empty({list(param.shape)}, "
                         f"dtype=torch.{dtype})))\n")
        text += f"        self.load_state_dict(torch.load(r'{folder}/state_dict.pt'))\n{_indented(self.code, 4)}\n"
        (folder / "module.py").write_text(text)
        (folder / "__init__.py").write_text("from .module import *")
        if pickled:
            warnings.warn("Was not able to save the following children modules as reprs -"
                          f"saved as pickled files instead: {pickled}", stacklevel=2)

    def __reduce__(self) -> Any:
        attributes = self.__dict__.copy()
        code = self.recompile()
        imports = _format_import_block(code.globals, sys_importer)
        del attributes["_graph"]
        return reduce_graph_module, (attributes, imports)

    def __reduce_package__(self, exporter: Any) -> Any:
        attributes = self.__dict__.copy()
        attributes["_graphmodule_cls_name"] = type(self).__name__
        del attributes["_graph"]
        attributes["_graphmodule_graph_node_meta_stack_trace"] = {
            node.name: node.meta["stack_trace"] for node in self.graph.nodes if "stack_trace" in node.meta}
        name = f"fx-generated._{exporter.get_unique_id()}"
        code = self.recompile()
        exporter.save_source_string(name, _format_import_block(code.globals, exporter.importer) + self.code)
        return reduce_package_graph_module, (attributes, name)

    def _deepcopy_init(self) -> Callable[..., None]:
        return GraphModule.__init__

    def __deepcopy__(self, memo: Any) -> Any:
        result = type(self).__new__(type(self))
        memo[id(self)] = result
        copied = _CodeOnlyModule(copy.deepcopy(self.__dict__, memo))
        self._deepcopy_init()(result, copied, copied.__dict__["_graph"])
        for name in (*_STATE_DICT_HOOKS, *_HOOKS):
            if name in self.__dict__:
                setattr(result, name, copy.deepcopy(self.__dict__[name], memo))
        result.meta = copy.deepcopy(getattr(self, "meta", {}), memo)
        for name, value in result.meta.get(_USER_PRESERVED_ATTRIBUTES_KEY, {}).items():
            setattr(result, name, value)
        for hook in self.__dict__.get("_deepcopy_hooks", ()):
            hook(result)
        return result

    def __copy__(self) -> Any:
        result = torch.fx._lazy_graph_module._make_graph_module(self, self.graph)
        result.meta = getattr(self, "meta", {})
        return result

    def _replicate_for_data_parallel(self) -> Any:
        result = self.__copy__()
        result.__dict__["_is_replica"] = True
        return result

    # -- text, hooks ---------------------------------------------------------------------------------

    def print_readable(self, print_output: bool = True, include_stride: bool = False, include_device: bool = False,
                       colored: bool = False, *, fast_sympy_print: bool = False, expanded_def: bool = False,
                       additional_meta: list[str] | None = None) -> str:
        """The generated code with the origin, dtype and shape of values; that of submodules with a graph, too.

        Args:
            print_output: whether it is printed.
            include_stride, include_device: whether annotations contain strides and the device.
            colored: whether the text has the colors of terminals.
            fast_sympy_print: ignored; there are no symbolic sizes.
            expanded_def: whether each parameter has a line of its own.
            additional_meta: the keys of `Node.meta` that comments show.
        """
        return _print_readable(self, self._get_name(), print_output, include_stride, include_device, colored,
                               expanded_def, additional_meta)

    def __str__(self) -> str:
        return "\n".join([super().__str__(), self._code,
                          "# To see more debug info, please use `graph_module.print_readable()`"])

    @contextlib.contextmanager
    def _set_replace_hook(self, f: Callable[..., Any]) -> Iterator[None]:
        if not callable(f):
            raise AssertionError("Replace hook must be a callable.")
        self._register_replace_node_hook(f)
        try:
            yield
        finally:
            self._unregister_replace_node_hook(f)


def _add_hook_methods() -> None:
    """`_register_create_node_hook`, `_unregister_create_node_hook` and the like."""
    def define(kind: str, attribute: str, called: str) -> None:
        def register(self: Any, f: Callable[..., Any]) -> None:
            if not callable(f):
                raise AssertionError(f"{called} hook must be a callable.")
            getattr(self, attribute).append(f)

        def unregister(self: Any, f: Callable[..., Any]) -> None:
            if not callable(f):
                raise AssertionError(f"{called} hook must be a callable.")
            getattr(self, attribute).remove(f)

        for prefix, method in (("_register", register), ("_unregister", unregister)):
            method.__name__ = f"{prefix}_{kind}_hook"
            method.__qualname__ = f"GraphModule.{method.__name__}"
            setattr(GraphModule, method.__name__, method)

    define("replace_node", "_replace_hooks", "create_node")
    define("create_node", "_create_node_hooks", "create_node")
    define("erase_node", "_erase_node_hooks", "erase_node")
    define("deepcopy", "_deepcopy_hooks", "deepcopy")


_add_hook_methods()
_ = (_del_attr, _exec_with_source, _get_attr, _get_attr_via_attr_list, _has_attr, _loader)
