"""`torch._functorch.aot_autograd`: a function as two graphs of operators below autograd, which other compilers compile.

The first call of a signature is traced with its gradients as one joint graph, without writes (`functionalize`). A
partitioner divides it into a forward and a backward graph, which compilers turn into functions; an `autograd.Function`
calls them. Inputs that the function writes become results of the forward graph, which are copied to them afterwards;
results that are views of inputs are taken from the inputs again.
"""

from __future__ import annotations

import contextlib
import itertools
import warnings
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import flambeau as torch

from ..._tensor.parameter import Parameter
from ...environment.extension import _storage_address
from ...func.functional import functionalize
from ...func.modules import reparametrized
from ...fx.experimental.proxy_tensor import make_fx
from ...fx.graph_module import GraphModule
from ...ops import aten
from ...utils._pytree import tree_flatten, tree_unflatten
from .partitioners import default_partition

_names: list[str] = []
_model = "model"
_numbers = itertools.count()


def make_boxed_func(f: Callable[..., Any]) -> Callable[..., Any]:
    """A function that takes its arguments as one list, as functions that compilers return do.

    >>> make_boxed_func(lambda x, y: x + y)([1, 2])
    3
    """
    def g(args: list[Any]) -> Any:
        return f(*args)

    g._boxed_call = True  # type: ignore[attr-defined]
    return g


def make_boxed_compiler(compiler: Callable[..., Any]) -> Callable[..., Any]:
    """A compiler whose functions take one list (`make_boxed_func`)."""
    def f(fx_g: Any, inps: Any) -> Any:
        return make_boxed_func(compiler(fx_g, inps))

    f._boxed_call = True  # type: ignore[attr-defined]
    return f


def get_aot_graph_name() -> str:
    """The name of the graph that is being compiled, for files of compilers."""
    return f"{_model}__{_names[-1] if _names else ''}"


def get_graph_being_compiled() -> str:
    """The name of the graph that is being compiled, `forward`, `backward` or `inference` with a number."""
    return _names[-1] if _names else ""


def get_aot_compilation_context() -> tuple[list[str], str, int]:
    """The names of the graphs that are being compiled, the model's, and a number."""
    return list(_names), _model, 0


@contextlib.contextmanager
def _compiling(name: str) -> Iterator[None]:
    _names.append(name)
    try:
        yield
    finally:
        _names.pop()


def _call(f: Callable[..., Any], args: Sequence[Any]) -> list[Any]:
    """The results of a compiled graph."""
    if hasattr(f, "_boxed_call"):
        found = f(list(args))
    else:
        warnings.warn("Your compiler for AOTAutograd is returning a function that doesn't take boxed arguments. "
                      "Please wrap it with functorch.compile.make_boxed_func or handle the boxed arguments yourself. "
                      "See https://github.com/pytorch/pytorch/pull/83137#issuecomment-1211320670 for rationale.",
                      stacklevel=3)
        found = f(*args)
    return list(found) if isinstance(found, (list, tuple)) else [found]


class _Result(NamedTuple):
    """How a call gets one of its results.

    Args:
        kind: `graph`: a result of the forward graph; `input`: an argument itself; `view`, `detached view`: a view of an
            argument; `constant`: no tensor.
        source: the index of the graph's result, or of the argument.
        value: the constant, or size, stride and offset of the view.
    """

    kind: str
    source: int
    value: Any


class _Compilers(NamedTuple):
    """The arguments of `aot_function`."""

    forward: Callable[..., Any]
    backward: Callable[..., Any]
    inference: Callable[..., Any]
    partition: Callable[..., Any]
    decompositions: dict[Any, Any] | None


def _copies(values: Sequence[Any]) -> list[Any]:
    """Leaves of the same values and strides, which the function may write while it is traced."""
    found = []
    for x in values:
        if isinstance(x, torch.Tensor):
            if type(x) not in (torch.Tensor, Parameter):
                raise NotImplementedError(f"aot_function: an argument of the class {type(x).__name__}: only plain "
                                          "tensors and parameters are traced")
            copy = torch.empty_strided(x.shape, x.stride(), dtype=x.dtype, device=x.device)
            with torch.no_grad():
                copy.copy_(x)
            x = copy.requires_grad_(x.requires_grad)
        found.append(x)
    return found


def _equal(x: Any, y: Any) -> bool:
    """Whether two tensors have the same elements, NaN among them."""
    return bool(((x == y) | ((x != x) & (y != y))).all())


def _view_sources(args: Sequence[Any]) -> dict[int, int]:
    return {_storage_address(x): i for i, x in reversed(list(enumerate(args)))
            if isinstance(x, torch.Tensor) and x.numel()}


@contextlib.contextmanager
def _same_draws() -> Iterator[None]:
    """A block after which random numbers are those that they would have been without it."""
    state = torch.get_rng_state()
    try:
        yield
    finally:
        torch.set_rng_state(state)


class _Compiled:
    """A function of flat arguments, compiled for one signature.

    Args:
        function: of flat arguments; returns a flat list of results.
        args: examples.
        compilers: the compilers.
        is_forward_only: whether gradients are not recorded.
    """

    def __init__(self, function: Callable[..., Any], args: Sequence[Any], compilers: _Compilers,
                 is_forward_only: bool) -> None:
        self.function, self.compilers = function, compilers
        self.number = next(_numbers)
        with _same_draws():
            self._analyze(_copies(args))
        self.needs_gradients = not is_forward_only and bool(self.differentiable)
        if self.needs_gradients:
            self._trace_joint(args)
        else:
            self._trace_forward(args)

    def _analyze(self, args: list[Any]) -> None:
        """Run the function once: which inputs it writes, and what its results are."""
        self.requires_grad = [isinstance(x, torch.Tensor) and x.requires_grad for x in args]
        # a write to a leaf would be refused
        args = [x.clone() if needs else x for x, needs in zip(args, self.requires_grad, strict=True)]
        versions = [x._version if isinstance(x, torch.Tensor) else 0 for x in args]
        before = [x.detach().clone() if isinstance(x, torch.Tensor) and not x.requires_grad else None for x in args]
        results = self.function(*args)
        # batch normalization updates its averages without a new version
        self.written = [i for i, x in enumerate(args) if isinstance(x, torch.Tensor) and (
            x._version != versions[i] or (before[i] is not None and not _equal(x, before[i])))]
        for i in self.written:
            if self.requires_grad[i]:
                raise NotImplementedError(f"aot_function: input {i}, which requires a gradient, is written in place")
        sources = _view_sources(args)
        self.results: list[_Result] = []
        self.differentiable: list[int] = []  # results of the graph, without the written inputs
        self.kept: list[int] = []
        for position, x in enumerate(results):
            if not isinstance(x, torch.Tensor):
                self.results.append(_Result("constant", 0, x))
                continue
            if type(x) not in (torch.Tensor, Parameter):
                raise NotImplementedError(f"aot_function: a result of the class {type(x).__name__}")
            source = sources.get(_storage_address(x)) if x.numel() else None
            if source is not None:
                same = next((i for i, y in enumerate(args) if x is y), None)
                kind = "view" if x.requires_grad or not args[source].requires_grad else "detached view"
                self.results.append(_Result(kind, source, (x.shape, x.stride(), x.storage_offset()))
                                    if same is None else _Result("input", same, None))
                continue
            if x.requires_grad:
                self.differentiable.append(len(self.kept))
            self.results.append(_Result("graph", len(self.kept), None))
            self.kept.append(position)

    def _outputs(self, primals: Sequence[Any]) -> tuple[list[Any], list[Any]]:
        """The results of the graph: those of the function, and the written inputs."""
        primals = list(primals)
        results = self.function(*primals)
        return [results[i] for i in self.kept], [primals[i] for i in self.written]

    def _graph(self, function: Callable[..., Any], args: tuple[Any, ...]) -> GraphModule:
        with _same_draws():
            module = make_fx(functionalize(function), self.compilers.decompositions)(*args)
        for node in list(module.graph.nodes):  # the writes to inputs: the graph returns the values
            if node.op == "call_function" and node.target is aten.copy_.default and not node.users:
                module.graph.erase_node(node)
        left = [node for node in module.graph.nodes if node.op == "call_function" and getattr(
            getattr(node.target, "_schema", None), "is_mutable", False)]
        if left:
            raise NotImplementedError(f"aot_function: {left[0].target} writes, and no operator that returns what it "
                                      "writes takes its place")
        _flatten(module)
        return module

    def _trace_forward(self, args: Sequence[Any]) -> None:
        def forward(*arg: Any) -> Any:
            results, written = self._outputs(arg)
            return [*written, *results]

        with torch.no_grad():
            self.module = _renamed(self._graph(lambda arg: forward(*arg), (_detached(_copies(args)),)), "arg")
        with _compiling(f"inference_{self.number}"):
            self.run = self.compilers.inference(self.module, _detached(args))

    def _trace_joint(self, args: Sequence[Any]) -> None:
        copies = _copies(args)
        leaves = [i for i, needs in enumerate(self.requires_grad) if needs]
        with _same_draws(), torch.enable_grad():
            results, _ = self._outputs(_copies(args))
            tangents = [torch.ones_like(results[i]) for i in self.differentiable]
            del results

        def joint(primals: list[Any], tangents: list[Any]) -> Any:
            results, written = self._outputs(primals)
            gradients = torch.autograd.grad([results[i] for i in self.differentiable], [primals[i] for i in leaves],
                                            tangents, allow_unused=True)
            found = iter(gradients)
            return [*written, *results], [next(found) if needs else None for needs in self.requires_grad]

        with torch.enable_grad():
            module = self._graph(joint, (copies, tangents))
        module.recompile()
        count = len(self.written) + len(self.kept)
        forward, backward = self.compilers.partition(module, [copies, tangents], num_fwd_outputs=count,
                                                     static_lifetime_input_indices=[])
        self.count, self.backward_module, self.run_backward = count, backward, None
        with _compiling(f"forward_{self.number}"):
            self.run = self.compilers.forward(forward, _detached(args))
        self.apply = _function_of(self)

    def backward(self, args: list[Any]) -> list[Any]:
        """The gradients, of what was saved and the tangents."""
        if self.run_backward is None:
            with _compiling(f"backward_{self.number}"):
                self.run_backward = self.compilers.backward(self.backward_module, _detached(args))
        assert self.run_backward is not None
        return _call(self.run_backward, args)

    def __call__(self, args: Sequence[Any]) -> list[Any]:
        """The results of the function, for flat arguments."""
        found = self.apply(*args) if self.needs_gradients else _call(self.run, _detached(args))
        count = len(self.written)
        with torch.no_grad():
            for i, value in zip(self.written, found[:count], strict=True):
                args[i].copy_(value)
        results = found[count:]
        return [results[r.source] if r.kind == "graph" else args[r.source] if r.kind == "input" else
                args[r.source].as_strided(*r.value) if r.kind == "view" else
                args[r.source].detach().as_strided(*r.value) if r.kind == "detached view" else r.value
                for r in self.results]


def _detached(values: Sequence[Any]) -> list[Any]:
    return [x.detach() if isinstance(x, torch.Tensor) and x.requires_grad else x for x in values]


def _flatten(module: GraphModule) -> None:
    """Give a graph flat arguments and a flat tuple of results, without a tree of either."""
    from ...fx.graph import CodeGen

    module.graph._codegen = CodeGen()
    module.recompile()


def _renamed(module: GraphModule, prefix: str) -> GraphModule:
    """Name the placeholders `arg0_1`, ... as PyTorch's inference graphs do."""
    for i, node in enumerate([n for n in module.graph.nodes if n.op == "placeholder"]):
        node.name = node.target = f"{prefix}{i}_1"
    module.recompile()
    return module


def _function_of(compiled: _Compiled) -> Callable[..., Any]:
    """The `autograd.Function` that calls the two graphs."""
    count, written = compiled.count, len(compiled.written)
    differentiable = {written + i for i in compiled.differentiable}

    class CompiledFunction(torch.autograd.Function):  # type: ignore[misc]
        """The forward graph, and the backward graph as its derivative."""

        @staticmethod
        def forward(ctx: Any, *primals: Any) -> Any:
            found = _call(compiled.run, primals)
            results, saved = found[:count], found[count:]
            ctx.save_for_backward(*[x for x in saved if isinstance(x, torch.Tensor)])
            ctx.others = [None if isinstance(x, torch.Tensor) else (x,) for x in saved]
            ctx.mark_non_differentiable(*[x for i, x in enumerate(results) if i not in differentiable
                                          and isinstance(x, torch.Tensor)])
            ctx.traced = [(x.shape, x.dtype, x.device) if i in differentiable else None
                            for i, x in enumerate(results)]
            ctx.set_materialize_grads(False)
            return tuple(results)

        @staticmethod
        def backward(ctx: Any, *grads: Any) -> Any:
            tensors = iter(ctx.saved_tensors)
            saved = [next(tensors) if other is None else other[0] for other in ctx.others]
            tangents = [torch.zeros(metadata[0], dtype=metadata[1], device=metadata[2]) if g is None else g.contiguous()
                        for g, metadata in zip(grads, ctx.traced, strict=True) if metadata is not None]
            args = [*saved, *tangents]
            if torch.is_grad_enabled() and any(isinstance(x, torch.Tensor) and x.requires_grad for x in args):
                return CompiledFunctionBackward.apply(*args)
            return tuple(compiled.backward(args))

    class CompiledFunctionBackward(torch.autograd.Function):  # type: ignore[misc]
        """The backward graph where a graph of it is recorded, which cannot be differentiated."""

        @staticmethod
        def forward(ctx: Any, *args: Any) -> Any:
            return tuple(compiled.backward(list(args)))

        @staticmethod
        def backward(ctx: Any, *grads: Any) -> Any:
            raise RuntimeError("torch.compile with aot_autograd does not currently support double backward")

    apply: Callable[..., Any] = CompiledFunction.apply
    return apply


def _signature(args: Sequence[Any], spec: Any) -> Any:
    found: list[Any] = [str(spec), torch.is_grad_enabled()]
    for x in args:
        found.append((x.shape, x.stride(), x.dtype, x.device, x.requires_grad) if isinstance(x, torch.Tensor)
                     else (type(x), x))
    return tuple(found)


def aot_function(fn: Callable[..., Any], fw_compiler: Callable[..., Any], bw_compiler: Callable[..., Any] | None = None,
                 partition_fn: Callable[..., Any] = default_partition, decompositions: dict[Any, Any] | None = None,
                 num_params_buffers: int = 0, keep_inference_input_mutations: bool = False,
                 inference_compiler: Callable[..., Any] | None = None, *, dynamic: bool = False,
                 enable_log: bool = True, disable_functionalization: bool = False,
                 _disable_torch_fn_metadata_mode: bool = False) -> Callable[..., Any]:
    """A function whose forward and backward pass are graphs that compilers have compiled.

    Each signature (sizes, strides, dtypes, numbers) is traced when it is first called; the backward graph is compiled
    by the first backward pass.

    Args:
        fn: of tensors, and of containers of them.
        fw_compiler: gets the forward graph, a `GraphModule` of operators of `torch.ops.aten`, and examples of its
            inputs, and returns a function, which takes them as one list if it has an attribute `_boxed_call`.
        bw_compiler: the same for the backward graph; by default `fw_compiler`.
        partition_fn: divides the joint graph.
        decompositions: overload -> function that computes it of others.
        inference_compiler: for calls without gradients; by default `fw_compiler`.
        num_params_buffers, keep_inference_input_mutations, dynamic, enable_log: not used.
        disable_functionalization: must be False.

    Raises:
        NotImplementedError: arguments or results are of subclasses of tensors, or an argument that requires a gradient
            is written.

    >>> import flambeau as torch
    >>> from flambeau.compiler.functorch.aot_autograd import aot_function, make_boxed_func
    >>> def show(graph, inputs):
    ...     print([node.name for node in graph.graph.nodes])
    ...     return make_boxed_func(graph.forward)
    >>> f = aot_function(lambda x: x.sin(), show)
    >>> x = torch.zeros(2, requires_grad=True)
    >>> f(x).sum().backward()
    ['primals_1', 'sin', 'output']
    ['primals_1', 'tangents_1', 'cos', 'mul', 'output']
    >>> x.grad
    tensor([1., 1.])
    """
    if disable_functionalization:
        raise NotImplementedError("aot_function(disable_functionalization=True): graphs are always without writes")
    backward = fw_compiler if bw_compiler is None else bw_compiler
    compilers = _Compilers(fw_compiler, backward, fw_compiler if inference_compiler is None else inference_compiler,
                           partition_fn, decompositions)
    known: dict[Any, tuple[_Compiled, Any]] = {}

    def look_up(args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[_Compiled, Any, list[Any]]:
        leaves, spec = tree_flatten((args, kwargs))
        key = _signature(leaves, spec)
        found = known.get(key)
        if found is None:
            tree: list[Any] = []

            def flat(*values: Any) -> list[Any]:
                positional, named = tree_unflatten(list(values), spec)
                results, out_spec = tree_flatten(fn(*positional, **named))
                tree[:] = [out_spec]
                return results

            compiled = _Compiled(flat, leaves, compilers, not torch.is_grad_enabled())
            found = known[key] = compiled, tree[0]
        return *found, leaves

    def returned_function(*args: Any, **kwargs: Any) -> Any:
        compiled, out_spec, leaves = look_up(args, kwargs)
        return tree_unflatten(compiled(leaves), out_spec)

    returned_function.prepare = lambda *args: look_up(args, {})  # type: ignore[attr-defined]
    return returned_function


def _tensors_of(mod: torch.nn.Module) -> tuple[list[str], list[Any]]:
    named = {**dict(mod.named_parameters()), **dict(mod.named_buffers())}
    return list(named), list(named.values())


def aot_module(mod: torch.nn.Module, *args: Any, **kwargs: Any) -> torch.nn.Module:
    """A module whose forward and backward pass are compiled graphs, with the parameters and buffers of `mod`.

    Args:
        mod: the module.
        args, kwargs: as for `aot_function`.

    >>> import flambeau as torch
    >>> from flambeau.compiler.functorch.aot_autograd import aot_module
    >>> from flambeau.compiler.functorch.compilers import nop
    >>> compiled = aot_module(torch.nn.Linear(2, 1), nop)
    >>> list(compiled(torch.ones(3, 2)).shape)
    [3, 1]
    """
    names, _ = _tensors_of(mod)

    def functional_call(tensors: list[Any], args: Any, kwargs: Any) -> Any:
        with reparametrized(mod, dict(zip(names, tensors, strict=True))):
            return mod(*args, **kwargs)

    compiled_f = aot_function(functional_call, *args, **kwargs)

    class AOTModule(torch.nn.Module):  # type: ignore[misc]
        """The module of the compiled graphs."""

        def __init__(self) -> None:
            super().__init__()
            self.orig_module = mod

        def forward(self, *args: Any, **kwargs: Any) -> Any:
            """The results of `mod`."""
            return compiled_f(_tensors_of(mod)[1], args, kwargs)

    return AOTModule()


def aot_module_simplified(mod: Any, args: Sequence[Any], fw_compiler: Callable[..., Any],
                          bw_compiler: Callable[..., Any] | None = None,
                          partition_fn: Callable[..., Any] = default_partition,
                          decompositions: dict[Any, Any] | None = None, keep_inference_input_mutations: bool = False,
                          inference_compiler: Callable[..., Any] | None = None, compiler_config_extra: Any = None,
                          ignore_shape_env: bool = False, disable_functionalization: bool = False,
                          pre_grad_passes: Callable[..., Any] | None = None,
                          compile_region_name: str | None = None) -> Callable[..., Any]:
    """The function of a graph of `compile` as compiled graphs: what a backend returns. The graph is traced at once.

    Args:
        mod: the graph, of flat arguments and results; its parameters and buffers become the first arguments.
        args: examples of its arguments.
        pre_grad_passes: a function of the graph and its arguments that returns the graph to trace.
        compiler_config_extra, ignore_shape_env, compile_region_name: not used.
        fw_compiler, bw_compiler, partition_fn, decompositions, inference_compiler, keep_inference_input_mutations,
            disable_functionalization: as for `aot_function`.

    >>> import flambeau as torch
    >>> from flambeau.compiler.functorch.aot_autograd import aot_module_simplified, make_boxed_func
    >>> def compiler(graph, inputs):
    ...     return make_boxed_func(graph.forward)
    >>> f = torch.compile(lambda x: x.sin() + 1, backend=lambda g, x: aot_module_simplified(g, x, compiler))
    >>> f(torch.zeros(2))
    tensor([1., 1.])
    """
    if pre_grad_passes is not None:
        mod = pre_grad_passes(mod, args)
    names, _ = _tensors_of(mod)

    def functional_call(tensors: list[Any], args: Any) -> Any:
        with reparametrized(mod, dict(zip(names, tensors, strict=True))):
            return mod(*args)

    compiled = aot_function(functional_call, fw_compiler, bw_compiler, partition_fn, decompositions,
                            inference_compiler=inference_compiler, disable_functionalization=disable_functionalization)
    compiled.prepare(_tensors_of(mod)[1], list(args))  # type: ignore[attr-defined]

    def forward(*runtime_args: Any) -> Any:
        return compiled(_tensors_of(mod)[1], list(runtime_args))

    forward.zero_grad = mod.zero_grad  # type: ignore[attr-defined]
    forward.named_parameters = mod.named_parameters  # type: ignore[attr-defined]
    forward.named_buffers = mod.named_buffers  # type: ignore[attr-defined]
    return forward


compiled_function, compiled_module = aot_function, aot_module

__all__ = ["aot_function", "aot_module", "aot_module_simplified", "compiled_function", "compiled_module",
           "default_partition", "get_aot_compilation_context", "get_aot_graph_name", "get_graph_being_compiled",
           "make_boxed_compiler", "make_boxed_func"]
