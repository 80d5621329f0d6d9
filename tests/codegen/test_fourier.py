"""Fourier transform kernels, and the operators that use them."""
from __future__ import annotations

import numpy as np
import pytest

import flambeau as torch
from flambeau.backends.compiled.families import fourier
from flambeau.codegen.fourier import transforms, twiddles
from flambeau.kernels import threads

#: lengths of signals: one stage, odd numbers of blocks, all radices, rows that threads share
LENGTHS = [16, 48, 112, 240, 400, 512, 3360, 4096, 1 << 16]
TOLERANCES = {"float32": 5e-7, "float64": 1e-14}


def random(*shape, dtype="float32", complex=False):
    rng = np.random.default_rng(0)
    x = rng.standard_normal(shape)
    if complex:
        x = x + 1j * rng.standard_normal(shape)
    return x.astype(np.result_type(dtype, np.complex64) if complex else dtype)


def half(x, n):
    """The weights of the elements of half a spectrum: 2 where they stand for a mirror image, too."""
    weights = np.full(n // 2 + 1, 2.0)
    weights[[0, -1]] = 1
    return x * weights


REFERENCES = {
    "c2c": lambda x, n: np.fft.fft(x),
    "c2c_inverse": lambda x, n: np.fft.ifft(x) * n,
    "r2c": lambda x, n: np.fft.rfft(x),
    "c2r": lambda x, n: np.fft.irfft(x, n) * n,
    "r2c_adjoint": lambda x, n: np.fft.irfft(x / half(1, n), n) * n,
    "c2r_adjoint": lambda x, n: half(np.fft.rfft(x), n),
}


def assert_near(out, want, dtype):
    assert np.abs(out - want).max() <= TOLERANCES[dtype] * np.abs(want).max()


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("n", LENGTHS)
@pytest.mark.parametrize("kind", REFERENCES)
def test_transforms_of_rows(kind, n, dtype):
    columns = n // 2 + 1 if kind in ("c2r", "r2c_adjoint") else n
    x = random(3, columns, dtype=dtype, complex=kind not in ("r2c", "c2r_adjoint"))
    out = fourier.transform(kind, x, 1, n, 0.25)
    want = REFERENCES[kind](x.astype(np.result_type(x.dtype, np.float64)), n) / 4
    assert out.shape == want.shape
    assert out.dtype == (dtype if want.dtype.kind == "f" else np.result_type(dtype, np.complex64))
    assert_near(out, want, dtype)


def test_overlapping_rows():
    x = random(1000)
    frames = np.lib.stride_tricks.sliding_window_view(x, 64)[::10]
    assert_near(fourier.transform("r2c", frames, 1, 64, 1.0), np.fft.rfft(frames.astype("float64")), "float32")


@pytest.mark.parametrize("layout", ["reversed", "transposed", "every_second", "three_dimensions", "first_axis"])
def test_layouts(layout):
    x, axis = random(6, 8, 64, complex=True), 2
    if layout == "reversed":
        x = x[::-1, :, ::-1]
    elif layout == "transposed":
        x = x.transpose(1, 0, 2)
    elif layout == "every_second":
        x = random(6, 8, 128, complex=True)[:, ::3, ::2]
    elif layout == "three_dimensions":
        x = random(4, 6, 8, 64, complex=True)[::2, ::2, ::3]
        axis = 3
    else:
        x, axis = x.transpose(2, 0, 1), 0
    out = fourier.transform("c2c", x, axis, 64, 1.0)
    assert_near(out, np.fft.fft(x, axis=axis), "float32")


@pytest.mark.parametrize("n", [1, 7, 20, 22, 11 * 16, 101])
def test_other_lengths_are_left_to_pocketfft(n):
    assert fourier.transform("r2c", random(3, n), 1, n, 1.0) is None


def test_lengths_of_spectra_are_checked():
    assert fourier.transform("c2r", random(3, 64, complex=True), 1, 64, 1.0) is None
    assert fourier.transform("c2c", random(3, 64).astype("float16"), 1, 64, 1.0) is None


def test_stages():
    assert twiddles.radices(200, 8) == [8, 5, 5]
    assert twiddles.radices(2048, 8) == [8, 4, 4, 4, 4]
    assert twiddles.radices(8 * 7 * 3 * 8, 8) == [8, 7, 3, 8]
    assert twiddles.radices(12, 8) is None


@pytest.mark.parametrize("n", [1024, 1 << 16])
def test_results_do_not_depend_on_threads(n):
    x, before, results = random(5, n), threads.count(), []
    try:
        for count in (1, 3):
            threads.limit(count)
            results.append(fourier.transform("r2c", x, 1, n, 1.0))
    finally:
        threads.limit(before)
    np.testing.assert_array_equal(*results)


def test_rows_shared_by_threads_have_a_launch_for_each_stage():
    dtype = np.dtype("float32")
    assert len(transforms.launches("c2c", 1 << 16, dtype, (1, 1), (0, 0), 1.0)) > 6
    assert len(transforms.launches("c2c", 1 << 16, dtype, (1, 64), (0, 1 << 19), 1.0)) == 1


@pytest.mark.parametrize("norm", ["backward", "ortho", "forward"])
@pytest.mark.parametrize("name", ["fft", "ifft", "rfft", "irfft", "hfft", "ihfft"])
def test_functions_and_gradients(name, norm):
    x = random(8, 1024, complex=name not in ("rfft", "ihfft"))
    wide = x.astype(np.result_type(x.dtype, np.float64))
    t, u = torch.tensor(x, requires_grad=True), torch.tensor(wide[:, :], requires_grad=True)
    results = []
    for each in (t, u):
        rows = [getattr(torch.fft, name)(row, norm=norm) for row in each] if each is u else [
            getattr(torch.fft, name)(each, norm=norm)]
        y = torch.cat([row.reshape(-1) for row in rows])  # rows one by one are too small for kernels
        y = torch.view_as_real(y.resolve_conj()) if y.is_complex() else y
        weight = torch.arange(y.numel()).reshape(y.shape).sin()
        (y * weight).sum().backward()
        results.append((y.detach().numpy(), each.grad.numpy()))
    assert_near(results[0][0], results[1][0], "float32")
    assert_near(results[0][1], results[1][1], "float32")


def test_several_dimensions():
    x = random(32, 6, 64)
    t = torch.tensor(x, requires_grad=True)
    y = torch.fft.rfft2(t, dim=(0, 2))
    assert_near(y.detach().numpy(), np.fft.rfft2(x.astype("float64"), axes=(0, 2)), "float32")
    back = torch.fft.irfft2(y, dim=(0, 2))
    torch.testing.assert_close(back, t)
    back.square().sum().backward()
    torch.testing.assert_close(t.grad, 2 * t.detach(), rtol=1e-4, atol=1e-5)
