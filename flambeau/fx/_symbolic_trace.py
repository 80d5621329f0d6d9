"""Symbolic tracing: a function or module is run with proxies, and what it does becomes a graph."""

from __future__ import annotations

import collections
import copy
import functools
import inspect
import logging
import math
import warnings
from collections.abc import Callable, Iterable
from itertools import chain
from types import FunctionType, ModuleType
from typing import Any, ClassVar

import flambeau as torch

from .._tensor.overriding.entry_points import forget_foreign
from .._tensor.parameter import Parameter
from ..environment.extension import ScriptObject
from ..utils import _pytree as pytree
from ._compatibility import compatibility
from ._lazy_graph_module import _LazyGraphModule, _make_graph_module
from .code.pytree_codegen import _PyTreeCodeGen, _PyTreeInfo
from .graph import Graph
from .graph_module import GraphModule
from .node import Argument, base_types, map_aggregate
from .proxy import Attribute, ParameterProxy, Proxy, Scope, ScopeContextManager, TracerBase
from .tracing.patching import (
    _autowrap_check,
    _create_wrapped_func,
    _create_wrapped_method,
    _find_proxy,
    _maybe_revert_all_patches,
    _new_patcher,
    _patch_wrapped_functions,
    _Patcher,
    _wrapped_fns_to_patch,
    _wrapped_methods_to_patch,
    wrap,
)
from .tracing.placeholders import HAS_VARSTUFF, PH, PHBase, PHWithMeta, _patch_function, _transfer_attrs

log = logging.getLogger(__name__)

_orig_module_call: Callable[..., Any] = torch.nn.Module.__call__
_orig_module_getattr: Callable[..., Any] = torch.nn.Module.__getattr__
_proxyable_classes: dict[type, None] = {}
_is_fx_tracing_flag = False
_constant_attribute_types = (torch.Tensor, ScriptObject, pytree.TreeSpec)
_ROOT = __name__.partition(".")[0]


def is_fx_tracing() -> bool:
    """Whether a function is being traced."""
    return _is_fx_tracing_flag


def is_fx_symbolic_tracing() -> bool:
    """Whether a function is being traced, and not compiled."""
    return _is_fx_tracing_flag and not torch.compiler.is_compiling()


@compatibility(is_backward_compatible=True)
class ProxyableClassMeta(type):
    """A metaclass of classes whose construction from proxies becomes a node.

    >>> import flambeau as torch
    >>> class Pair(metaclass=torch.fx.ProxyableClassMeta):
    ...     def __init__(self, left, right):
    ...         self.left, self.right = left, right
    >>> gm = torch.fx.symbolic_trace(lambda x: Pair(x, x).left)
    >>> [node.name for node in gm.graph.nodes]
    ['x', 'pair', 'getattr_1', 'output']
    """

    def __init__(cls, name: str, bases: Any, attrs: Any) -> None:
        _proxyable_classes.setdefault(cls)
        super().__init__(name, bases, attrs)

    def __call__(cls, *args: Any, **kwargs: Any) -> Any:
        instance = cls.__new__(cls)  # type: ignore[call-overload]
        if is_fx_tracing():
            proxies: list[Proxy] = []
            map_aggregate((args, kwargs), lambda x: proxies.append(x) if isinstance(x, Proxy) else None)
            if proxies:
                return proxies[0].tracer.create_proxy("call_function", cls, args, kwargs)
        cls.__init__(instance, *args, **kwargs)  # type: ignore[misc]
        return instance


@compatibility(is_backward_compatible=True)
class Tracer(TracerBase):
    """Traces functions and modules; a subclass changes what becomes a node.

    Args:
        autowrap_modules: modules whose functions become nodes where they are called.
        autowrap_functions: functions that become nodes where they are called.
        param_shapes_constant: whether shapes of parameters are known while tracing.

    >>> import flambeau as torch
    >>> class Through(torch.fx.Tracer):
    ...     def is_leaf_module(self, m, qualname):
    ...         return False
    >>> graph = Through().trace(torch.nn.Linear(2, 3))
    >>> [node.name for node in graph.nodes]
    ['input_1', 'weight', 'bias', 'linear', 'output']
    """

    def __init__(self, autowrap_modules: tuple[ModuleType, ...] = (math,),
                 autowrap_functions: tuple[Callable[..., Any], ...] = (), param_shapes_constant: bool = False) -> None:
        super().__init__()
        self._autowrap_function_ids = {
            id(value) for name, value in chain.from_iterable(vars(m).items() for m in autowrap_modules)
            if not name.startswith("_") and callable(value)}
        self._autowrap_function_ids.update(map(id, autowrap_functions))
        self._autowrap_search = list(autowrap_modules)
        self.param_shapes_constant = param_shapes_constant
        self.submodule_paths: dict[Any, str] | None = None
        self.root_module_name = ""
        self.scope = Scope("", None)
        self.module_stack = collections.OrderedDict()
        self.num_calls: dict[str, int] = {}
        self.node_name_to_scope = {}

    root: Any
    tensor_attrs: dict[Any, str]
    _qualname_counter: ClassVar[dict[str, int]] = collections.defaultdict(int)

    def get_fresh_qualname(self, prefix: str) -> str:
        """A name with a prefix that the root module does not have yet."""
        name = f"{prefix}0"
        if not hasattr(self.root, name):
            self._qualname_counter[prefix] = 0
            return name
        i = self._qualname_counter[prefix]
        while hasattr(self.root, name := f"{prefix}{i}"):
            i += 1
        self._qualname_counter[prefix] = i + 1
        return name

    def create_arg(self, a: Any) -> Argument:
        """A value as the argument of a node: parameters, buffers, modules and other tensors become `get_attr` nodes."""
        if isinstance(a, Parameter):
            for name, parameter in self.root.named_parameters():
                if a is parameter:
                    return self.create_node("get_attr", name, (), {})
            raise NameError("parameter is not a member of this module")
        if isinstance(a, (torch.Tensor, torch.nn.Module)):
            members = self.root.named_buffers() if isinstance(a, torch.Tensor) else self.root.named_modules()
            for name, member in members:
                if a is member:
                    return self.create_node("get_attr", name, (), {})
        if isinstance(a, tuple) and hasattr(a, "_fields"):
            return self.create_node("call_function", type(a), tuple(self.create_arg(item) for item in a), {})
        if isinstance(a, _constant_attribute_types):
            qualname = self.tensor_attrs.get(a)
            if not qualname:
                prefix = "_tensor_constant" if isinstance(a, torch.Tensor) else "_tree_spec_constant"
                qualname = self.get_fresh_qualname(prefix)
                self.tensor_attrs[a] = qualname
                setattr(self.root, qualname, a)
            return self.create_node("get_attr", qualname, (), {})
        if type(a) in _proxyable_classes:
            qualname = self.get_fresh_qualname(f"_{type(a).__name__}_constant_")
            setattr(self.root, qualname, a)
            return self.create_node("get_attr", qualname, (), {})
        return super().create_arg(a)

    def is_leaf_module(self, m: Any, module_qualified_name: str) -> bool:
        """Whether the call of a module becomes a node; by default those of `torch.nn` do, except `Sequential`.

        Args:
            m: the module.
            module_qualified_name: its path.
        """
        module = m.__module__
        return module.startswith((f"{_ROOT}.nn", "torch.nn", "torch.ao.nn")) and (
            not isinstance(m, torch.nn.Sequential))

    def path_of_module(self, mod: Any) -> str:
        """The path of a module from the root.

        Raises:
            NameError: it is not there.
        """
        if self.submodule_paths:
            path = self.submodule_paths.get(mod)
        else:
            path = next((name for name, module in self.root.named_modules() if module is mod), None)
        if path is None:
            raise NameError("module is not installed as a submodule")
        return path

    def call_module(self, m: Any, forward: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Called where a module is called: a node if it is a leaf, else the module is traced through.

        Args:
            m: the module.
            forward: calls it.
            args: the positional arguments.
            kwargs: the keyword arguments.
        """
        path = self.path_of_module(m)
        with ScopeContextManager(self.scope, Scope(path, type(m))) as scope:
            calls = self.num_calls.get(path, 0)
            key = f"{scope.module_path}@{calls}" if calls > 0 else scope.module_path
            self.module_stack[key] = (path, scope.module_type)
            self.num_calls[path] = calls + 1
            if self.is_leaf_module(m, path):
                result = self.create_proxy("call_module", path, args, kwargs)
            else:
                result = forward(*args, **kwargs)
            last, _ = self.module_stack.popitem(last=True)
            if last != key:
                raise AssertionError(f"Unexpected key {last}, expected {key}")
        return result

    def getattr(self, attr: str, attr_val: Any, parameter_proxy_cache: dict[str, Any]) -> Any:
        """Called where an attribute of a module is read: a parameter becomes a node.

        Args:
            attr: the attribute's name.
            attr_val: its value.
            parameter_proxy_cache: path of a parameter -> its proxy.
        """
        def proxy_of(members: Iterable[tuple[str, Any]]) -> Any:
            for name, member in members:
                if attr_val is not member:
                    continue
                if name not in parameter_proxy_cache:
                    options: dict[str, Any] = {}
                    if "proxy_factory_fn" in inspect.signature(self.create_proxy).parameters:
                        options["proxy_factory_fn"] = None if not self.param_shapes_constant else (
                            lambda node, name=name: ParameterProxy(self, node, name, attr_val))
                    parameter_proxy_cache[name] = self.create_proxy("get_attr", name, (), {}, **options)
                return parameter_proxy_cache[name]
            return None

        found = None
        if isinstance(attr_val, Parameter):
            found = proxy_of(self.root.named_parameters())
        if found is None and self.proxy_buffer_attributes and isinstance(attr_val, torch.Tensor):
            found = proxy_of(self.root.named_buffers())
        return attr_val if found is None else found

    def create_args_for_root(self, root_fn: Any, is_module: bool, concrete_args: Any = None) -> tuple[Any, list[Any]]:
        """Placeholders for the parameters of a function.

        Args:
            root_fn: the function.
            is_module: whether it is the method of a module.
            concrete_args: values of parameters; see `symbolic_trace`.

        Returns:
            The function to call, and its arguments.
        """
        analysed = inspect.unwrap(root_fn)
        code = analysed.__code__
        count = code.co_argcount + code.co_kwonlyargcount
        orig_args = list(code.co_varnames)
        names_iter = iter(code.co_varnames)
        args: list[Any] = []
        skipped = 0
        if is_module:
            if count == 0:
                raise RuntimeError("``self`` argument cannot be part of *args expansion!")
            skipped = 1
            next(names_iter)
            args.append(self.root)
        sig = inspect.signature(analysed)
        if isinstance(concrete_args, tuple) and concrete_args and code.co_flags & HAS_VARSTUFF and count == 1:
            for i, value in enumerate(concrete_args):
                out = self.create_proxy("placeholder", f"input_{i}", (), {})
                if isinstance(value, PHBase) and value != PH:
                    _transfer_attrs(fr=value, to=out.node)
                args.append(out)
            return root_fn, args
        names = [next(names_iter) for _ in range(skipped, count)]
        if isinstance(concrete_args, tuple):
            if len(names) != len(concrete_args):
                raise RuntimeError(f"Tracing expected {len(names)} arguments but got {len(concrete_args)} concrete "
                                   "arguments")
            concrete_args = dict(zip(names, concrete_args, strict=True))

        def placeholder(name: str) -> Any:
            return self._proxy_placeholder(name, concrete_args, sig, analysed)

        args.extend(map(placeholder, names))
        if code.co_kwonlyargcount > 0 or code.co_flags & HAS_VARSTUFF:
            if code.co_flags & inspect.CO_VARARGS:
                args.append(placeholder("*" + next(names_iter)))
            if code.co_flags & inspect.CO_VARKEYWORDS:
                args.append(placeholder("**" + next(names_iter)))
            root_fn = _patch_function(root_fn, len(args))
        flat_args, in_spec = pytree.tree_flatten(tuple(args))
        if all(child.is_leaf() for child in in_spec.children()):
            return root_fn, args
        codegen = self.graph._codegen = _PyTreeCodeGen(_PyTreeInfo(orig_args[:count], in_spec, None))

        def flatten_fn(*args):  # type: ignore[no-untyped-def]
            result = root_fn(*pytree.tree_unflatten(list(args), in_spec))
            out_args, out_spec = pytree.tree_flatten(result)
            codegen.pytree_info = codegen.pytree_info._replace(out_spec=out_spec)
            return out_args

        return flatten_fn, flat_args

    def _proxy_placeholder(self, name: str, concrete_args: Any, sig: inspect.Signature, fn_for_analysis: Any) -> Any:
        """The placeholder of a parameter; where it has a given value, that value, and a check of the argument."""
        if name[0] == "*":
            default: tuple[Any, ...] = ()
        else:
            declared = sig.parameters[name].default
            default = () if declared is inspect.Parameter.empty else (declared,)
        if concrete_args is None or name not in concrete_args:
            return self.create_proxy("placeholder", name, default, {},
                                     type_expr=_annotation(fn_for_analysis, name))
        count = 0

        def replace(x: Any) -> Any:
            nonlocal count
            count += 1
            out = self.create_proxy("placeholder", f"{name}_{count}", default, {})
            if isinstance(x, PHBase):
                if x != PH:
                    _transfer_attrs(fr=x, to=out.node)
                return out
            if type(x) is bool or (type(x) in base_types and type(x) is not torch.Tensor):
                torch._assert(out == x, f"{name} has been specialized to have value {x} but got another value")
            elif x is None:
                message = f"{name} has been specialized to have value None but got another value"
                self.create_proxy("call_function", _assert_is_none, (out, message), {})
            else:
                warnings.warn(
                    f"Was not able to add assertion to guarantee correct input {name} to specialized function. It is "
                    "up to the user to make sure that your inputs match the inputs you specialized the function with.",
                    stacklevel=2)
            return x

        return pytree.tree_map(replace, concrete_args[name])

    def trace(self, root: Any, concrete_args: Any = None) -> Graph:
        """Trace a function or a module.

        Args:
            root: the function or module. Afterwards the attribute `root` is the module, or, for a function, one that
                contains the constants of the graph.
            concrete_args: values of parameters; see `symbolic_trace`.

        Returns:
            The graph.
        """
        global _is_fx_tracing_flag
        former, _is_fx_tracing_flag = _is_fx_tracing_flag, True
        try:
            if isinstance(root, torch.nn.Module):
                _LazyGraphModule.force_recompile(root)
                self.root = root
                if not hasattr(type(root), self.traced_func_name):
                    raise AssertionError(f"traced_func_name={self.traced_func_name} doesn't exist in "
                                         f"{type(root).__name__}")
                fn = getattr(type(root), self.traced_func_name)
                self.root_module_name = root._get_name()
                self.submodule_paths = {module: name for name, module in root.named_modules()}
            else:
                self.root = torch.nn.Module()
                fn = root
            self.graph = Graph(tracer_cls=type(self))
            if hasattr(fn, "__code__"):
                self.graph._co_fields = {name: getattr(fn.__code__, name)
                                         for name in ("co_name", "co_filename", "co_firstlineno")}
            self.tensor_attrs = {}
            self._collect_tensor_attrs(self.root, [])
            if not isinstance(fn, FunctionType):
                raise AssertionError(f"Expected FunctionType, got {type(fn)}")
            fn_globals = fn.__globals__
            fn, args = self.create_args_for_root(fn, isinstance(root, torch.nn.Module), concrete_args)
            with _new_patcher() as patcher:
                self._patch_modules(patcher)
                _patch_wrapped_functions(patcher)
                _autowrap_check(patcher, fn_globals, self._autowrap_function_ids)
                for module in self._autowrap_search:
                    _autowrap_check(patcher, vars(module), self._autowrap_function_ids)
                self.create_node("output", "output", (self.create_arg(fn(*args)),), {},
                                 type_expr=_annotation(inspect.unwrap(fn), "return"))
            self.submodule_paths = None
        finally:
            _is_fx_tracing_flag = former
            for cls in (Proxy, Attribute, ParameterProxy):  # live proxies are counted one by one
                forget_foreign(cls)
        return self.graph

    def _collect_tensor_attrs(self, module: Any, path: list[str]) -> None:
        """Find the tensors that are plain attributes of modules."""
        for name, value in vars(module).items():
            if isinstance(value, _constant_attribute_types):
                self.tensor_attrs[value] = ".".join([*path, name])
        for name, child in module.named_children():
            self._collect_tensor_attrs(child, [*path, name])

    def _patch_modules(self, patcher: _Patcher) -> None:
        """Make calls of modules, and reads of their attributes, ask this tracer."""
        parameter_proxies: dict[str, Any] = {}

        @functools.wraps(_orig_module_getattr)
        def read(mod: Any, attr: str) -> Any:
            return self.getattr(attr, _orig_module_getattr(mod, attr), parameter_proxies)

        @functools.wraps(_orig_module_call)
        def call(mod: Any, *args: Any, **kwargs: Any) -> Any:
            def forward(*args: Any, **kwargs: Any) -> Any:
                return _orig_module_call(mod, *args, **kwargs)

            scope = getattr(getattr(mod, "forward", mod), "__globals__", {})
            _autowrap_check(patcher, scope, self._autowrap_function_ids)
            return self.call_module(mod, forward, args, kwargs)

        patcher.patch_method(torch.nn.Module, "__getattr__", read, deduplicate=False)
        patcher.patch_method(torch.nn.Module, "__call__", call, deduplicate=False)

    def __deepcopy__(self, memo: Any) -> Tracer:
        result = Tracer.__new__(Tracer)
        for name, value in self.__dict__.items():
            result.__dict__[name] = copy.copy(value) if name == "_autowrap_search" else copy.deepcopy(value, memo)
        return result


def _annotation(fn: Any, name: str) -> Any:
    """The annotation of a parameter; of this package's own functions, whose annotations are text, `Tensor` only."""
    found = inspect.get_annotations(fn).get(name)
    if isinstance(found, str) and str(fn.__module__).partition(".")[0] == _ROOT:
        return torch.Tensor if found == "Tensor" else None
    return found


@compatibility(is_backward_compatible=True)
def symbolic_trace(root: Any, concrete_args: Any = None) -> GraphModule:
    """Run a function or module with proxies, and make a module of what it does.

    Args:
        root: the function or module.
        concrete_args: parameter -> value: the graph is that of this value. A container in which `torch.fx.PH` stands
            for values that are not given makes these the parameters of the graph.

    Returns:
        The module.

    Raises:
        TraceError: what the function does depends on the value of a proxy.

    >>> import flambeau as torch
    >>> gm = torch.fx.symbolic_trace(lambda x, flag: x + 1 if flag else x, concrete_args={"flag": True})
    >>> gm(torch.ones(1), True)
    tensor([2.])
    """
    tracer = Tracer()
    graph = tracer.trace(root, concrete_args)
    name = type(root).__name__ if isinstance(root, torch.nn.Module) else root.__name__
    return _make_graph_module(tracer.root, graph, name)


wrap.__module__ = PHBase.__module__ = PHWithMeta.__module__ = __name__


@wrap
def _assert_is_none(value: object, msg: str) -> None:
    if value is not None:
        raise AssertionError(msg)


_ = (PHWithMeta, _create_wrapped_func, _create_wrapped_method, _find_proxy, _maybe_revert_all_patches,
     _wrapped_fns_to_patch, _wrapped_methods_to_patch)
