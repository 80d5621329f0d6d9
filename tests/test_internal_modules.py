"""Internal modules of PyTorch that packages import: what their programs print is what PyTorch prints."""

from __future__ import annotations

import importlib
import os
import pathlib
import textwrap
from collections import OrderedDict
from typing import Any

import pytest

import flambeau

PROGRAMS = {
    "captures of backward passes": """
        from {torch}._dynamo import compiled_autograd
        print(compiled_autograd.compiled_autograd_enabled, compiled_autograd.in_compiled_autograd_region)
        with compiled_autograd._disable():
            print(compiled_autograd.active_disable_ctx)
            with compiled_autograd._enable(None, ignore_active_disable_ctx=False):
                x = torch.ones(2, requires_grad=True)
                (x * 2).sum().backward()
        compiled_autograd.reset()
        print(compiled_autograd.active_disable_ctx, x.grad)
    """,
    "graphs as scripted modules": """
        import warnings
        from {torch}._functorch.compilers import ts_compile
        from {torch}._functorch.aot_autograd import aot_function
        from {torch}._functorch.compile_utils import get_aten_target, get_outputs, get_placeholders, strip_overloads
        from {torch}.fx.experimental.proxy_tensor import make_fx
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            print(aot_function(lambda x: x.sin() * x, ts_compile)(torch.ones(3)))
        graph = make_fx(lambda x, y: (x + y, x))(torch.ones(2), torch.ones(2))
        strip_overloads(graph)
        print([str(node.target) for node in graph.graph.nodes], get_placeholders(graph.graph), get_outputs(graph.graph))
        print([get_aten_target(node) for node in graph.graph.nodes if node.op == "call_function"])
    """,
    "process groups of one process": """
        import {torch}.distributed as dist
        from {torch}.testing._internal.distributed.fake_pg import FakeStore
        import warnings
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            from {torch}.testing._internal.distributed.distributed_utils import with_dist, with_fake_comms
        dist.init_process_group("fake", store=FakeStore(), rank=2, world_size=8)
        x = torch.ones(2)
        dist.all_reduce(x)
        gathered = [torch.zeros(2) for _ in range(8)]
        dist.all_gather(gathered, x)
        print(dist.get_rank(), dist.get_world_size(), dist.get_backend(), x, gathered[7])
        dist.destroy_process_group()
        with with_dist(rank=1, world_size=3):
            print(dist.get_rank(), dist.get_world_size())

        @with_fake_comms(rank=4, world_size=5)
        def test(self):
            print(dist.get_rank(), dist.get_world_size())

        test(None)
        print(dist.is_initialized())
    """,
    "operators as formulas of others": """
        for name in "linear addmm conv2d relu layer_norm silu matmul mm".split():
            overload = getattr(torch.ops.aten, name).default
            print(name, overload._can_decompose())
        print(torch.ops.aten.linear.default.decompose(torch.ones(2), torch.ones(1, 2)))
        print(torch.ops.aten.mm.default.decompose(torch.ones(1, 1), torch.ones(1, 1)))
    """,
    "fresh caches": """
        import os
        from {torch}._inductor.utils import clear_on_fresh_inductor_cache, fresh_inductor_cache, timed
        from {torch}._inductor.utils import argsort, ceildiv, is_pointwise_use, is_view, pad_listlike, unique
        from {torch}._inductor.runtime.benchmarking import benchmarker

        @clear_on_fresh_inductor_cache
        class Cache:
            @staticmethod
            def cache_clear():
                print("cleared")

        entries = {}
        with fresh_inductor_cache(entries):
            folder = os.environ["TORCHINDUCTOR_CACHE_DIR"]
            print(os.path.isdir(folder), os.environ["TRITON_CACHE_DIR"] == os.path.join(folder, "triton"))
        print(os.path.exists(folder), entries, "TRITON_CACHE_DIR" in os.environ)
        print(timed(lambda x: x + 1, (torch.ones(2),), times=2, device="cpu") > 0)
        print(argsort([3, 1, 3]), ceildiv(7, 2), pad_listlike([3], 2), list(unique("aba")))
        print(is_view(torch.ops.aten.view.default), is_view(torch.ops.aten.add.Tensor))
        print(benchmarker.benchmark(torch.sin, (torch.ones(3),), {}) > 0, benchmarker.benchmark_cpu(list) > 0)
        try:
            benchmarker.benchmark(list, (), {})
        except ValueError as error:
            print(error)
    """,
    "code of compiled functions": """
        from {torch}._inductor.utils import run_and_get_code, run_fw_bw_and_get_code
        torch.manual_seed(0)
        f = torch.compile(lambda x: x.sin().add_(1))
        result, codes = run_and_get_code(f, torch.zeros(3))
        print(result, len(codes), all(type(code) is str for code in codes))
        x = torch.ones(3)
        result, codes = run_and_get_code(torch.compile(lambda x: x.mul_(2)), x)
        print(result, x)
    """,
    "settings of the exporter": """
        from {torch}._export import config
        import {torch}._export.config as same
        print(config.use_new_tracer_experimental, same is config)
        with config.patch(error_on_lifted_constant_tensors=False):
            print(config.error_on_lifted_constant_tensors)
    """,
    "a profiler that is stopped": """
        with torch.profiler.profile():
            torch.ones(2).sin()
            print(type(torch.autograd._disable_profiler()).__name__, torch.autograd._profiler_enabled())
    """,
    "logging tensor": """
        from {torch}.testing._internal.logging_tensor import LoggingTensor, capture_logs, log_input
        with capture_logs() as logs:
            x = LoggingTensor(torch.tensor([1., 2.]), requires_grad=True)
            log_input("x", x)
            y = (x * 2).sin().sum()
            y.backward()
        print(logs[:4], x, type(x.grad).__name__)
    """,
    "logging mode": """
        from {torch}.testing._internal.logging_tensor import capture_logs_with_logging_tensor_mode
        x = torch.ones(2, 3)
        with capture_logs_with_logging_tensor_mode() as logs:
            y = torch.mm(x, x.t())
            z, i = y.max(0)
            torch.cat([x, x], dim=1)
        print(logs)
    """,
    "two tensors": """
        from {torch}.testing._internal.two_tensor import TwoTensor
        x = TwoTensor(torch.zeros(2), torch.ones(2))
        y = (x + 1).exp().unsqueeze(0)
        print(y, type(y).__name__, y.shape, y.a, y.get_elem_a() is y.a)
        y.add_(1)
        print(y.b, x.__tensor_flatten__())
        w = TwoTensor(torch.zeros(2), torch.ones(2), requires_grad=True)
        (w * 3).sum().backward()
        print(w.grad.a, w.grad.b)
    """,
    "functional modules": """
        import warnings
        from {torch}._functorch.make_functional import make_functional, make_functional_with_buffers
        torch.manual_seed(0)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            f, parameters = make_functional(torch.nn.Linear(2, 2))
            g, weights, buffers = make_functional_with_buffers(torch.nn.BatchNorm1d(2))
        print(f(parameters, torch.ones(2)), len(weights), len(buffers))
    """,
    "small helpers": """
        from {torch}.utils._exposed_in import exposed_in
        from {torch}.utils._functools import cache_method
        from {torch}.utils._thunk import Thunk
        from {torch}.utils._typing_utils import not_none
        from {torch}._dynamo.external_utils import normalize_as_list
        class A:
            @cache_method
            def f(self, x):
                print("computed", x)
                return [x]
        a = A()
        print(a.f(1) is a.f(1), a.f(2), normalize_as_list((1, 2)), normalize_as_list(1))
        print(exposed_in("a.b")(lambda: 1).__module__, Thunk(lambda: 3).force(), not_none(2))
        try:
            not_none(None)
        except TypeError as error:
            print(error)
    """,
    "transforms of another name": """
        from {torch}._functorch.apis import chunk_vmap, grad, vmap
        print(grad(lambda x: x.sin().sum())(torch.zeros(2)), vmap(lambda x: x.sum())(torch.ones(2, 3)))
        print(chunk_vmap(lambda x: x + 1, chunks=2)(torch.zeros(4)))
    """,
}


def _printed(library: str, program: str) -> list[str]:
    lines: list[str] = []
    scope: dict[str, Any] = {"torch": importlib.import_module(library),
                             "print": lambda *args: lines.append(" ".join(map(str, args)))}
    exec(textwrap.dedent(program).replace("{torch}", library), scope)
    return [line.replace("flambeau", "torch") for line in lines]


@pytest.mark.parity
@pytest.mark.parametrize("name", PROGRAMS)
def test_programs_print_what_pytorch_prints(name: str) -> None:
    pytest.importorskip("torch")
    assert _printed("flambeau", PROGRAMS[name]) == _printed("torch", PROGRAMS[name])


def test_backends_run_graphs() -> None:
    import flambeau as torch
    from flambeau.compiler.dynamo.backends import debugging, inductor

    for backend in (debugging.eager, debugging.eager_noexcept, debugging.aot_eager, inductor.inductor):
        f = torch.compile(lambda x: x.sin() * 2, backend=backend)
        x = torch.ones(3, requires_grad=True)
        for _ in range(3):
            x.grad = None
            f(x).sum().backward()
            assert torch.allclose(x.grad, 2 * torch.ones(3).cos())


def test_an_error_of_a_graph_that_must_not_raise() -> None:
    import flambeau as torch
    from flambeau.compiler.dynamo.backends import debugging

    def refuse(*args: Any) -> Any:
        raise ValueError("refused")

    with pytest.raises(torch._dynamo.exc.TorchDynamoException, match="Unexpected exception when running generated"):
        debugging.eager_noexcept(refuse, [])(1)


def test_hints_are_those_of_the_tracer() -> None:
    import flambeau as torch
    from flambeau.compiler.dynamo import decorators

    assert decorators.disable is torch._dynamo.disable
    assert decorators.mark_dynamic is torch._dynamo.mark_dynamic


def test_the_unpickler_of_weights_has_pytorchs_module():
    torch = pytest.importorskip("torch")
    import io
    import pickle

    ours, theirs = (importlib.import_module(f"{name}._weights_only_unpickler") for name in ("flambeau", "torch"))
    data = pickle.dumps({"a": [1, 2.5, "x"], "b": OrderedDict(c=complex(1, 2))}, protocol=2)
    assert ours.load(io.BytesIO(data)) == theirs.load(io.BytesIO(data))
    assert ours.get_globals_in_pkl(io.BytesIO(data)) == theirs.get_globals_in_pkl(io.BytesIO(data))
    assert {"torch.Size", "collections.OrderedDict"} <= set(ours._get_allowed_globals()) & set(
        theirs._get_allowed_globals())
    refused = pickle.dumps(pathlib.Path, protocol=2)
    for module, library in ((ours, flambeau), (theirs, torch)):
        with pytest.raises(pickle.UnpicklingError, match="Path"):
            module.load(io.BytesIO(refused))
        with module._safe_globals([pathlib.Path]):
            assert pathlib.Path in library.serialization.get_safe_globals()
            assert "pathlib.Path" in module._get_user_allowed_globals()
            assert module.load(io.BytesIO(refused)) is pathlib.Path


def test_what_a_companys_builds_replace_has_its_defaults(tmp_path):
    pytest.importorskip("torch")
    ours, theirs = (importlib.import_module(f"{name}._utils_internal") for name in ("flambeau", "torch"))
    for module in (ours, theirs):
        assert module.justknobs_check("pytorch/anything", default=False) is False
        assert module.justknobs_getval_int("pytorch/anything") == 0
        assert module.get_file_path_2("a", "b") == os.path.join("a", "b")
        assert module.get_writable_path(str(tmp_path)) == str(tmp_path)
        assert module.signpost_event("a", "b", {}) is None
        assert os.path.isdir(os.path.join(module.torch_parent, module.__name__.partition(".")[0]))
        with pytest.raises(NotImplementedError, match="you may need to import the 'nowhere' Python module"):
            module.throw_abstract_impl_not_imported_error("a::b", "nowhere", "")


def test_private_names_that_packages_use():
    pytest.importorskip("torch")
    parametrize, parametrizations = (importlib.import_module(f"flambeau.nn.utils.{name}") for name in (
        "parametrize", "parametrizations"))
    layer = parametrizations.weight_norm(flambeau.nn.Linear(2, 2))
    parametrize._cache_enabled += 1  # as bitsandbytes' hooks do
    try:
        assert layer.weight is layer.weight
    finally:
        parametrize._cache_enabled -= 1
        parametrize._cache = {}
    assert layer.weight is not layer.weight
    ours, theirs = (importlib.import_module(f"{name}.nn.modules.module") for name in ("flambeau", "torch"))
    for text in ("a", "a\nb\n c"):
        assert ours._addindent(text, 3) == theirs._addindent(text, 3)
    exceptions = [importlib.import_module(f"{name}._dynamo.exc") for name in ("flambeau", "torch")]
    for each in exceptions:
        assert issubclass(each.TensorifyScalarRestartAnalysis, each.RestartAnalysis)
    assert flambeau._tensor._rebuild_from_type_v2(lambda: flambeau.ones(2), flambeau.Tensor, (), {"mark": 1}).mark == 1
