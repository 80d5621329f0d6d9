"""Errors of LU and LDL factorizations: PyTorch's types, and its texts where they are no internal errors."""

from __future__ import annotations

from typing import Any

import pytest

import flambeau


def outcome(lib: Any, name: str, shape: tuple[int, ...]) -> tuple[type, str]:
    with pytest.raises(RuntimeError) as info:
        getattr(lib.linalg, name)(lib.zeros(shape))
    return info.type, str(info.value)


@pytest.mark.parity
@pytest.mark.parametrize("shape", [(2, 2), (3, 2, 2), (2, 3)])
def test_singular_matrices_have_no_lu_factors_to_solve_with(shape: tuple[int, ...]) -> None:
    torch = pytest.importorskip("torch")
    assert outcome(flambeau, "lu_factor", shape) == outcome(torch, "lu_factor", shape)


@pytest.mark.parity
@pytest.mark.parametrize("shape", [(2, 2), (3, 2, 2)])
def test_singular_matrices_have_no_ldl_factors(shape: tuple[int, ...]) -> None:
    torch = pytest.importorskip("torch")
    ours, theirs = outcome(flambeau, "ldl_factor", shape), outcome(torch, "ldl_factor", shape)
    assert ours[0] is theirs[0]
    assert ours[1].startswith("torch.linalg.ldl_factor: ")
    assert ours[1].partition("\n")[0] in theirs[1]


@pytest.mark.parity
@pytest.mark.parametrize("name", ["inv_ex", "solve_ex", "cholesky_ex", "lu_factor_ex"])
@pytest.mark.parametrize("shape", [(2, 2), (3, 2, 2)])
def test_errors_are_checked_on_request(name: str, shape: tuple[int, ...]) -> None:
    def checked(lib: Any) -> list[str]:
        a, seen = lib.zeros(shape), []
        for matrix in (a, lib.eye(2)):
            arguments = (matrix, lib.eye(2)) if name == "solve_ex" else (matrix,)
            assert getattr(lib.linalg, name)(*arguments)[-1].dtype is lib.int32
            try:
                seen.append(str(getattr(lib.linalg, name)(*arguments, check_errors=True)[0].tolist()))
            except RuntimeError as error:
                seen.append(f"{type(error).__name__}: {error}")
        return seen

    assert checked(flambeau) == checked(pytest.importorskip("torch"))


@pytest.mark.parity
@pytest.mark.parametrize("call", ["cond(a, ", "cond(a, 1, ", "eigvals(a, ", "matrix_rank(a, ", "pinv(a, ",
                                  "tensorinv(a, 1, "])
@pytest.mark.parametrize("dtype", ["bool", "float64"])
def test_dtypes_of_out_of_composed_functions(call: str, dtype: str) -> None:
    def called(lib: Any) -> str:
        names = {"linalg": lib.linalg, "a": lib.eye(3), "o": lib.empty(0, dtype=getattr(lib, dtype))}
        try:
            return str(eval(f"linalg.{call}out=o).shape", names)).replace("flambeau", "torch")
        except RuntimeError as error:
            return str(error)

    assert called(flambeau) == called(pytest.importorskip("torch"))


@pytest.mark.parametrize("p", [1, -1, float("inf"), "fro", "nuc", 2])
def test_singular_matrices_have_no_finite_condition(p: Any) -> None:
    a = flambeau.stack([flambeau.eye(3), flambeau.tensor([1., 1, 0]).diag()])
    assert flambeau.isinf(flambeau.linalg.cond(a, p)).tolist() == [False, True]


@pytest.mark.parity
@pytest.mark.parametrize("call", ["cond(a, 5)", "cond(a, 'wrong')", "pinv(a, rtol=z)", "pinv(a, rcond=z)"])
def test_arguments_of_composed_functions(call: str) -> None:
    texts = []
    for lib in (flambeau, pytest.importorskip("torch")):
        with pytest.raises(RuntimeError) as info:
            eval(f"linalg.{call}", {"linalg": lib.linalg, "a": lib.eye(3), "z": lib.tensor(1j)})
        texts.append(str(info.value))
    assert texts[0] == texts[1]


@pytest.mark.parity
@pytest.mark.parametrize("driver", ["gelsd", "gelsy"])
@pytest.mark.parametrize("shapes", [
    ((4, 3), (5, 4, 2)), ((2, 4, 3), (4,)), ((2, 4, 3), (4, 2)), ((2, 4, 3), (2, 4)), ((1, 4, 3), (2, 4)),
    ((2, 4, 3), (2, 5)), ((4, 3), (4,)), ((4, 3), ()), ((3,), (3,)), ((2, 4, 3), (3, 4, 2)), ((1, 4, 3), (2, 4, 2)),
    ((2, 1, 4, 3), (1, 5, 4, 2)), ((0, 4, 3), (0, 4, 2))])
def test_least_squares_of_batches(shapes: Any, driver: str) -> None:
    def called(lib: Any) -> Any:
        a, b = (lib.arange(float(lib.Size(shape).numel())).reshape(shape) ** 2 for shape in shapes)
        try:
            return [tuple(each.shape) for each in lib.linalg.lstsq(a, b, driver=driver)]
        except RuntimeError as error:
            return str(error)

    assert called(flambeau) == called(pytest.importorskip("torch"))
