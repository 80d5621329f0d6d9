"""`out=` of other dtypes and shapes, and numbers written to narrow dtypes: errors and warnings are PyTorch's."""

from __future__ import annotations

import itertools

import pytest

from tests.autograd.differential import attempt, same

CALLS = ("floor(x, ", "sgn(x, ", "neg(x, ", "clamp(x, 0, 1, ", "nan_to_num(x, ", "where(x > 0, x, x, ", "amax(x, 0, ",
         "logcumsumexp(x, 0, ", "take(x, torch.tensor([0]), ", "masked_select(x, x > 0, ", "tril(x[None], ",
         "softmax(x, 0, ", "argmax(x, ", "sin(x, ", "add(x, 1, ", "diag(x, ", "view_copy(x, (3, 1), ",
         "squeeze_copy(x[None], ", "unfold_copy(x, 0, 2, 1, ", "as_strided_copy(x, (2,), (1,), ",
         "slice_scatter(x, x[:1], 0, 0, 1, ", "_C._nn.avg_pool2d(x[None, None], 1, ")


@pytest.mark.parametrize("call", CALLS)
def test_dtypes_and_shapes_of_out(call):
    def program(torch):
        did = []
        for shape, dtype in itertools.product(((3,), (0,), (7,)), ("float32", "float64", "int64", "bool", "complex64")):
            out = torch.zeros(shape, dtype=getattr(torch, dtype))
            names = {"torch": torch, "x": torch.tensor([-1.5, 2.0, 3.0], dtype=torch.float64), "o": out}
            did.append((dtype, attempt(lambda: eval(f"torch.{call}out=o).shape", names))))  # noqa: B023
        return did

    same(program)


OF_ONE_DTYPE = ("matmul(x[None], x[:, None], ", "abs(x, ", "tril(x[None], ", "sort(x, ", "max(x, 0, ",
                "frexp(x, ", "histogram(x, 2, ")


@pytest.mark.parametrize("call", OF_ONE_DTYPE)
def test_devices_and_dtypes_of_out(call):
    """Where both differ, PyTorch looks at one of them first; of several results the dtype of each counts."""
    def program(torch):
        did = []
        kinds = itertools.product(("float64", "float32", "int64"), repeat=2)
        for devices, (first, second) in itertools.product((("meta", "cpu"), ("cpu", "meta"), ("cpu", "cpu")), kinds):
            if call.startswith("histogram") and "meta" in devices:
                continue  # PyTorch has no kernel
            x = torch.tensor([-1.5, 2.0, 3.0], dtype=torch.float64).to(devices[0])
            several = call.startswith(("sort", "max", "frexp", "histogram"))
            out = torch.zeros(3, dtype=getattr(torch, first), device=devices[1])
            if several:
                out = (out, torch.zeros(3, dtype=getattr(torch, second), device=devices[1]))
            if devices[0] == devices[1] or "float64" not in (first, second)[:1 + several]:
                names = {"torch": torch, "x": x, "o": out}
                done = attempt(lambda: (eval(f"torch.{call}out=o)", names), None)[1])  # noqa: B023
                did.append(str(done))
        return did

    same(program)


STATEMENTS = {
    "comparisons record nothing": "x = torch.eq(w, 1, out=torch.zeros(3))",
    "clamp does": "x = torch.clamp(torch.ones(3), 0, 1, out=w)",
    "shapes before kernels": "x = torch.bitwise_or(torch.ones(3), torch.ones(2))",
    "results of integers": "x = torch.ones(3); x.bitwise_and_(torch.ones(3, dtype=torch.complex64))",
    "operators of integers": "x = torch.ones(3); x |= x.clone()",
    "leaves before indices": "w[torch.tensor(0.5)] = 1",
    "leaves before masks": "w[torch.zeros(9, dtype=torch.bool)] = 1",
    "a number at a mask": "x = torch.ones(3); x[[True, False, False]] = torch.tensor(2, dtype=torch.int64)",
    "a complex number at a mask": "x = torch.ones(3); x[torch.tensor([True, False, True])] = torch.tensor([1j])",
    "no number at an index": "x = torch.ones(3); x[torch.tensor(True)] = torch.tensor(2, dtype=torch.int64)",
    "infinity in half": "x = torch.ones(3).half(); x[...] = 1e10",
    "complex in half": "x = torch.ones(3).half(); x[0] = 1j",
    "complex as bool": "x = torch.zeros(3, dtype=torch.bool); x[0] = 1j",
    "no complex elements": "x = torch.zeros(0, dtype=torch.complex64).to(torch.float32)",
    "out of complex range": "x = torch.full((2,), 1e40, dtype=torch.complex64)",
    "requires_grad_": "w.requires_grad_('a')",
    "full": "x = torch.full((2,), None)",
    "one chunk": "y = torch.ones(1); x = torch.func.vmap(lambda t: t.reshape(-1), chunk_size=4)(y); x.add_(1); x = y",
}


@pytest.mark.parametrize("name", STATEMENTS)
def test_statement(name):
    def program(torch):
        names = {"torch": torch, "w": torch.ones(3, requires_grad=True)}
        exec(STATEMENTS[name], names)
        return names.get("x")

    same(program)


@pytest.mark.parametrize("name", ["add_", "sub_"])
def test_a_default_that_is_named_hides_no_operand(name):
    """The error is that of the shapes or dtypes, not that of an operand that is missing."""
    def program(torch):
        targets = (torch.tensor(1), torch.tensor(True), torch.ones(2))
        return [attempt(lambda: getattr(x, name)(torch.ones(3, 3, dtype=torch.float64), alpha=1))  # noqa: B023
                for x in targets]

    same(program)


@pytest.mark.parametrize("call", ["cumsum(x, 0, out={})", "cumprod(x, 0, out={})", "ones(2, out={})",
                                  "zeros(2, out={})", "square_({})", "relu_({})"])
def test_what_is_no_tensor_is_refused(call):
    def program(torch):
        names = {"torch": torch, "x": torch.ones(3)}
        return [attempt(lambda: eval(f"torch.{call.format(other)}", names))  # noqa: B023
                for other in ("[1]", "range(2)", "5", "x.numpy()")]

    same(program)
