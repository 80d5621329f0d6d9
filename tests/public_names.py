"""Which public names of PyTorch are missing here or have another signature.

    python -m tests.public_names             # counts by namespace
    python -m tests.public_names -v          # and the names
    python -m tests.public_names torch.nn -v # of the namespaces that start with this

A name is public if it is in a namespace's `__all__` or, without one, defined there and not underscored. Methods and
properties of public classes count where the class itself is here. Namespaces in OUT_OF_SCOPE and classes of
TorchScript's compiler are not counted.
"""

from __future__ import annotations

import argparse
import importlib
import inspect
import pkgutil
import sys
import types
import warnings
from collections.abc import Iterator
from typing import Any

#: namespaces that are left out, and modules without a public name of their own
OUT_OF_SCOPE = (
    "torch.ao", "torch.quantization", "torch.package", "torch.nn.intrinsic", "torch.nn.qat", "torch.nn.quantizable",
    "torch.nn.quantized", "torch.contrib", "torch.bin", "torch.include", "torch.lib", "torch.share", "torch.test",
    "torch.distributed", "torch.backends.xeon", "torch.fx.experimental", "torch.export.experimental",
    "torch.jit.mobile", "torch.utils.bottleneck", "torch.utils.hipify", "torch.utils.jit", "torch.utils.viz",
    "torch.utils.model_dump", "torch.utils.data.datapipes", "torch.utils.benchmark.examples",
    "torch.utils.benchmark.op_fuzzers", "torch.testing._internal", "torch.nn.parallel", "torch.onnx.ops",
    "torch.fx.passes", "torch.utils.serialization", "torch.cuda", "torch.xpu", "torch.mps", "torch.mtia",
    "torch.nativert", "torch.nn.attention.experimental", "torch.compiler.config", "torch.utils.throughput_benchmark",
    "torch.utils.bundled_inputs", "torch.utils.mobile_optimizer", "torch.utils.mkldnn", "torch.utils.cpp_backtrace",
    "torch.sparse.semi_structured", "torch.utils.debug_log", "torch.headeronly",
    "torch.jit.frontend", "torch.jit.annotations", "torch.jit.quantized", "torch.jit.generate_bytecode",
    "torch.jit.unsupported_tensor_ops", "torch.export.pt2_archive", "torch.backends.python_native",
    "torch.nn.cpp", "torch.utils.benchmark.utils.cpp_jit", "torch.utils.benchmark.utils.valgrind_wrapper",
)

#: members of instances, of devices that no program of a CPU has, and of functorch's named dimensions
_OF_INSTANCES = ("name", "value", "hpu", "index")

#: namespace -> names that are in it by accident: imports of the module itself, and parts of docstrings
_BY_ACCIDENT = {
    "torch.fft": ("Tensor",), "torch.linalg": ("common_notes",), "torch.monitor": ("TYPE_CHECKING",),
    "torch.nn.functional": ("Optional", "TYPE_CHECKING", "Tensor", "reproducibility_notes", "sparse_support_notes",
                            "tf32_notes"),
}


def namespaces(package: Any) -> Iterator[str]:
    """Public modules of PyTorch, by name."""
    yield package.__name__
    for found in pkgutil.iter_modules(package.__path__, package.__name__ + "."):
        parts = found.name.split(".")
        if any(part.startswith("_") and part not in ("_pytree", "__future__", "__config__") for part in parts[1:]):
            continue
        if any(found.name == out or found.name.startswith(out + ".") for out in OUT_OF_SCOPE):
            continue
        try:
            module = importlib.import_module(found.name)
        except (ImportError, AttributeError, RuntimeError, OSError):
            continue
        if found.ispkg and hasattr(module, "__path__"):
            yield from namespaces(module)
        else:
            yield found.name


def public(module: Any) -> list[str]:
    """The public names of a module of PyTorch."""
    listed = getattr(module, "__all__", None)
    if listed is not None and module.__name__ != "torch":
        return sorted({name for name in listed if hasattr(module, name)})
    names = []
    for name in dir(module):
        if name.startswith("_"):
            continue
        value = getattr(module, name)
        if isinstance(value, types.ModuleType):
            if not (value.__name__.startswith("torch.") and hasattr(value, "__file__")
                    and value.__name__ == f"{module.__name__}.{name}"):
                continue
            if any(value.__name__ == out or value.__name__.startswith(out + ".") for out in OUT_OF_SCOPE):
                continue
        origin = getattr(value, "__module__", None)
        if isinstance(origin, str) and (isinstance(value, (type, types.FunctionType)) or not callable(value)):
            if not origin.startswith("torch") and not (module.__name__ == "torch" and name in listed):
                continue
            if isinstance(value, (type, types.FunctionType)) and module.__name__ != "torch" and not (
                    origin.startswith((module.__name__, "torch._")) or origin == "torch"):
                continue  # imported from another namespace
        if module.__name__ == "torch" and (name in _IN_TORCH_BY_ACCIDENT or is_compilers(value)):
            continue
        names.append(name)
    return [name for name in names if name not in _BY_ACCIDENT.get(module.__name__, ())]


#: names that `torch` shows of TorchScript's compiler, of quantization, and of Python modules that it imports
_IN_TORCH_BY_ACCIDENT = frozenset("""
    AVG AggregationType CallStack Capsule Code ErrorReport FatalError ExecutionPlan Gradient LockingLogger NoopLogger
    PRIVATE_OPS SUM StaticModule TYPE_CHECKING USE_GLOBAL_DEPS USE_RTLD_GLOBAL_WITH_LIBTORCH classproperty
    choose_qparams_optimized empty_quantized fbgemm_linear_fp16_weight fbgemm_linear_fp16_weight_fp32_activation
    fbgemm_linear_int8_weight fbgemm_linear_int8_weight_fp32_activation fbgemm_linear_quantize_weight
    fbgemm_pack_gemm_matrix_fp16 fbgemm_pack_quantized_matrix fused_moving_avg_obs_fake_quant get_file_path
    import_ir_module import_ir_module_from_buffer merge_type_from_type_comment parse_ir parse_schema
    parse_type_comment prepare_multiprocessing_environment quantized_batch_norm quantized_gru quantized_gru_cell
    quantized_lstm quantized_lstm_cell quantized_max_pool1d quantized_max_pool2d quantized_max_pool3d
    quantized_rnn_relu_cell quantized_rnn_tanh_cell unify_type_list
    profiler_allow_cudagraph_cupti_lazy_reinit_cuda12
""".split())  # noqa: SIM905


def is_compilers(value: Any) -> bool:
    """Whether a value is a class of TorchScript's compiler that `torch` shows."""
    import torch

    return isinstance(value, type) and value.__module__ in ("torch._C", "torch") and not issubclass(
        value, torch.Tensor) and not value.__name__.endswith(("Storage", "Tensor")) and value.__name__ not in (
            "Tensor", "Generator", "Size", "device", "dtype", "layout", "memory_format", "finfo", "iinfo", "Event",
            "Stream", "DispatchKey", "Tag")


def parameters(value: Any) -> list[tuple[str, str, bool]] | None:
    """Names and kinds of a callable's parameters and whether they have defaults; None if it has no signature."""
    try:
        signature = inspect.signature(value)
    except (ValueError, TypeError):
        return None
    return [(each.name, str(each.kind), each.default is not each.empty) for each in signature.parameters.values()]


def accepts(here: list[tuple[str, str, bool]], there: list[tuple[str, str, bool]]) -> bool:
    """Whether parameters here accept whatever those of PyTorch accept (by name and order)."""
    if any("VAR_" in kind for _, kind, _ in (*here, *there)):
        return True
    names = [name for name, _, _ in here]
    positional = [name for name, kind, _ in there if "KEYWORD_ONLY" not in kind]
    return names[:len(positional)] == positional and all(name in names for name, _, _ in there)


def is_pythons(cls: type) -> bool:
    """Whether a class of PyTorch is one that programs use, and no class of TorchScript's compiler."""
    return cls.__module__.startswith("torch") and cls.__module__ != "torch._C" and not cls.__name__.endswith("Tensor")


def own_members(cls: type) -> set[str]:
    """The public members that PyTorch's classes define, without those of Python's and other packages' classes."""
    return {name for each in cls.__mro__ if each.__module__.startswith("torch") and each.__module__ != "torch._C"
            for name in vars(each) if not name.startswith("_")}


def rows() -> Iterator[tuple[str, str, str]]:
    """(namespace, name, "" or "missing" or "signature ...")."""
    import torch

    import flambeau
    from flambeau.alias import flambeau_module

    def ours(name: str) -> Any:
        found = flambeau if name == "torch" else flambeau_module(name)
        if found is None:
            raise AttributeError(f"no module {name}")
        return found

    seen: set[type] = set()
    for namespace in namespaces(torch):
        module = importlib.import_module(namespace)
        try:
            here = ours(namespace)
        except (AttributeError, NotImplementedError, ImportError) as error:
            here, reason = None, f"missing (namespace: {error})"
        for name in public(module):
            if here is None:
                yield namespace, name, reason
                continue
            there = getattr(module, name)
            try:
                mine = getattr(here, name)
            except (AttributeError, NotImplementedError, ImportError):
                yield namespace, name, "missing"
                continue
            theirs, own = (parameters(there), parameters(mine)) if callable(there) else (None, None)
            if theirs is not None and own is not None and not accepts(own, theirs):
                yield namespace, name, f"signature {[p[0] for p in own]} for {[p[0] for p in theirs]}"
            else:
                yield namespace, name, ""
            if isinstance(there, type) and isinstance(mine, type) and there not in seen and is_pythons(there):
                seen.add(there)
                for member in own_members(there) - set(_OF_INSTANCES) - set(getattr(mine, "__annotations__", ())):
                    yield namespace, f"{name}.{member}", "" if hasattr(mine, member) else "missing"


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("prefix", nargs="?", default="torch")
    parser.add_argument("-v", "--verbose", action="store_true")
    options = parser.parse_args(arguments)
    warnings.simplefilter("ignore")
    table: dict[str, list[tuple[str, str]]] = {}
    for namespace, name, problem in rows():
        if namespace.startswith(options.prefix):
            table.setdefault(namespace, []).append((name, problem))
    total = lacking = other = 0
    for namespace, names in sorted(table.items()):
        missing = [name for name, problem in names if problem.startswith("missing")]
        differing = [(name, problem) for name, problem in names if problem.startswith("signature")]
        total, lacking, other = total + len(names), lacking + len(missing), other + len(differing)
        if missing or differing:
            print(f"{namespace}: {len(names)} names, {len(missing)} missing, {len(differing)} with another signature")
        if options.verbose:
            if missing:
                print("   ", " ".join(missing))
            for name, problem in differing:
                print(f"    {name}: {problem}")
    print(f"{total} names, {lacking} missing, {other} with another signature")
    return 0


if __name__ == "__main__":
    sys.exit(main())
