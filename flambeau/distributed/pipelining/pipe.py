"""`pipeline`: a module divided into stages, where marks in its exported graph say so."""

from __future__ import annotations

import contextlib
import copy
import operator
from collections.abc import Callable, Iterator
from enum import Enum
from typing import Any

from ...c10d.process_group import ProcessGroup
from ...library import define, impl, register_fake
from ...nn.modules.module import Module
from ...nn.parameter import Parameter
from ...trees import tree_leaves
from .traced import PipeInfo, _PipelineStage

__all__ = ["Pipe", "SplitPoint", "pipe_split", "pipeline"]

_PREFIX = "submod_pp"

define("pippy::_pipe_split", "() -> ()")


def _nothing() -> None:
    return None


impl("pippy::_pipe_split", "CompositeExplicitAutograd", _nothing)
register_fake("pippy::_pipe_split", _nothing)


def _mark() -> Any:
    """The operator that marks the end of a stage."""
    from ..._ops import ops

    return ops.pippy._pipe_split.default


def pipe_split() -> None:
    """Mark the end of a stage in a module's `forward`; without effect in a call.

    >>> import flambeau as torch
    >>> from flambeau.distributed.pipelining import pipe_split, pipeline
    >>> class Two(torch.nn.Module):
    ...     def forward(self, x):
    ...         x = x + 1
    ...         pipe_split()
    ...         return x * 2
    >>> pipe = pipeline(Two(), (torch.ones(2),))
    >>> pipe.num_stages, pipe(torch.ones(2))
    (2, (tensor([4., 4.]),))
    """
    _mark()()


class SplitPoint(Enum):
    """Where a module of a `split_spec` begins or ends a stage.

    Attributes:
        BEGINNING: a stage ends before the module.
        END: a stage ends after it.
    """

    BEGINNING = 1
    END = 2


@contextlib.contextmanager
def _marked(module: Module, spec: dict[str, SplitPoint]) -> Iterator[None]:
    """A block in which the calls of submodules are marked."""
    marked = []
    try:
        for path, point in spec.items():
            target = module
            atoms = path.split(".")
            for i, atom in enumerate(atoms):
                if i < len(atoms) - 1 and not hasattr(target, atom):
                    raise AttributeError(f"Specified target {path} referenced nonexistent module "
                                         f"{'.'.join(atoms[:i + 1])}")
                target = getattr(target, atom)
            if not isinstance(point, SplitPoint):
                raise ValueError("Unknown split point type.")
            target.forward = _with_mark(target.forward, point)
            marked.append(target)
        yield
    finally:
        for target in marked:
            target.__dict__.pop("forward", None)


def _with_mark(forward: Callable[..., Any], point: SplitPoint) -> Callable[..., Any]:
    def before(*args: Any, **kwargs: Any) -> Any:
        pipe_split()
        return forward(*args, **kwargs)

    def after(*args: Any, **kwargs: Any) -> Any:
        result = forward(*args, **kwargs)
        pipe_split()
        return result

    return before if point is SplitPoint.BEGINNING else after


def pipeline(module: Module, mb_args: tuple[Any, ...], mb_kwargs: dict[str, Any] | None = None,
             split_spec: dict[str, SplitPoint] | None = None,
             split_policy: Callable[[Any], Any] | None = None) -> Pipe:
    """Divide a module into the stages of a pipeline.

    Args:
        module: the module; `pipe_split()` in its code marks where stages end.
        mb_args, mb_kwargs: arguments like those of a microbatch.
        split_spec: paths of submodules, and whether a stage ends before or after them.
        split_policy: instead: takes the exported graph module, and returns it with marks.

    Raises:
        ValueError: there are both a specification and a policy.
        AttributeError: a submodule does not exist.
        RuntimeError: the module cannot be exported.

    >>> import flambeau as torch
    >>> from flambeau.distributed.pipelining import SplitPoint, pipeline
    >>> net = torch.nn.Sequential(torch.nn.Linear(2, 3), torch.nn.ReLU(), torch.nn.Linear(3, 1))
    >>> pipe = pipeline(net, (torch.ones(4, 2),), split_spec={"1": SplitPoint.END})
    >>> [list(pipe.get_stage_module(i).state_dict()) for i in range(pipe.num_stages)]
    [['0.weight', '0.bias'], ['2.weight', '2.bias']]
    """
    if split_spec is not None and split_policy is not None:
        raise ValueError("Cannot specify both `split_spec` and `split_policy`. Please use only one of them.")
    with _marked(module, split_spec or {}):
        return Pipe.from_tracing(module, mb_args, mb_kwargs, split_policy)


class Pipe(Module):
    """A module divided into stages.

    Calling it computes all stages in this process.

    Attributes:
        split_gm: a graph module that calls the stages, `submod_pp_0` and so on.
        num_stages: their number.
        replicated_params: parameters that several stages use: stage -> path, each with its own copy.
    """

    split_gm: Any

    def __init__(self, split_gm: Any, num_stages: int, has_loss_and_backward: bool = False,
                 loss_spec: Any = None) -> None:
        super().__init__()
        self.split_gm, self.num_stages = split_gm, num_stages
        self.has_loss_and_backward, self.loss_spec = has_loss_and_backward, loss_spec
        users: dict[Parameter, dict[str, str]] = {}
        for name, stage in split_gm.named_children():
            for path, parameter in stage.named_parameters():
                users.setdefault(parameter, {})[name] = path
        self.replicated_params = [each for each in users.values() if len(each) > 1]
        for each in self.replicated_params:
            for name, path in list(each.items())[1:]:
                prefix, _, last = path.rpartition(".")
                owner = getattr(split_gm, name).get_submodule(prefix)
                setattr(owner, last, copy.deepcopy(getattr(owner, last)))

    @staticmethod
    def from_tracing(mod: Module, example_args: tuple[Any, ...], example_kwargs: dict[str, Any] | None = None,
                     split_policy: Callable[[Any], Any] | None = None) -> Pipe:
        """Export a module, and divide it at the marks.

        Args:
            mod: the module.
            example_args, example_kwargs: arguments like those of a microbatch.
            split_policy: takes the exported graph module, and returns it with marks.

        Raises:
            RuntimeError: the module cannot be exported.
        """
        from ...export import export
        from ...fx.purity import _side_effectful_functions

        _side_effectful_functions.add(_mark())
        try:
            program = export(mod, example_args, example_kwargs)
        except Exception as error:
            raise RuntimeError(
                "It seems that we cannot capture your model as a full graph. Typical reasons include graph breaks, "
                "data/shape-dependent control flow, or missing meta kernels for custom operators. You can use our "
                "manual pipeline interfaces, or try to fix the graph breaks, see "
                "https://pytorch.org/docs/stable/export.html") from error
        traced = program.module()
        if split_policy is not None:
            traced = split_policy(traced)
        return _divide(traced)

    def forward(self, *args: Any, **kwargs: Any) -> tuple[Any, ...]:
        """Compute all stages; the result's tensors, as a tuple."""
        return tuple(tree_leaves(self.split_gm(*tree_leaves((args, kwargs)))))

    def get_stage_module(self, stage_idx: int) -> Module:
        """The module of a stage.

        Args:
            stage_idx: its number.

        Raises:
            ValueError: there is no such stage.
        """
        if not 0 <= stage_idx < self.num_stages:
            raise ValueError(f"Invalid stage index {stage_idx}!")
        module = getattr(self.split_gm, f"{_PREFIX}_{stage_idx}")
        assert isinstance(module, Module)
        return module

    def info(self) -> PipeInfo:
        """What the stages must know of the pipeline."""
        return PipeInfo(self.split_gm.graph, self.num_stages, self.has_loss_and_backward)

    def build_stage(self, stage_index: int, device: Any, group: ProcessGroup | None = None) -> _PipelineStage:
        """A stage that schedules run.

        Args:
            stage_index: its number.
            device: where it computes.
            group: the processes of the pipeline; all if None.
        """
        return _PipelineStage(self.get_stage_module(stage_index), stage_index, self.info(), device, group)

    def print_readable(self) -> None:
        """Print the code of the graph and of all stages."""
        self.split_gm.print_readable()

    def __repr__(self) -> str:
        return repr(self.split_gm)

    __str__ = __repr__


def _stages_of(traced: Any) -> list[list[Any]]:
    """The nodes that compute, divided at the marks; stages without such nodes are left out."""
    mark, stages = _mark(), [[]]  # type: tuple[Any, list[list[Any]]]
    for node in traced.graph.nodes:
        if node.op == "call_function" and node.target is mark:
            stages.append([])
        elif node.op in ("call_function", "call_method") or (node.op == "call_module" and node.target != "_guards_fn"):
            stages[-1].append(node)
    return [stage for stage in stages if stage] or [[]]


def _divide(traced: Any) -> Pipe:
    """The pipe of a graph module: a graph module for each stage, and one that calls them."""
    from ...fx.graph import Graph
    from ...fx.graph_module import GraphModule

    stages = _stages_of(traced)
    stage_of = {node: i for i, stage in enumerate(stages) for node in stage}
    final = next(node for node in traced.graph.nodes if node.op == "output")
    results, placeholders = list(_nodes(final.args[0])), [n for n in traced.graph.nodes if n.op == "placeholder"]
    last = len(stages) - 1
    used_later = {node: any(stage_of.get(user, last if user is final else i) > i for user in node.users)
                  for node, i in stage_of.items()}
    root, outer = Module(), Graph()
    value: dict[Any, Any] = {node: outer.placeholder(node.target) for node in placeholders}
    for i, stage in enumerate(stages):
        inner, own = Graph(), {}  # type: tuple[Any, dict[Any, Any]]
        wanted = dict.fromkeys(arg for node in stage for arg in node.all_input_nodes)
        if i == last:
            wanted |= dict.fromkeys(results)
        inputs = [node for node in wanted if node.op != "get_attr" and stage_of.get(node) != i]
        for node in inputs:
            own[node] = inner.placeholder(node.name)
            own[node].meta = dict(node.meta)
        for node in traced.graph.nodes:
            if node.op == "get_attr" and node in wanted:
                own[node] = inner.node_copy(node)
        for node in stage:
            own[node] = inner.node_copy(node, own.__getitem__)
        leaving = [node for node in stage if used_later[node]]
        if i == last:
            _return(inner, traced, [own[node] if node is not None else None for node in _leaves(final.args[0])])
        else:
            inner.output(own[leaving[0]] if len(leaving) == 1 else tuple(own[node] for node in leaving))
        name = f"{_PREFIX}_{i}"
        root.add_module(name, GraphModule(traced, inner, name))
        call = outer.call_module(name, tuple(value[node] for node in inputs))
        if i == last:
            outer.output(call)
        elif len(leaving) == 1:
            value[leaving[0]] = call
        else:
            for k, node in enumerate(leaving):
                value[node] = outer.call_function(operator.getitem, (call, k))
    return Pipe(GraphModule(root, outer, "Pipe"), len(stages))


def _leaves(output: Any) -> list[Any]:
    return tree_leaves(output) if isinstance(output, (tuple, list, dict)) else [output]


def _nodes(output: Any) -> Iterator[Any]:
    return (each for each in _leaves(output) if each is not None)


def _return(graph: Any, traced: Any, results: list[Any]) -> None:
    """End the last stage's graph with the module's result, in its structure."""
    spec = getattr(traced, "_out_spec", None)
    if spec is None or spec.is_leaf():
        graph.output(results[0] if spec is not None else tuple(results))
        return
    graph.output(spec.unflatten(results))

