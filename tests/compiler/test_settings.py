"""PyTorch's settings, stances and marks of its compilers, and the exceptions that they cause."""

from __future__ import annotations

import subprocess
import sys
from unittest import mock

import numpy as np
import pytest

import flambeau as torch
from flambeau import codegen
from flambeau.compiler.stance import policy
from flambeau.settings import Settings

needs_jit = pytest.mark.skipif(not codegen.available(), reason="nothing is compiled without llvmlite")
dynamo = torch._dynamo


def replays(f):
    return sum(len(kind.entries) for kind in f._signatures.values())


@needs_jit
def test_force_eager_stance():
    f = torch.compile(lambda x: x * 2 + 1)
    x = torch.ones(3)
    for _ in range(4):
        f(x)
    assert f._call_stub is not None
    with torch.compiler.set_stance("force_eager"):
        assert f._call_stub is None
        assert f(x).tolist() == [3, 3, 3]
        assert f(torch.ones(2)).tolist() == [3, 3]
        assert len(f._signatures) == 1
    for _ in range(2):
        assert f(x).tolist() == [3, 3, 3]
    assert f._call_stub is not None
    assert policy.is_default


@needs_jit
def test_stances_for_new_signatures():
    f = torch.compile(lambda x: x * 2 + 1, dynamic=False)
    for _ in range(3):
        f(torch.ones(3))
    assert replays(f) == 1
    with torch.compiler.set_stance("eager_on_recompile"):
        assert f(torch.ones(2)).tolist() == [3, 3]
        assert f(torch.ones(3)).tolist() == [3, 3, 3]
        assert len(f._signatures) == 1
    with torch.compiler.set_stance("fail_on_recompile"):
        assert f(torch.ones(3)).tolist() == [3, 3, 3]
        with pytest.raises(RuntimeError, match=r"Detected recompile when torch\.compile stance is 'fail_on_recompile'"):
            f(torch.ones(2))
    assert f(torch.ones(2)).tolist() == [3, 3]
    assert len(f._signatures) == 2


def test_a_stance_as_a_decorator_and_as_a_statement():
    seen = []

    @torch.compiler.set_stance("force_eager")
    def inside():
        seen.append(policy.stance)
        return 7

    assert policy.stance == "default"
    assert inside() == 7
    assert seen == ["force_eager"]
    torch.compiler.set_stance("force_eager")
    assert policy.stance == "force_eager"
    torch.compiler.set_stance()
    assert policy.stance == "default"
    with pytest.raises(ZeroDivisionError), torch.compiler.set_stance("force_eager"):
        raise ZeroDivisionError
    assert policy.stance == "default"


def test_unknown_stances():
    with pytest.raises(RuntimeError, match=r"invalid torch\.compile stance 'foo'"):
        torch.compiler.set_stance("foo")
    with pytest.raises(RuntimeError, match="force_backend="):
        torch.compiler.set_stance("default", force_backend="eager")
    assert policy.stance == "default"


@needs_jit
def test_settings_with_effects():
    f = torch.compile(lambda x: x + 1)
    with dynamo.config.patch(disable=True):
        for _ in range(3):
            f(torch.ones(2))
    assert not f._signatures
    with dynamo.config.patch(cache_size_limit=2):
        assert dynamo.config.recompile_limit == 2
        for n in range(1, 5):
            assert f(torch.ones(n)).tolist() == [2] * n
        assert len(f._signatures) == 2
        with dynamo.config.patch("fail_on_recompile_limit_hit", True), pytest.raises(
                dynamo.exc.FailOnRecompileLimitHit, match="2 compiled signatures"):
            f(torch.ones(9))
        whole = torch.compile(lambda x: x + 1, fullgraph=True)
        whole(torch.ones(1))
        whole(torch.ones(2))
        with pytest.raises(dynamo.exc.FailOnRecompileLimitHit):
            whole(torch.ones(3))
    assert dynamo.config.cache_size_limit == dynamo.config.recompile_limit == 8
    f(torch.ones(9))
    assert len(f._signatures) == 3
    with dynamo.config.patch(error_on_recompile=True):
        g = torch.compile(lambda x: x - 1)
        g(torch.ones(2))
        g(torch.ones(2))
        with pytest.raises(dynamo.exc.RecompileError, match="has a new signature"):
            g(torch.ones(3))
    assert vars(policy) == vars(type(policy)())


def test_settings_are_stored_and_unknown_ones_raise():
    config = dynamo.config
    assert config.suppress_errors is False
    with config.patch({"suppress_errors": True, "verbose": True}):
        assert config.suppress_errors
        assert config.verbose
    assert not config.verbose
    with pytest.raises(AttributeError, match=r"torch\._dynamo\.config\.foo does not exist"):
        config.foo
    with pytest.raises(AttributeError, match=r"torch\._dynamo\.config\.foo does not exist"):
        config.foo = 1
    with pytest.raises(AttributeError, match="foo"), config.patch(verbose=True, foo=1):
        raise AssertionError
    assert not config.verbose
    assert "recompile_limit" in dir(config)

    @config.patch(verbose=True)
    def inside():
        return config.verbose

    assert inside()
    assert not config.verbose


def test_settings_in_groups():
    config = torch._inductor.config
    assert config.coordinate_descent_tuning is False
    with config.patch({"triton.cudagraphs": True, "max_autotune": True}):
        assert config.triton.cudagraphs
        assert config.to_dict()["triton.cudagraphs"] is config.max_autotune is True
    assert not config.triton.cudagraphs
    for wrong in ("nonexistent", "triton.nonexistent"):
        with pytest.raises(AttributeError, match=rf"torch\._inductor\.config\.{wrong} does not exist"):
            config.patch({wrong: 1}).__enter__()
    with pytest.raises(AttributeError, match=r"torch\._inductor\.config\.cpp\.nonexistent does not exist"):
        config.cpp.nonexistent = 1
    other = Settings("other", {"a": 1})
    other.load_config({"a": 2})
    assert other.get_config_copy() == {"a": 2}
    assert torch._functorch.config.donated_buffer is True
    assert torch.compiler.config.job_id is None


def test_deprecated_names():
    f = dynamo.optimize("inductor", nopython=True)(lambda x: x + 1)
    assert f(torch.ones(2)).tolist() == [2, 2]
    assert dynamo.optimize_assert("eager")(lambda x: x + 1)(torch.ones(2)).tolist() == [2, 2]
    x = torch.ones(2, 3)
    dynamo.mark_dynamic(x, 0)
    dynamo.maybe_mark_dynamic(x, 0)
    dynamo.mark_static(x)
    dynamo.mark_static_address(x)
    dynamo.reset()
    assert dynamo.OptimizedModule is type(torch.compile(torch.nn.Linear(1, 1)))
    assert {"inductor"} <= {*dynamo.list_backends()} <= {*dynamo.list_backends(None)} - {"eager", "aot_eager"}


@needs_jit
def test_a_graph_break_splits_a_function():
    @torch.compile
    def f(x):
        y = x + 1
        dynamo.graph_break("here")
        return y * 2

    for _ in range(3):
        assert f(torch.ones(2)).tolist() == [4, 4]
    assert replays(f) == 0
    found = dynamo.explain(f.function)(torch.ones(2))
    assert "graph_break(): here" in str(found)
    assert (found.graph_count, found.graph_break_count) == (2, 1)
    with pytest.raises(dynamo.exc.Unsupported, match="cannot be compiled as one graph"):
        torch.compile(f.function, fullgraph=True)(torch.ones(2))

    @dynamo.disallow_in_graph
    def outside(x):
        return x * 3

    assert dynamo.explain(lambda x: outside(x) + 1)(torch.ones(2)).graph_count == 1


def test_backends():
    with pytest.raises(dynamo.exc.InvalidBackend, match=r"Invalid backend: 'foo', see `torch\._dynamo"):
        torch.compile(lambda x: x, backend="foo")
    with pytest.raises(dynamo.exc.InvalidBackend):
        torch.compiler.set_default_backend("foo")
    torch.compiler.set_default_backend("eager")
    try:
        assert torch.compiler.get_default_backend() == "eager"
        assert not torch.compile(lambda x: x).enabled
    finally:
        torch.compiler.set_default_backend(None)
    assert torch.compile(lambda x: x).enabled == codegen.available()


def test_functions_of_numpy():
    @torch.compiler.wrap_numpy
    def f(pair, scale=1):
        return {"sum": (pair[0] + pair[1]) * scale}

    found = f([torch.ones(2), torch.arange(2.0)], scale=np.float32(2))
    assert found["sum"].tolist() == [2, 4]
    assert found["sum"].dtype is torch.float32


def test_no_op_functions():
    assert not torch.compiler.is_dynamo_compiling()
    assert not torch.compiler.is_exporting()
    assert torch.compiler.nested_compile_region(len) is len
    assert torch.compiler.nested_compile_region()(len) is len
    assert torch.compiler.substitute_in_graph(len)(abs) is abs
    with pytest.raises(TypeError, match="expects a function but got"):
        torch.compiler.substitute_in_graph(3)
    with pytest.raises(TypeError, match="expects a function but got"):
        torch.compiler.substitute_in_graph(len)(3)
    f = torch.compile(lambda x: x + 1, options={"guard_filter_fn": torch.compiler.keep_tensor_guards_unsafe})
    assert f(torch.ones(1)).tolist() == [2]
    assert torch.compiler.skip_all_guards_unsafe([1, 2]) == [False, False]
    assert torch.compiler.save_cache_artifacts() is None
    assert torch.compiler.load_cache_artifacts(b"") is None
    with pytest.raises(NotImplementedError, match="not written to files"):
        torch.compiler.load_compiled_function(None)


def test_through_the_torch_alias():
    program = """if 1:
        from flambeau.alias import install
        install()
        import torch
        import torch._dynamo
        import torch._dynamo.config
        import torch._inductor.config as inductor
        from torch._dynamo.exc import Unsupported
        from torch._dynamo import OptimizedModule
        torch._dynamo.config.suppress_errors = True
        inductor.triton.unique_kernel_names = True
        inductor.fx_graph_cache = True
        torch._functorch.config.donated_buffer = False
        assert issubclass(Unsupported, RuntimeError)
        assert isinstance(torch.compile(torch.nn.Linear(2, 2)), OptimizedModule)
        print(torch._dynamo.config.suppress_errors, inductor.fx_graph_cache)
        try:
            import torch._dynamo.testing
        except ModuleNotFoundError as error:
            assert "flambeau has no module 'flambeau._dynamo.testing'" in str(error)
        else:
            raise AssertionError
    """
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert done.stdout == "True True\n", done.stderr


def test_mock_patch_restores_a_setting():
    settings = Settings("some.config", {"level": 1})
    with mock.patch.object(settings, "level", 2):
        assert settings.level == 2
    assert settings.level == 1
    with pytest.raises(AttributeError, match="other does not exist"):
        settings.other = 1


def test_options_of_compile():
    torch.compile(torch.sin, options={"max_autotune": True, "triton.cudagraphs": False, "epilogue-fusion": True,
                                      "guard_filter_fn": torch.compiler.skip_all_guards_unsafe})(torch.ones(1))
    with pytest.raises(RuntimeError, match=r"Unexpected optimization option nope, known options are \['"):
        torch.compile(torch.sin, options={"nope": 1})
    with pytest.raises(RuntimeError, match="Unexpected type of attr max_autotune, got str should be bool"):
        torch.compile(torch.sin, options={"max_autotune": "x"})
    assert set(torch._inductor.list_mode_options()) == {
        "default", "lite", "reduce-overhead", "max-autotune-no-cudagraphs", "max-autotune"}
    assert len(torch._inductor.list_options()) > 600


def test_saved_settings():
    config = torch._inductor.config
    saved, before = config.save_config(), config.get_hash()
    with config.patch(max_autotune=True):
        assert config.codegen_config() == "torch._inductor.config.max_autotune = True"
        assert config.get_hash() != before
        config.load_config(saved)
        assert not config.max_autotune
