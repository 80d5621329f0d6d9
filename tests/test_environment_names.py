"""Names for devices, extensions and TorchScript: they answer, or refuse as PyTorch's CPU build does."""

from __future__ import annotations

import importlib

import pytest

import flambeau

EVENT = "Event('cpu', enable_timing=True)"
NAMES = ("accelerator.memory.empty_cache()", "accelerator.graphs.Graph()", "accelerator.Graph.pool",
         "Event('cpu').elapsed_time(Event('cpu'))", f"{EVENT}.elapsed_time({EVENT})",
         "Event('cpu').ipc_handle()", "Event.from_ipc_handle('cpu', b'')", "Stream('cpu').native_handle",
         "Stream('cpu').is_capturing()", "UntypedStorage(4).mps()", "classes.foo.Bar",
         "classes.loaded_libraries", "wait(fork(int, 3))", "thread_safe_generator()",
         "setattr(finfo(float32), 'min', 1)", "setattr(iinfo(int8), 'foo', 1)", "finfo(float32) == finfo(float32)",
         "ScriptMethod.__name__", "_C._dispatch_keys(ones(2))", "_C._dispatch_keys(ones(2, device='meta'))",
         "_C._dispatch_keys(ones(2).to_sparse())", "_C._dispatch_keys(ones(2, dtype=cfloat).conj())",
         "_C._dispatch_key_set(_neg_view(ones(2)))", "_C._dispatch_tls_local_include_set()",
         "_C._dispatch_tls_is_dispatch_key_excluded(DispatchKey.AutocastCPU)",
         "_C._dispatch_isTensorSubclassLike(ones(1))", "_C._dispatch_has_kernel('aten::add.Tensor')",
         "_C._dispatch_find_schema_or_throw('aten::addx', 'Tensor')", "_C._infer_size(Size((2, 1)), Size((3,)))",
         "_C._infer_size((2, 1), Size((3,)))", "_C.parse_schema('foo::bar(Tensor x, int y=1) -> Tensor')",
         "_C._dispatch_call_boxed(_C._dispatch_find_schema_or_throw('aten::mul', 'Tensor'), ones(2), ones(2))",
         "_C._jit_get_schemas_for_operator('aten::relu')", "_C._functorch._is_vmap_fallback_enabled()",
         "bfloat16.abbr", "_C._WeakTensorRef(ones(1)).expired()",
         "DispatchKey.CPU", "int(DispatchKey.AutogradMeta)", "str(Tag.core)", "int(Tag.view_copy)",
         "backends.cuda.preferred_linalg_library()", "backends.cuda.preferred_linalg_library('magma')",
         "backends.cuda.preferred_linalg_library('x')", "backends.cuda.preferred_linalg_library(3)",
         "backends.cuda.preferred_blas_library()", "backends.cuda.preferred_blas_library('cublaslt')",
         "backends.cuda.preferred_rocm_fa_library(3)", "backends.cuda.blas_workspace_size()",
         "backends.cuda.blas_workspace_size(1, 'ck')", "backends.cuda.cublaslt_workspace_size(1)",
         "backends.cuda.cufft_plan_cache[0]", "backends.cuda.cufft_plan_cache.size",
         "backends.cuda.cuFFTPlanCache(0).size", "backends.cuda.cuFFTPlanCache(0).clear()",
         "setattr(backends.cuda.cuFFTPlanCache(0), 'size', 1)", "setattr(backends.cuda.cufft_plan_cache, 'size', 1)",
         "backends.cuda.can_use_flash_attention(backends.cuda.SDPAParams(*3 * [ones(1)], None, 0, True, True))",
         "backends.cuda.is_ck_sdpa_available()", "backends.cuda.fp16_bf16_reduction_math_sdp_allowed()",
         "backends.mps.get_name()", "backends.mps.is_macos_or_newer(13, 0)",
         "isinstance(UntypedStorage(4), QUInt8Storage)", "nn.functional.assert_int_or_pair([1], 'a', 'not {}')",
         "signal.windows.windows.hann(3)",
         "nn.Buffer.register_hook", "nn.functional.boolean_dispatch",
         "sparse.to_sparse_semi_structured(ones(4, 4))", "monitor.STAT_EVENT", "monitor.MEAN",
         "serialization.storage_to_tensor_type(ones(1).untyped_storage())",
         "export.AdditionalInputs().verify(export.export(nn.ReLU(), (ones(1),)))",
         *(f"func.rearrange(arange(6).reshape(2, 3), {pattern!r})" for pattern in (
             "a b -> b a", "a b -> b", "a ... -> ... a", "a b", "a a -> a", "a b c -> c b a", "a (b c -> a", "a 2 -> a",
             "a b) -> a", "a _b -> a", "a . -> a", "a b -> a ...", "a b -> b 1 a", "a (...) -> a ...", "a b* -> a",
             "((a) b) -> a b")),
         "func.rearrange([ones(2), zeros(2)], 'a b -> b a')", "func.rearrange(ones(2), 'a -> a', c=2)",
         "func.rearrange(ones(2), 'a -> a', a=2.5)", "func.debug_unwrap(ones(2))",
         "return_types.max((1,))", "return_types.max(1)", "return_types.max((1, 2))",
         "enable_grad(orig_func=abs)(-1)", "[d.abbr for d in (int8, bool, bfloat16, complex32, float8_e5m2, uint3)]")


def outcome(module, source):
    try:
        value = eval(source, dict.fromkeys(("__builtins__",), __builtins__), NamesOf(module))
    except Exception as error:
        return type(error).__name__, str(error)
    return repr(value) if not callable(value) else "callable"


class NamesOf(dict):
    """The names of a module, as the locals of an expression."""

    def __init__(self, module):
        super().__init__()
        self.module = module

    def __missing__(self, name):
        if name in ("setattr", "int", "str", "abs", "isinstance"):
            raise KeyError(name)
        return getattr(self.module, name)


@pytest.mark.parity
@pytest.mark.parametrize("source", NAMES)
def test_answers_and_refusals_are_those_of_pytorch(source):
    torch = pytest.importorskip("torch")
    mine, theirs = outcome(flambeau, source), outcome(torch, source)
    assert str(mine).replace("flambeau.", "torch.") == str(theirs)


@pytest.mark.parity
def test_dispatch_keys_and_tags_have_the_numbers_of_pytorch():
    torch = pytest.importorskip("torch")
    for name in ("DispatchKey", "Tag"):
        mine, theirs = ({k: int(v) for k, v in getattr(m, name).__members__.items()} for m in (flambeau, torch))
        assert mine == theirs


@pytest.mark.parametrize("member", ["schema", "inlined_graph", "save_to_buffer()", "graph_for()"])
def test_what_needs_torchscript_is_refused(member):
    function = flambeau.jit.script(abs)
    assert function.qualified_name == "__torch__.abs"
    with pytest.raises(NotImplementedError, match="has no TorchScript"):
        eval(f"function.{member}", {"function": function})


def test_modules_of_the_accelerator_are_found():
    assert importlib.import_module("flambeau.alias").flambeau_module("torch.accelerator.memory") is \
        flambeau.accelerator.memory


def test_dimensions_are_split_and_joined():
    x = flambeau.arange(24).reshape(2, 3, 4)
    joined = flambeau.func.rearrange(x, "a b (c d) -> (d a) (b c)", c=2)
    assert joined.tolist() == x.reshape(2, 3, 2, 2).permute(3, 0, 1, 2).reshape(4, 6).tolist()
    assert flambeau.func.rearrange(x, "(a z) ... -> z (a ...)", z=1).shape == (1, 24)
    with pytest.raises(ValueError, match="can't divide axis of length 4 in chunks"):
        flambeau.func.rearrange(x, "a b (c d) -> a b c d", c=3)


def test_a_batched_tensor_is_unwrapped():
    seen = []

    def function(x):
        seen.extend(flambeau.func.debug_unwrap(x, recurse=recurse).shape for recurse in (True, False))
        return x.sum()

    flambeau.vmap(flambeau.vmap(function))(flambeau.ones(2, 3, 4))
    assert seen == [(2, 3, 4), (3, 4)]


@pytest.mark.filterwarnings("ignore:Sparse")
@pytest.mark.parametrize("make", [lambda x: x.to_sparse(), lambda x: x.to_sparse_csr(), lambda x: x.to_sparse_csc()])
def test_sparse_tensors_are_reduced_to_their_parts(make):
    from flambeau.multiprocessing import reductions

    x = make(flambeau.eye(3))
    rebuild, arguments = reductions.reduce_sparse_tensor(x)
    again = rebuild(*arguments)
    assert again.layout is x.layout
    assert again.to_dense().tolist() == flambeau.eye(3).tolist()
    meta = reductions.rebuild_meta_tensor(flambeau.Tensor, (2, 3), (3, 1), 0, flambeau.float64, 48, True)
    assert (meta.device.type, meta.shape, meta.requires_grad) == ("meta", (2, 3), True)


def test_compilers_are_recognized():
    extension = importlib.import_module("flambeau.utils.cpp_extension")
    assert not extension.check_compiler_ok_for_platform("no such compiler")
    assert not extension.check_compiler_is_gcc("no such compiler")
    assert extension.get_default_build_root().endswith("torch_extensions")
    with pytest.raises(NotImplementedError, match="has no C"):
        extension.BuildExtension.with_options()
