"""`torch._logging`: what the compiler prints, chosen by `set_logs` or the environment variable `TORCH_LOGS`.

PyTorch's artifacts are stages of its compilers. Each shows the view of `FLAMBEAU_DEBUG` that has the same content
(`runtime/debug_output.py`), on stderr; artifacts of stages that do not exist here show nothing. Components (`dynamo`,
`distributed`) are levels of Python's loggers.
"""

from __future__ import annotations

import functools
import logging
from collections.abc import Callable
from typing import Any

from ...config import module_name
from ...runtime import debug_output
from . import scribe

_VIEWS = debug_output.ARTIFACTS
#: artifacts of stages that do not exist here
_WITHOUT_VIEW = frozenset((
    "annotation", "aot_graphs_effects", "auto_chunker", "autotuning", "benchmarking", "bytecode", "caching",
    "compiled_autograd", "compiled_autograd_verbose", "compute_dependencies", "cudagraph_static_inputs",
    "cudagraphs", "custom_format_test_artifact", "ddp_graphs", "graph_region_expansion", "graph_sizes", "guards",
    "hierarchical_compile", "incremental", "inductor_metrics", "loop_ordering", "loop_tiling",
    "node_runtime_estimation", "not_implemented", "onnx_diagnostics", "overlap", "overlap_scheduling", "perf_hints",
    "side_effects", "sym_node", "trace_bytecode", "trace_call", "trace_shape_events", "trace_source",
    "verbose_guards"))
#: components -> their loggers, after the name of the package
_LOGGERS = {
    "all": "", "torch": "", "async_compile": ".compiler", "cache": ".compiler.cache", "dynamo": ".compiler",
    "fake_tensor": "._subclasses", "aot": ".compiler", "autograd": ".autograd", "inductor": ".ir",
    "dynamic": ".compiler.symbolic", "distributed": ".distributed", "c10d": ".c10d", "ddp": ".nn.parallel",
    "pp": ".distributed.pipelining", "fsdp": ".distributed.fsdp", "dtensor": ".distributed.tensor", "onnx": ".onnx",
    "native_dsl": ".codegen", "export": ".export"}
_LEVELS = (logging.CRITICAL, logging.ERROR, logging.WARNING, logging.INFO, logging.DEBUG, logging.NOTSET)


_levels_set: list[str] = []  # loggers whose level was set


def set_logs(*, all: int | None = None, dynamo: int | None = None, aot: int | None = None,
             autograd: int | None = None, dynamic: int | None = None, inductor: int | None = None,
             distributed: int | None = None, c10d: int | None = None, ddp: int | None = None, fsdp: int | None = None,
             dtensor: int | None = None, onnx: int | None = None, bytecode: bool = False, aot_graphs: bool = False,
             aot_joint_graph: bool = False, ddp_graphs: bool = False, graph: bool = False, graph_code: bool = False,
             graph_code_verbose: bool = False, graph_breaks: bool = False, side_effects: bool = False,
             graph_sizes: bool = False, guards: bool = False, recompiles: bool = False,
             recompiles_verbose: bool = False, trace_source: bool = False, trace_call: bool = False,
             trace_bytecode: bool = False, output_code: bool = False, kernel_code: bool = False,
             schedule: bool = False, perf_hints: bool = False, pre_grad_graphs: bool = False,
             post_grad_graphs: bool = False, ir_pre_fusion: bool = False, ir_post_fusion: bool = False,
             onnx_diagnostics: bool = False, fusion: bool = False, overlap: bool = False, export: int | None = None,
             modules: dict[str, int | bool] | None = None, cudagraphs: bool = False, sym_node: bool = False,
             compiled_autograd: bool = False, compiled_autograd_verbose: bool = False,
             cudagraph_static_inputs: bool = False, benchmarking: bool = False, autotuning: bool = False,
             incremental: bool = False, graph_region_expansion: bool = False, inductor_metrics: bool = False,
             hierarchical_compile: bool = False, compute_dependencies: bool = False, caching: bool = False) -> None:
    """Choose what is logged from now on, in place of what was chosen before.

    `TORCH_LOGS`, if it is set, takes precedence, with PyTorch's warning.

    Args:
        modules: levels of loggers by their full name, or artifacts by name.
        all, dynamo, aot, autograd, dynamic, inductor, distributed, c10d, ddp, fsdp, dtensor, onnx, export: levels of
            `logging` for the loggers of a component.
        recompiles, recompiles_verbose: why a call is traced although there are programs.
        graph_breaks: where a function is divided, and why.
        graph, graph_code, graph_code_verbose, aot_graphs, aot_joint_graph, pre_grad_graphs, post_grad_graphs,
            ir_pre_fusion: the graph of each compiled function, as traced.
        output_code, kernel_code, schedule, fusion, ir_post_fusion: its kernels.
        bytecode, ddp_graphs, guards (see `compile.explain`), side_effects, graph_sizes, trace_source, trace_call,
            trace_bytecode, perf_hints, onnx_diagnostics, overlap, cudagraphs, sym_node, compiled_autograd,
            compiled_autograd_verbose, cudagraph_static_inputs, benchmarking, autotuning, incremental,
            graph_region_expansion, inductor_metrics, hierarchical_compile, compute_dependencies, caching: accepted;
            these stages do not exist.

    Raises:
        ValueError: an unknown name or level.

    Source: https://docs.pytorch.org/docs/2.13/generated/torch._logging.set_logs.html

    >>> import flambeau as torch
    >>> torch._logging.set_logs(recompiles=True)
    >>> torch._logging.set_logs()
    """
    chosen = {name: value for name, value in locals().items() if name != "modules" and value not in (None, False)}
    chosen.update(modules or {})
    if debug_output.torch_logs():
        logging.getLogger(module_name).warning("Using TORCH_LOGS environment variable for log settings, ignoring call "
                                               "to set_logs")
        return
    views: set[str] = set()
    levels: dict[str, int] = {}
    for name, value in chosen.items():
        if name in _VIEWS or name in _WITHOUT_VIEW:
            if not isinstance(value, bool):
                raise ValueError(f"Expected bool to enable artifact {name}, received {value}")
            views.update(_VIEWS.get(name, ()) if value else ())
        elif name in _LOGGERS or name.partition(".")[0] in (module_name, "torch"):
            if isinstance(value, bool) or value not in _LEVELS:
                raise ValueError(f"Unrecognized log level for log {name}: {value}, valid level values are: "
                                 f"{','.join(map(str, _LEVELS))}")
            levels[f"{module_name}{_LOGGERS[name]}" if name in _LOGGERS else name] = value
        else:
            raise ValueError(f"Unrecognized log or artifact name passed to set_logs: {name}")
    for logger in _levels_set:
        logging.getLogger(logger).setLevel(logging.NOTSET)
    _levels_set[:] = levels
    for logger, level in levels.items():
        logging.getLogger(logger).setLevel(level)
    debug_output.enable(views)


def getArtifactLogger(module_qname: str, artifact_name: str) -> logging.Logger:
    """Return the logger of an artifact of a module, below the module's own.

    Raises:
        ValueError: there is no such artifact.

    >>> import flambeau as torch
    >>> torch._logging.getArtifactLogger("torch._dynamo", "graph_breaks").name
    'torch._dynamo.__graph_breaks'
    """
    if artifact_name not in _VIEWS and artifact_name not in _WITHOUT_VIEW:
        raise ValueError(f"Artifact name: {artifact_name} not registered, please call "
                         f"register_artifact({artifact_name}) in torch._logging.registrations.")
    return logging.getLogger(f"{module_qname}.__{artifact_name}")


@functools.cache
def warning_once(logger_obj: logging.Logger, *args: Any, **kwargs: Any) -> None:
    """Log a warning the first time that it is called with these arguments.

    >>> import logging
    >>> import flambeau as torch
    >>> torch._logging.warning_once(logging.getLogger("docs"), "shown once")
    """
    logger_obj.warning(*args, **kwargs)


def trace_structured(name: str, metadata_fn: Callable[[], Any] = dict, *, payload_fn: Callable[[], Any] = lambda: None,
                     **options: Any) -> None:
    """Do nothing: no structured trace is written here (PyTorch writes one if `TORCH_TRACE` is set).

    >>> import flambeau as torch
    >>> torch._logging.trace_structured("artifact", payload_fn=lambda: "text")
    """


def dtrace_structured(name: str, metadata_fn: Callable[[], Any] = dict, *, payload_fn: Callable[[], Any] = lambda: None,
                      **options: Any) -> None:
    """Do nothing, as `trace_structured`.

    >>> import flambeau as torch
    >>> torch._logging.dtrace_structured("artifact")
    """


def get_structured_logging_overhead() -> float | None:
    """Return the seconds spent on structured traces: None, for none is written.

    >>> import flambeau as torch
    >>> torch._logging.get_structured_logging_overhead()
    """
    return None


class LazyString:
    """A text that is made when it is shown.

    >>> import flambeau as torch
    >>> str(torch._logging.LazyString("{} + {}".format, 1, 2))
    '1 + 2'
    """

    def __init__(self, func: Callable[..., str], *args: Any, **kwargs: Any) -> None:
        self.func, self.args, self.kwargs = func, args, kwargs

    def __str__(self) -> str:
        return self.func(*self.args, **self.kwargs)


__all__ = ["LazyString", "dtrace_structured", "getArtifactLogger", "get_structured_logging_overhead", "scribe",
           "set_logs", "trace_structured", "warning_once"]
