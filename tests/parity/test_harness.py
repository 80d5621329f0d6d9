"""The parity harness: PyTorch agrees with itself, and errors of a faulty library are detected."""

from __future__ import annotations

import types
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="PyTorch is the oracle")
pytest.importorskip("expecttest", reason="PyTorch's operator table needs it")

from . import deviations, opdb
from .bridge import Crossing, Side, Unsupported
from .outcome import Outcome
from .runs import CHECKS, Run
from .suite import GATING, REPORTED, run_check

pytestmark = pytest.mark.usefixtures("every_warning")


class Altered(types.ModuleType):
    """PyTorch with some names replaced."""

    def __init__(self, **replaced: Any):
        super().__init__("altered")
        self.__dict__.update(replaced)

    def __getattr__(self, name: str) -> Any:
        return getattr(torch, name)


def failures(op: str, check: str, candidate: Side) -> list[Outcome]:
    run = Run(opdb.operators()[op], Side.named("torch"), candidate, limit=3)
    return [o for o in run_check(run, check) if not o.ok]


def test_every_check_is_named() -> None:
    assert sorted(CHECKS) == sorted(GATING + REPORTED)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("op", ["add", "sort", "T", "nn.functional.dropout", "linalg.svd", "empty_like"])
def test_torch_agrees_with_torch(op: str) -> None:
    assert [o for check in CHECKS for o in failures(op, check, Side(torch))] == []


@pytest.mark.parametrize(
    ("op", "wrong", "check", "reason"),
    [
        ("exp", lambda x: torch.exp(x) * 1.001, "forward", "values differ"),
        ("exp", lambda x: torch.exp(x).double(), "forward", "dtype float64, expected float32"),
        ("exp", lambda x: torch.exp(x)[None], "forward", "shape"),
        ("exp", lambda x: torch.exp(x).detach(), "grad", "requires_grad"),
        ("exp", lambda x: torch.exp(x).detach() * (1 + x - x.detach()) ** 2, "grad", "values differ"),
        ("exp", lambda x: torch.exp(x) + 0 * x, "grad_fn", "AddBackward0"),
        ("exp", lambda x: 1 / 0, "forward", "ZeroDivisionError"),
        ("narrow", lambda *a: torch.narrow(*a).clone(), "views", "no sharing"),
        ("sort", lambda *a, **k: tuple(torch.sort(*a, **k)), "forward", "fields"),
        ("matmul", lambda a, b: torch.matmul(a, b).mT.contiguous().mT, "strides", "stride"),
    ],
)
def test_a_wrong_library_is_detected(op: str, wrong: Any, check: str, reason: str) -> None:
    found = failures(op, check, Side(Altered(**{op: wrong})))
    assert any(reason in o.reason for o in found), [o.reason for o in found]


def test_a_function_that_only_calls_torch_is_rebound() -> None:
    """`where` and `randn` are lambdas in the table: their `torch` must become the candidate."""
    with pytest.raises(AssertionError):
        assert failures("where", "forward", Side(Altered(where=lambda c, x, y: x))) == []
    assert failures("where", "forward", Side(Altered())) == []


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "complex64", "bool", "int64", "float16"])
@pytest.mark.parametrize(
    "layout",
    [
        lambda t: t,
        lambda t: t.mT,
        lambda t: t[::2, 1::2],
        lambda t: t[:, 0][:, None].expand(4, 5),
        lambda t: t[0, 0],
        lambda t: t[:0],
    ],
)
def test_tensors_cross_with_their_layout(dtype: str, layout: Any) -> None:
    source = layout(torch.arange(24).reshape(4, 6).to(getattr(torch, dtype)))
    made = Side.named("torch").tensor(source)
    assert made.dtype == source.dtype
    assert made.stride() == source.stride()
    assert torch.equal(made, source)
    assert made._base is None
    if source.numel():
        assert made.data_ptr() != source.data_ptr()


def test_nested_values_cross_with_their_identities() -> None:
    x = torch.ones(2, requires_grad=True)
    crossing = Crossing(Side.named("torch"))
    made = crossing({"a": [x, x], "s": slice(0, x), "d": torch.float64, "n": torch.Size([1]), "e": ...})
    assert made["a"][0] is made["a"][1]
    assert made["a"][0] is not x
    assert made["s"].stop is made["a"][0]
    assert crossing.leaves == [made["a"][0]]
    assert made["a"][0].requires_grad
    assert made["d"] is torch.float64
    assert made["n"] == torch.Size([1])
    assert made["e"] is Ellipsis
    with pytest.raises(Unsupported):
        crossing(torch.eye(2).to_sparse())


def test_values_come_out_as_arrays() -> None:
    side = Side.named("torch")
    assert side.numpy(torch.ones(2, dtype=torch.bfloat16)).dtype == np.float32
    assert side.numpy(torch.tensor([1j]).conj()).tolist() == [-1j]


def test_deviations_are_parsed(tmp_path: Any) -> None:
    file = tmp_path / "deviations.txt"
    file.write_text("# note\n\nfft.* | grad | complex128 | a reason | with a bar\n")
    (line,) = deviations.read(file)
    assert line.reason == "a reason | with a bar"
    assert line.line == 3
    assert line.excuses(Outcome("fft.fft", "grad", "complex128", 0, "values differ"))
    assert not line.excuses(Outcome("fft.fft", "grad", "float64", 0, "values differ"))
    file.write_text("exp | grad | float64\n")
    with pytest.raises(ValueError, match=r"deviations\.txt:1"):
        deviations.read(file)
    deviations.read()
