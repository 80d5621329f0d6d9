"""`torch.backends`: settings have PyTorch's names and defaults."""

from __future__ import annotations

import subprocess
import sys

import pytest

import flambeau

backends = flambeau.backends


def test_switches_are_kept():
    cudnn = backends.cudnn
    before = cudnn.to_dict()
    cudnn.benchmark, cudnn.deterministic = True, True
    assert (cudnn.benchmark, cudnn.deterministic) == (True, True)
    with cudnn.flags(enabled=False, deterministic=False):
        assert (cudnn.enabled, cudnn.benchmark, cudnn.deterministic) == (False, False, False)
    assert (cudnn.enabled, cudnn.benchmark, cudnn.deterministic) == (True, True, True)
    assert cudnn.set_flags(_benchmark=False)[1] is True
    assert cudnn.benchmark is False
    cudnn.load_config(before)
    backends.cuda.matmul.allow_tf32 = True
    assert backends.cuda.matmul.allow_tf32
    assert backends.cuda.matmul.fp32_precision == "tf32"
    backends.cuda.matmul.allow_tf32 = False
    assert backends.cuda.matmul.fp32_precision == "ieee"
    backends.cuda.matmul.fp32_precision = "none"
    backends.cuda.enable_flash_sdp(False)
    assert not backends.cuda.flash_sdp_enabled()
    backends.cuda.enable_flash_sdp(True)
    with pytest.warns(FutureWarning, match="sdpa_kernel"), backends.cuda.sdp_kernel(enable_math=False):
        assert not backends.cuda.math_sdp_enabled()
    assert backends.cuda.math_sdp_enabled()
    with backends.mkl.verbose(backends.mkl.VERBOSE_ON):
        pass


def test_no_device_is_available():
    for name in ("cudnn", "kleidiai", "mkl", "mkldnn", "mps", "nnpack", "openmp", "opt_einsum", "cusparselt"):
        assert getattr(backends, name).is_available() is False
    assert backends.mps.is_built() is backends.cuda.is_built() is False
    assert backends.cudnn.version() is None
    assert backends.cudnn.is_acceptable(flambeau.ones(1)) is False
    assert backends.cpu.get_cpu_capability() in ("DEFAULT", "AVX2", "AVX512")


def test_settings_can_be_frozen(monkeypatch):
    from flambeau.backends import pytorch

    monkeypatch.setattr(pytorch, "_frozen", [False])
    backends.disable_global_flags()
    assert backends.flags_frozen()
    for module in (backends.cudnn, backends.mkldnn):
        with pytest.raises(RuntimeError, match=f"not allowed to set torch.backends.{module.__name__.split('.')[-1]} "
                                               "flags after disable_global_flags"):
            module.enabled = False
        with module.flags():
            assert module.enabled is False
            assert backends.flags_frozen()
        assert module.enabled is True
    with backends.flags(fp32_precision="ieee"):
        assert backends.fp32_precision == "ieee"
    assert backends.fp32_precision == "none"


def test_flags_have_pytorchs_defaults():
    torch = pytest.importorskip("torch")
    for name in ("cudnn", "miopen", "nnpack"):  # of mkldnn PyTorch warns
        mine, theirs = getattr(backends, name), getattr(torch.backends, name)
        before = theirs.set_flags() if name != "nnpack" else (True,)
        assert mine.set_flags() == before
        with theirs.flags(), mine.flags():
            assert {each: getattr(mine, each) for each in mine.to_dict() if name != "nnpack"} == \
                {each: getattr(theirs, each) for each in mine.to_dict() if name != "nnpack"}


def test_unknown_attributes_raise():
    with pytest.raises(AttributeError, match="no attribute 'foo'"):
        backends.foo
    with pytest.raises(AttributeError, match="foo does not exist"):
        backends.cuda.matmul.foo = 1
    with pytest.raises(AttributeError, match="foo does not exist"):
        backends.cudnn.foo


def test_defaults_equal_pytorchs():
    pytest.importorskip("torch")
    program = """if 1:
        import torch
        from flambeau import backends
        for path in ("cudnn", "mkldnn", "nnpack", "cuda.matmul", "cudnn.rnn", "mkldnn.matmul"):
            mine, theirs = backends, torch.backends
            for part in path.split("."):
                mine, theirs = getattr(mine, part), getattr(theirs, part)
            names = [name for name in mine.to_dict() if path != "nnpack"]  # whose switch is a function's
            assert {name: getattr(theirs, name) for name in names} == {name: getattr(mine, name) for name in names}
        for name in ("flash", "math", "mem_efficient", "cudnn"):
            switch = f"{name}_sdp_enabled"
            assert getattr(backends.cuda, switch)() is getattr(torch.backends.cuda, switch)()
        assert backends.mha.get_fastpath_enabled() is torch.backends.mha.get_fastpath_enabled()
        """
    # in a process of its own: settings of other tests stay written, as PyTorch's do
    subprocess.run([sys.executable, "-c", program], check=True)


def test_through_the_torch_alias():
    program = """if 1:
        from flambeau.alias import install
        install()
        import torch
        import torch.backends.cuda
        import torch.backends.cudnn as cudnn
        from torch.backends import mps
        cudnn.deterministic = True
        print(torch.backends.cudnn.deterministic, mps.is_available())
    """
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert done.stdout == "True False\n", done.stderr


def test_kernels_in_cuda_can_be_declared():
    jiterator = flambeau.cuda.jiterator
    kernel = jiterator._create_jit_fn("template <typename T> T twice(T x) { return x + x; }", a=1)
    assert (kernel.kernel_name, kernel.kwargs_dict) == ("twice", {"a": 1})
    with pytest.raises(AssertionError, match="only supported on CUDA and ROCm GPUs, none are available"):
        kernel(flambeau.ones(1))
    with pytest.raises(Exception, match="Couldn't parse code"):
        jiterator._create_multi_output_jit_fn("nothing", 2)
