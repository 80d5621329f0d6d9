"""`torch.ops.aten`: operators that check numbers and tensors at run time."""

from __future__ import annotations

import pytest

import flambeau

CALLS = [
    *(f"_assert_scalar({number}, 'bad')" for number in ("1", "0", "False", "0.0", "0j", "2.5", "-1")),
    "_assert_scalar(1)",
    *(f"_assert_async(t.tensor({values}))" for values in ("1", "[0]", "[[2.0]]", "[]", "[1, 2]", "False")),
    "_assert_async.msg(t.tensor(0), 'bad')",
    *(f"{name}({call})" for name in ("sym_constrain_range", "sym_constrain_range_for_size") for call in (
        "1", "1, min=2", "3, max=2", "-1", "1, min=3, max=2", "1, min=0, max=1", "1.5", "True", "3, min=3, max=3",
        "5, min=-1, max=7", "2, min=2, max=2", "1, min=0, max=3", "9, min=0, max=3", "4, min=7, max=5", "")),
    *(f"_functional_{name}({call}, token)" for name in ("sym_constrain_range", "sym_constrain_range_for_size")
      for call in ("1, 0, 3", "5, 0, 3", "5, None, None", "1, None, 0")),
    "_functional_assert_scalar(1, 'bad', token)", "_functional_assert_scalar(0, 'bad', token)",
    "_functional_assert_scalar(1, 'bad', token).data_ptr() == token.data_ptr()",
    "_functional_assert_async.msg(t.tensor(0), 'bad', token)", "_functional_assert_async.msg(t.ones(1), 'bad', token)",
    "_make_dep_token().dim()", "_make_dep_token(dtype=t.float64).dtype.itemsize", "_make_dep_token(device='meta')",
    *(f"_assert_tensor_metadata(token, {call})" for call in (
        "[2, 3]", "[3, 2]", "[3]", "None, [3, 1]", "None, [1, 1]", "None, None, t.int64", "None, None, t.float32",
        "layout=t.sparse_coo", "layout=t.sparse_csr", "layout=t.jagged", "layout=t.strided", "device='meta'",
        "device='cpu'", "device=t.device('cpu')", "[1], [1], t.int8", "None, [1], t.int8",
        "device='meta', layout=t.sparse_coo")),
    *(f"_assert_tensor_metadata(t.empty(2, dtype=t.{name}), None, None, t.{other})" for name, other in (
        ("float64", "bfloat16"), ("bfloat16", "complex64"), ("float16", "uint8"), ("complex128", "int16"),
        ("bool", "int32"), ("int8", "uint16"), ("uint8", "uint32"), ("int16", "uint64"), ("uint16", "bool"),
        ("uint32", "float16"), ("uint64", "float8_e5m2"), ("float8_e4m3fn", "int8"), ("int64", "complex128"))),
    "_assert_tensor_metadata(t.eye(2).to_sparse(), [2, 2], layout=t.strided)",
    "_assert_tensor_metadata(t.eye(2).to_sparse(), [2, 2], [1, 1])",
    "_assert_tensor_metadata(t.ones(2, device='meta'), [2], device='cpu')",
]


def outcome(module, source):
    names = {"t": module, "token": module.ones(2, 3)}
    try:
        return str(eval(f"t.ops.aten.{source}", names))
    except Exception as error:
        return type(error).__name__, str(error)


@pytest.mark.parity
@pytest.mark.parametrize("source", CALLS)
def test_results_and_errors_are_those_of_pytorch(source):
    torch = pytest.importorskip("torch")

    assert outcome(flambeau, source) == outcome(torch, source)


@pytest.mark.parity
@pytest.mark.parametrize("name", ["sym_constrain_range", "sym_constrain_range_for_size"])
@pytest.mark.parametrize("call", ["1, min=3, max=2", "3, min=5, max=4", "-1", "2.5, min=3", "3, max=2", "4, min=1"])
def test_functions_of_numbers_are_the_operators(name, call):
    torch = pytest.importorskip("torch")

    def run(module):
        try:
            return eval(f"t.{name}({call})", {"t": module})
        except Exception as error:
            return type(error).__name__, str(error)

    assert run(flambeau) == run(torch)
