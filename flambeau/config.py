"""The module that dtypes, shapes, classes and errors name as theirs: flambeau's, or under the `torch` alias PyTorch's.

`repr(torch.nn.Linear)` is `<class 'torch.nn.modules.linear.Linear'>` while the alias is installed. In general
`flambeau.x.y` becomes `torch.x.y`; a table lists the modules that PyTorch calls otherwise. `module_of` is what code of
this package asks where a class comes from: its answer does not depend on the alias.
"""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType
from typing import Any

_PACKAGE = __name__.partition(".")[0]

# The prefix of `flambeau.float32`; the `torch` alias sets it to "torch".
module_name = _PACKAGE

# What processes that do not inherit this process's modules call first; set by the `torch` alias.
prepare_child: Callable[[], None] | None = None

#: module, or module and class, in flambeau -> module in PyTorch, where they differ
IN_PYTORCH = {
    **dict.fromkeys((f"_tensor.creation.{name}" for name in (
        "distributions", "generators", "random", "random_fills")), "_C"),
    "_tensor.creation.sobol": "quasirandom",
    "_tensor.dispatch.batched_tensor": "_C._functorch", "_tensor.custom_functions.function": "autograd.function",
    "_tensor.custom_functions.node": "autograd.function", "_tensor.dispatch.dual_tensors": "autograd.forward_ad",
    "_tensor.linalg.decompositions": "_C", "_tensor.overriding.protocol": "_C", "_tensor.parameter": "nn.parameter",
    "_tensor.memory.pickling": "_utils", "_tensor.memory.reductions": "multiprocessing.reductions",
    "_tensor.return_types": "return_types",
    "ops.schemas.Argument": "", "ops.schemas.FunctionSchema": "", "testing.file_check": "",
    "accelerators.accelerator": "accelerator", "accelerators.cpu": "cpu", "accelerators.mtia": "mtia",
    "autograd.kineto_events": "_C._autograd", "autograd.lobpcg": "_lobpcg",
    "autograd.profiler_util.DeviceType": "_C._autograd",
    **dict.fromkeys(("c10d.stores.hash_store", "c10d.stores.file_store"), "_C._distributed_c10d"),
    **dict.fromkeys((f"c10d.{part}" for part in (
        "gloo.process_group", "mpi", "options", "process_group", "reduce_op", "stores.prefix_store", "stores.store",
        "stores.tcp_store", "work", "world")), "distributed.distributed_c10d"),
    "c10d.process_group_wrapper": "_C._distributed_c10d",
    "c10d.process_group.BackendType": "_C._distributed_c10d.ProcessGroup",
    "c10d.reduce_op.RedOpType": "_C._distributed_c10d.ReduceOp",
    "compiler.module": "_dynamo.eval_frame",
    **dict.fromkeys((f"distributions.constraints.{part}" for part in ("arrays", "base", "composed", "numbers")),
                    "distributions.constraints"),
    **dict.fromkeys((f"distributions.transforms.{part}" for part in
                     ("joined", "multivariate", "transform", "univariate")), "distributions.transforms"),
    **dict.fromkeys((f"distributed.{part}" for part in (
        "backends", "coalescing", "collective_checks", "collectives", "groups.backends", "groups.making",
        "groups.queries", "object_collectives", "point_to_point")), "distributed.distributed_c10d"),
    "engine.anomaly_mode": "autograd.anomaly_mode", "engine.api": "autograd.graph",
    "engine.grad_mode": "autograd.grad_mode", "engine.nodes.hooks": "utils.hooks",
    "engine.nodes.node": "autograd.graph",
    "engine.policies": "autograd.grad_mode", "engine.saved.saved_tensors": "_C._autograd",
    "engine.saved.version_counters": "autograd.grad_mode",
    "environment.dispatch_keys": "_C", "environment.dispatch_keys.DispatchKeySet": "",
    "environment.profiler_extension.CapturedTraceback": "utils._traceback",
    "environment.hub": "hub", "environment.monitor": "_C._monitor",
    "environment.monitor.TensorboardEventHandler": "monitor", "environment.other_backends": "",
    "environment.script_types": "",
    "environment.shared_functions": "_utils", "runtime.exception_wrapper": "_utils",
    "export.decomposition": "export.decomp_utils", "fx.code.generated_code": "fx.graph_module",
    "fx.code.namespace": "fx.graph", "fx.code.stack_traces": "fx.graph", "fx.tracing.patching": "fx._symbolic_trace",
    "jit.ScriptWarning": "jit._script", "jit.TracerWarning": "jit._trace", "jit.TracingCheckError": "jit._trace",
    "nn.factory_keywords": "nn", "nn.modules.base.hooks.BackwardHook": "utils.hooks",
    "nn.modules.base.state_dict": "nn.modules.module",
    "nn.modules.layers.multihead_attention": "nn.modules.activation",
    "nn.modules.layers.parameter_containers": "nn.modules.container", "nn.modules.layers.rnn_cells": "nn.modules.rnn",
    "nn.modules.layers.transformer_decoder": "nn.modules.transformer",
    "nn.modules.layers.transformer_encoder": "nn.modules.transformer",
    "nn.modules.layers.unpooling": "nn.modules.pooling",
    "onnx.OperatorExportTypes": "_C._onnx", "onnx.TensorProtoDataType": "_C._onnx", "onnx.TrainingMode": "_C._onnx",
    "onnx.errors.OnnxExporterError": "onnx", "onnx.program": "onnx",
    "ops.overloads": "_ops", "optim._adafactor": "optim", "optim._muon": "optim",
    "package.PackageExporter": "package.package_exporter", "package.PackageImporter": "package.package_importer",
    "profiler.ProfilerAction": "profiler.profiler", "profiler.ProfilerActivity": "_C._profiler",
    "profiler.profile": "profiler.profiler",
    **dict.fromkeys((f"serialization.{part}" for part in ("legacy", "names", "options", "safe_globals")),
                    "serialization"),
    "runtime.futures": "futures", "sparse.checks": "sparse", "sparse.legacy": "sparse", "trees": "utils._pytree",
    "utils.benchmark.compare": "utils.benchmark.utils.compare",
    **dict.fromkeys((f"utils.benchmark.fuzzer.{name}" for name in (
        "FuzzedParameter", "FuzzedTensor", "Fuzzer", "ParameterAlias")), "utils.benchmark.utils.fuzzer"),
    "utils.benchmark.fuzzer.FuzzedSparseTensor": "utils.benchmark.utils.sparse_fuzzer",
    "utils.benchmark.measurement": "utils.benchmark.utils.common",
    "utils.benchmark.timer": "utils.benchmark.utils.timer",
    "utils.data.datapipes.iter.splitting": "utils.data.datapipes.iter.combining",
    "utils.data.datapipes.iterator_hooks": "utils.data.datapipes._hook_iterator",
    "utils.data.iterators": "utils.data.dataloader", "utils.pytrees.paths": "utils._pytree",
    "utils.pytrees.registration": "utils._pytree", "utils.pytrees.serialization": "utils._pytree",
    "utils.checkpointing.recomputation": "utils.checkpoint", "utils.checkpointing.selective": "utils.checkpoint",
}

#: the classes that have PyTorch's module now -> their module in flambeau
_renamed: dict[type, str] = {}
#: classes that are not attributes of a module
_made: list[type] = []
_as_pytorch = False
_NAMES_OF_MODULE = vars(ModuleType)["__dict__"]


def module_of(cls: type) -> str:
    """The name of the module in which a class is defined, whether or not the `torch` alias is installed."""
    return _renamed.get(cls) or cls.__module__


def name_in_pytorch(module: str, qualified_name: str = "") -> str:
    """PyTorch's name of the module with a class or function of flambeau.

    Args:
        module: name of flambeau's module.
        qualified_name: of the class or function.

    >>> from flambeau.config import name_in_pytorch
    >>> name_in_pytorch("flambeau.nn.modules.linear"), name_in_pytorch("flambeau._tensor.parameter", "Parameter")
    ('torch.nn.modules.linear', 'torch.nn.parameter')
    """
    place = module[len(_PACKAGE) + 1:]
    place = IN_PYTORCH.get(f"{place}.{qualified_name}", IN_PYTORCH.get(place, place))
    return f"torch.{place}" if place else "torch"


def made(cls: type) -> type:
    """Note a class that is made at run time, so that it, too, gets PyTorch's name while others have it."""
    _made.append(cls)
    if _as_pytorch:
        _rename(cls)
    return cls


def name_as_pytorch(*modules: ModuleType) -> None:
    """From now on, classes have the names of PyTorch's modules: those in these modules, and those made at run time."""
    global _as_pytorch
    if not _as_pytorch:
        _as_pytorch = True
        for cls in _made:
            _rename(cls)
    for module in modules:
        _rename_all(module)


def name_as_defined() -> None:
    """Give all classes the names of flambeau's modules again."""
    global _as_pytorch
    _as_pytorch = False
    for cls, module in _renamed.items():
        cls.__module__ = module
    _renamed.clear()


def _rename_all(space: Any) -> None:
    # what a module imports on first use is not imported now
    names = _NAMES_OF_MODULE.__get__(space) if isinstance(space, ModuleType) else vars(space)
    for value in list(names.values()):
        if isinstance(value, type) and _is_named_as_defined(value):
            _rename(value)
            _rename_all(value)


def _is_named_as_defined(cls: type) -> bool:
    module = cls.__module__
    return module.__class__ is str and (module == _PACKAGE or module.startswith(f"{_PACKAGE}."))


def _rename(cls: type) -> None:
    _renamed[cls] = module = cls.__module__
    cls.__module__ = name_in_pytorch(module, cls.__qualname__)
