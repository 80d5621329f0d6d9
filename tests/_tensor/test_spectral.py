"""Fourier transforms, short-time Fourier transforms and windows against NumPy and PyTorch."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

import flambeau as torch
from flambeau.backends.numpy import spectral
from tests.autograd.differential import same


@pytest.mark.parametrize("dtype", ["float32", "float64", "complex64", "complex128"])
def test_transforms_are_computed_in_the_input_s_precision(dtype: str) -> None:
    x = torch.ones(6, dtype=getattr(torch, dtype))
    assert torch.fft.fft(x).dtype == getattr(torch, "complex64" if dtype in ("float32", "complex64") else "complex128")
    assert torch.fft.irfft(x).dtype == getattr(torch, "float32" if dtype in ("float32", "complex64") else "float64")


@pytest.mark.parametrize("module", ["numpy.fft", "scipy.fft"])
def test_large_transforms_by_both_libraries(module: str, monkeypatch: pytest.MonkeyPatch) -> None:
    library = pytest.importorskip(module)
    monkeypatch.setattr(spectral, "_scipy", [library])
    x = np.random.default_rng(0).normal(size=(64, 300))
    t = torch.tensor(x)
    np.testing.assert_allclose(torch.fft.fft2(t).numpy(), np.fft.fft2(x), atol=1e-10)
    np.testing.assert_allclose(torch.fft.rfft(t, dim=0).numpy(), np.fft.rfft(x, axis=0), atol=1e-10)
    np.testing.assert_allclose(torch.fft.irfft(torch.fft.rfft(t), n=300).numpy(), x, atol=1e-10)


def test_narrow_dtypes_are_refused() -> None:
    with pytest.raises(RuntimeError, match=r"^Unsupported dtype Half$"):
        torch.fft.fft(torch.ones(4, dtype=torch.float16))


@pytest.mark.parametrize(("call", "error", "text"), [
    (lambda x: torch.fft.fft(x, n=0), RuntimeError, "Invalid number of data points (0) specified"),
    (lambda x: torch.fft.fft(x, norm="x"), RuntimeError, 'Invalid normalization mode: "x"'),
    (lambda x: torch.fft.fft(x[0, 0, 0]), IndexError, "Dimension specified as -1 but tensor has no dimensions"),
    (lambda x: torch.fft.rfft(x + 0j), RuntimeError, "rfft expects a real input tensor, but got ComplexFloat"),
    (lambda x: torch.fft.fftn(x, dim=(0, 0)), RuntimeError, "FFT dims must be unique"),
    (lambda x: torch.fft.fftn(x, s=(2,), dim=(0, 1)), RuntimeError,
     "When given, dim and shape arguments must have the same length"),
    (lambda x: torch.fft.rfftn(x, dim=()), RuntimeError, "rfftn must transform at least one axis"),
    (lambda x: torch.fft.fft(x, out=torch.empty(0)), RuntimeError,
     "fft expects a complex output tensor, but got Float"),
    (lambda x: torch.stft(x[0, 0], 3), RuntimeError, ("stft requires the return_complex parameter be given for real "
     "inputs, and will further require that return_complex=True in a future PyTorch release.")),
    (lambda x: torch.hann_window(-1), RuntimeError, ("hann_window requires non-negative window_length, got "
     "window_length=-1")),
    (lambda x: torch.signal.windows.hann(-1), ValueError,
     "general_cosine requires non-negative window length, got M=-1"),
])
@pytest.mark.filterwarnings("ignore:A window was not provided")
def test_errors(call, error, text) -> None:
    with pytest.raises(error) as raised:
        call(torch.ones(2, 3, 4))
    assert str(raised.value) == text


def test_stft_and_its_inverse() -> None:
    x = torch.randn(2, 40, dtype=torch.float64)
    window = torch.hann_window(8, dtype=torch.float64)
    spectrum = torch.stft(x, 8, window=window, return_complex=True)
    assert spectrum.shape == (2, 5, 21)
    assert torch.allclose(spectrum.istft(8, window=window), x)


def test_windows_against_pytorch() -> None:
    oracle = pytest.importorskip("torch")
    for name in ("hann", "hamming", "bartlett", "blackman", "kaiser"):
        for length in (0, 1, 2, 5, 8):
            for periodic in (False, True):
                ours = getattr(torch, name + "_window")(length, periodic)
                theirs = getattr(oracle, name + "_window")(length, periodic)
                np.testing.assert_allclose(ours.numpy(), theirs.numpy(), atol=2e-7)
    for name in oracle.signal.windows.__all__:
        extra = {"a": [0.3, 0.5, 0.2]} if name == "general_cosine" else {}
        for length in (0, 1, 2, 5, 8):
            for sym in (False, True):
                ours = getattr(torch.signal.windows, name)(length, sym=sym, **extra)
                theirs = getattr(oracle.signal.windows, name)(length, sym=sym, **extra)
                np.testing.assert_allclose(ours.numpy(), theirs.numpy(), atol=5e-7)


@pytest.mark.parametrize("device", ["cpu", "meta"])
@pytest.mark.parametrize("sizes", [(8, 4, 16), (64, 32, 128)])
def test_transformed_dimensions_are_innermost(sizes, device):
    a, b, c = sizes
    x, half = torch.zeros(*sizes, device=device), c // 2 + 1
    z = x.to(torch.complex64)
    fft = torch.fft
    assert fft.rfft(x).stride() == (b * half, half, 1)
    assert fft.rfft(x, dim=0).stride() == (1, c * (a // 2 + 1), a // 2 + 1)
    assert fft.rfft2(x, dim=(0, 2)).stride() == (half, a * half, 1)
    assert fft.rfft2(x, dim=(2, 0)).stride() == (1, c * (a // 2 + 1), a // 2 + 1)
    assert fft.fft2(z, dim=(0, 1)).stride() == (b, 1, a * b)
    assert fft.fft2(z, dim=(2, 0)).stride() == (c, a * c, 1)
    assert fft.irfft2(z, dim=(0, 2)).stride() == (2 * (c - 1), 2 * (c - 1) * a, 1)
    assert fft.fft(z.transpose(0, 1), dim=0).stride() == (1, b * c, b)
    assert fft.fft(z.transpose(0, 1), dim=2).stride() == (c, b * c, 1)


@pytest.mark.parametrize("name", ["fftfreq", "rfftfreq"])
def test_frequencies_into_other_sizes(name):
    def program(torch):
        shapes, outs = ((), (3, 4), (0,), (5,)), []
        for shape in shapes:
            out = torch.empty(shape)
            outs.append(getattr(torch.fft, name)(5, out=out) is out)
            outs.append(out)
        return outs

    same(program)


def test_a_missing_window_is_warned_of_once():
    from flambeau.warning_location import given

    given.clear()
    with pytest.warns(UserWarning, match="A window was not provided. A rectangular window will be applied,which"):
        torch.stft(torch.ones(20), 4, return_complex=True)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        torch.stft(torch.ones(20), 4, return_complex=True)
