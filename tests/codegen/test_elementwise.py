"""Elementwise kernels: layouts, dtypes, special values, outputs, threads."""

from __future__ import annotations

import threading

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from flambeau import dtypes
from flambeau.codegen.elementwise import elementwise
from flambeau.codegen.scalar import scalar_ir as e
from flambeau.dtypes import BFLOAT16
from flambeau.kernels import threads as limits

X, Y, Z = (e.variable(i, "float32") for i in range(3))
MULADD = X * Y + Z


def random(*shape, dtype="float32", seed=0):
    return np.random.default_rng(seed).standard_normal(shape).astype(dtype)


def same(got, want):
    assert got.dtype == want.dtype
    np.testing.assert_array_equal(got, want, strict=True)


@pytest.mark.parametrize("n", [0, 1, 3, 15, 16, 17, 63, 64, 65, 1000, 40_000, 1_000_003])
def test_every_length(n):
    x, y, z = random(n), random(n, seed=1), random(n, seed=2)
    kernel = elementwise.kernel([MULADD], ["float32"] * 3)
    same(kernel(x, y, z), x * y + z)
    guarded = np.full(n + 64, 7, np.float32)
    same(kernel(x, y, z, out=guarded[32:32 + n]), x * y + z)
    assert (guarded[:32] == 7).all()
    assert (guarded[32 + n:] == 7).all()


@st.composite
def arrays(draw, full):
    """An array that broadcasts to the shape `full`: a view, with any order of dimensions and any steps."""
    missing = draw(st.integers(0, len(full)))
    shape = [1 if draw(st.integers(0, 3)) == 0 else extent for extent in full[missing:]]
    order = draw(st.permutations(range(len(shape))))
    steps = [draw(st.sampled_from([1, 1, 2, 3, -1])) for _ in shape]
    base = np.random.default_rng(draw(st.integers(0, 99))).standard_normal(
        [shape[dim] * abs(steps[dim]) for dim in order]).astype("float32")
    view = base.transpose(np.argsort(order)) if shape else base
    return view[tuple(slice(None, None, step) for step in steps)] if shape else base


@st.composite
def operands(draw, count):
    full = draw(st.lists(st.sampled_from([0, 1, 1, 2, 3, 5, 17, 33]), max_size=5))
    return [draw(arrays(full)) for _ in range(count)]


@given(operands(3))
@settings(max_examples=300, deadline=None)
def test_any_shapes_and_strides(inputs):
    x, y, z = inputs
    want = np.asarray(x * y + z)
    kernel = elementwise.kernel([MULADD], ["float32"] * 3)
    same(kernel(x, y, z), want)
    out = np.full((*want.shape, 2), 7, np.float32).T[0].T if want.ndim else np.empty((), np.float32)
    assert kernel(x, y, z, out=out) is out
    same(out, want)


@pytest.mark.parametrize("shape", [(300, 500), (64, 3, 70), (2000, 3), (3, 2000), (40, 1, 30, 20)])
@pytest.mark.parametrize("view", [lambda a: a.T, lambda a: a[::2], lambda a: a[..., ::3], lambda a: a[:1],
                                  lambda a: a[..., :1], lambda a: np.broadcast_to(a[..., 1:2], a.shape)])
def test_larger_views(shape, view):
    x = view(random(*shape))
    full = np.broadcast_shapes(x.shape, view(np.empty(shape)).shape)
    y = random(*full[::-1], seed=1).T
    same(elementwise.kernel([X * Y], ["float32"] * 2)(x, y), x * y)


def test_outputs_have_the_memory_order_of_the_inputs():
    x, y = random(40, 50).T, random(40, 50, seed=1).T
    assert elementwise.kernel([X * Y], ["float32"] * 2)(x, y).strides == x.strides
    x = random(4, 5, 6).transpose(0, 2, 1)
    assert elementwise.kernel([-X], ["float32"])(x).strides == x.strides


#: an expression of nodes, and the same of arrays
BINARY = {
    "add": (lambda x, y: x + y, np.add), "sub": (lambda x, y: x - y, np.subtract),
    "mul": (lambda x, y: x * y, np.multiply), "maximum": (e.maximum, np.maximum), "minimum": (e.minimum, np.minimum),
    "fmax": (e.fmax, np.fmax), "fmin": (e.fmin, np.fmin), "lt": (lambda x, y: x < y, np.less),
    "le": (lambda x, y: x <= y, np.less_equal), "gt": (lambda x, y: x > y, np.greater),
    "ge": (lambda x, y: x >= y, np.greater_equal), "eq": (e.eq, np.equal), "ne": (e.ne, np.not_equal),
}
SPECIAL = [0.0, -0.0, 1.0, -1.0, 0.5, 1.5, 2.5, -2.5, 1e-45, 3e38, np.inf, -np.inf, np.nan]


@pytest.mark.parametrize("name", [*BINARY, "div", "copysign"])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_special_values(name, dtype):
    one, reference = BINARY.get(name) or {"div": (lambda x, y: x / y, np.divide),
                                          "copysign": (e.copysign, np.copysign)}[name]
    values = np.array(SPECIAL, dtype)
    x, y = (np.ascontiguousarray(each) for each in np.meshgrid(values, values))
    with np.errstate(all="ignore"):
        want = reference(x, y)
    got = elementwise.kernel([one(e.variable(0, dtype), e.variable(1, dtype))], [dtype] * 2)(x, y)
    same(got, want)
    if name not in ("maximum", "minimum", "fmax", "fmin") and got.dtype != bool:  # which zero is not said
        np.testing.assert_array_equal(np.signbit(got[~np.isnan(want)]), np.signbit(want[~np.isnan(want)]))


@pytest.mark.parametrize(("one", "reference"), [
    (e.sqrt, np.sqrt), (e.floor, np.floor), (e.ceil, np.ceil), (e.trunc, np.trunc), (e.round_, np.rint),
    (e.recip, np.reciprocal), (e.rsqrt, lambda x: 1 / np.sqrt(x)), (abs, np.abs), (lambda x: -x, np.negative)])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_exact_functions(one, reference, dtype):
    x = np.concatenate([np.array(SPECIAL, dtype), random(200, dtype=dtype) * 10])
    with np.errstate(all="ignore"):
        same(elementwise.kernel([one(e.variable(0, dtype))], [dtype])(x), reference(x))


@pytest.mark.parametrize("constant", [2.0, float("nan")])
@pytest.mark.parametrize("op", [e.maximum, e.minimum])
def test_extremes_with_a_constant(op, constant):
    x = np.array(SPECIAL, np.float32)
    reference = np.maximum if op is e.maximum else np.minimum
    same(elementwise.kernel([op(X, constant)], ["float32"])(x), reference(x, np.float32(constant)))
    same(elementwise.kernel([op(constant, X)], ["float32"])(x), reference(np.float32(constant), x))


@pytest.mark.parametrize("dtype", ["int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"])
def test_integers(dtype):
    limits = np.iinfo(dtype)
    random = np.random.default_rng(0)
    x, y = (random.integers(limits.min, limits.max, 1000, dtype=dtype, endpoint=True) for _ in range(2))
    x[:3], y[:3] = [limits.min, limits.max, 5], [0 if limits.min == 0 else -1, 1, 0]
    a, b = e.variable(0, dtype), e.variable(1, dtype)
    with np.errstate(all="ignore"):
        for one, reference in list(BINARY.values()):
            if one not in (e.fmax, e.fmin):
                same(elementwise.kernel([one(a, b)], [dtype] * 2)(x, y), reference(x, y))
        for one, reference in [(lambda a, b: a & b, np.bitwise_and), (lambda a, b: a ^ b, np.bitwise_xor),
                               (lambda a, b: a | b, np.bitwise_or), (lambda a, b: ~a, lambda x, y: ~x),
                               (lambda a, b: abs(a), lambda x, y: np.abs(x)), (lambda a, b: -a, lambda x, y: -x)]:
            same(elementwise.kernel([one(a, b)], [dtype] * 2)(x, y), reference(x, y))
    quotient = elementwise.kernel([a / b], [dtype] * 2)(x, y)
    want = [0 if q == 0 else int(p) // int(q) if (p < 0) == (q < 0) else -(abs(int(p)) // abs(int(q)))
            for p, q in zip(x.tolist(), y.tolist(), strict=True)]
    bits = 8 * np.dtype(dtype).itemsize
    want = [(q + 2**(bits - 1)) % 2**bits - 2**(bits - 1) if limits.min else q for q in want]  # -min is min again
    same(quotient, np.array(want, dtype))


ALL = ["bool", "uint8", "int8", "int16", "int32", "int64", "uint16", "uint32", "uint64", "float16", BFLOAT16,
       "float32", "float64"]


@pytest.mark.parametrize("source", ALL, ids=str)
@pytest.mark.parametrize("to", ALL, ids=str)
def test_casts(source, to):
    numbers = np.array([0, 1, 2, 3, 100, 127, 0.5, 1.75, 77.25, 0, 5], np.float64)
    x = np.resize(dtypes.cast(numbers, np.dtype(source)), 100)
    got = elementwise.kernel([e.cast(e.variable(0, source), to)], [source])(x)
    want = dtypes.cast(x, np.dtype(to))
    assert got.dtype == want.dtype
    assert got.tobytes() == want.tobytes()


def test_bfloat16_rounds_to_nearest_even_and_keeps_nan():
    bits = np.random.default_rng(0).integers(0, 2**32, 100_000, dtype=np.uint32)
    x = bits.view(np.float32)
    got = elementwise.kernel([e.cast(X, BFLOAT16)], ["float32"])(x)
    assert got.tobytes() == dtypes.to_bfloat16(x).tobytes()
    half = elementwise.kernel([e.cast(X, "float16")], ["float32"])(x)
    with np.errstate(all="ignore"):
        np.testing.assert_array_equal(half, x.astype(np.float16))


def test_narrow_floats_are_computed_in_float32():
    for dtype in (np.dtype("float16"), BFLOAT16):
        a, b = e.variable(0, dtype), e.variable(1, dtype)
        x, y = (dtypes.cast(random(100, seed=i), dtype) for i in (0, 1))
        got = elementwise.kernel([e.cast(a * b + a, dtype)], [dtype] * 2)(x, y)
        x32, y32 = dtypes.widen(x), dtypes.widen(y)
        assert got.tobytes() == dtypes.cast(x32 * y32 + x32, dtype).tobytes()


def test_several_outputs_of_several_dtypes():
    x, y = random(7, 1), random(1000, seed=1)
    total, less, chosen = elementwise.kernel(
        [X + Y, X < Y, e.select(X < Y, e.cast(X, "float64"), 2.0)], ["float32"] * 2)(x, y)
    same(total, x + y)
    same(less, x < y)
    same(chosen, np.where(x < y, x.astype("float64"), 2.0))


def test_logic_of_bools():
    p, q = (np.random.default_rng(i).random(300) < 0.5 for i in (0, 1))
    a, b = e.variable(0, "bool"), e.variable(1, "bool")
    for one, want in [(a & b, p & q), (a | b, p | q), (a ^ b, p ^ q), (~a, ~p), (e.eq(a, b), p == q)]:
        same(elementwise.kernel([one], ["bool"] * 2)(p, q), want)


def test_fma_rounds_once():
    x = np.float32([1 + 2.0**-12])
    got = elementwise.kernel([e.fma(X, Y, Z)], ["float32"] * 3)(x, x, np.float32([-1]))
    assert got[0] == np.float32(np.float64(x[0]) * np.float64(x[0]) - 1) != x[0] * x[0] - 1


def test_multiplication_and_addition_are_not_fused():
    x = np.float32([1 + 2.0**-12])
    assert elementwise.kernel([MULADD], ["float32"] * 3)(x, x, np.float32([-1]))[0] == x[0] * x[0] - 1


def test_in_place():
    kernel = elementwise.kernel([MULADD], ["float32"] * 3)
    for x in (random(100_000), random(300, 400).T, random(300, 400)[::2, ::3]):
        want = x * x + x
        assert kernel(x, x, x, out=x) is x
        same(x, want)


@pytest.mark.parametrize("n", [5, 1000, 200_000])
def test_an_output_that_overlaps_an_input_is_written_after_it_is_read(n):
    kernel = elementwise.kernel([X + Y], ["float32"] * 2)
    for source, result in [(slice(None, -1), slice(1, None)), (slice(1, None), slice(None, -1)),
                           (slice(None, None, -1), slice(None))]:
        memory = random(n)
        want = memory[source] + memory[source]
        kernel(memory[source], memory[source], out=memory[result])
        same(memory[result], want)
    square = random(70, 70)
    want = square.T + square
    same(kernel(square.T, square, out=square), want)


def test_two_outputs_into_the_inputs():
    x, y = random(1000), random(1000, seed=1)
    want = y + x, x - y
    elementwise.kernel([Y + X, X - Y], ["float32"] * 2)(x, y, out=(x, y))
    same(x, want[0])
    same(y, want[1])


def test_invalid_outputs():
    kernel = elementwise.kernel([X + Y], ["float32"] * 2)
    x = random(3, 4)
    with pytest.raises(ValueError, match="share memory"):
        kernel(x, x, out=np.lib.stride_tricks.as_strided(x, (3, 4), (4, 0)))
    with pytest.raises(ValueError, match="shape"):
        kernel(x, x, out=np.empty((4,), np.float32))
    with pytest.raises(TypeError, match="float64"):
        kernel(x, x, out=np.empty((3, 4)))
    still = np.zeros((3, 4), np.float32)
    still.flags.writeable = False
    with pytest.raises(ValueError, match="read-only"):
        kernel(x, x, out=still)
    assert not still.any()
    with pytest.raises(TypeError, match="float64"):
        kernel(x, x.astype(float))
    with pytest.raises(TypeError, match=">f4"):
        kernel(x, x.astype(">f4"))
    with pytest.raises(TypeError):
        kernel(x)
    with pytest.raises(TypeError):
        kernel(x, "no")
    with pytest.raises(ValueError, match="broadcast"):
        kernel(x, np.zeros(3, np.float32))


def test_python_scalars_as_inputs():
    x = random(5, 6)
    kernel = elementwise.kernel([X * Y], ["float32"] * 2)
    same(kernel(x, 2), x * np.float32(2))
    same(kernel(2.5, x), x * np.float32(2.5))
    same(kernel(2.0, 3.0), np.array(6, np.float32))


def test_unaligned_arrays_and_odd_strides():
    record = np.zeros(500, np.dtype([("pad", "u1"), ("x", "<f4"), ("y", "<f4")]))
    record["x"], record["y"] = random(500), random(500, seed=1)
    kernel = elementwise.kernel([X + Y], ["float32"] * 2)
    same(kernel(record["x"], record["y"]), record["x"] + record["y"])
    shifted = np.zeros(4 * 500 + 1, np.uint8)[1:].view(np.float32)
    kernel(record["x"], record["y"], out=shifted)
    same(shifted, record["x"] + record["y"])


def test_more_dimensions_than_loops_can_merge():
    x = random(*[2] * 12)
    order = np.random.default_rng(0).permutation(12)
    same(elementwise.kernel([X + Y], ["float32"] * 2)(x, x.transpose(order)), x + x.transpose(order))
    many = random(*[1] * 30, 3)
    same(elementwise.kernel([-X], ["float32"])(many), -many)


LEAVES = st.sampled_from([X, Y, Z]) | st.sampled_from([0.5, -1.25, 3.0]).map(lambda v: e.constant(v, "float32"))
OPERATIONS = {"add": np.add, "sub": np.subtract, "mul": np.multiply, "div": np.divide, "maximum": np.maximum,
              "minimum": np.minimum, "neg": np.negative, "abs": np.abs, "floor": np.floor, "round": np.rint}
EXPRESSIONS = st.recursive(LEAVES, lambda inner: st.one_of(
    st.builds(e.apply, st.sampled_from(["add", "sub", "mul", "div", "maximum", "minimum"]), inner, inner),
    st.builds(e.apply, st.sampled_from(["neg", "abs", "floor", "round"]), inner),
    st.builds(lambda a, b, c: e.select(a < b, b, c), inner, inner, inner)), max_leaves=8)


def reference(node, inputs):
    if node.op == "input":
        return inputs[node.const]
    if node.op == "constant":
        return np.float32(node.value)
    args = [reference(arg, inputs) for arg in node.args]
    if node.op == "select":
        return np.where(*args)
    return np.less(*args) if node.op == "lt" else OPERATIONS[node.op](*args)


@given(EXPRESSIONS, st.integers(0, 99))
@settings(max_examples=40, deadline=None)
def test_random_expressions(node, seed):
    inputs = [random(131, seed=seed), random(1, seed=seed + 1), random(131, seed=seed + 2)]
    with np.errstate(all="ignore"):
        want = np.broadcast_to(np.asarray(reference(node, inputs), np.float32), (131,))
    got = elementwise.kernel([node], ["float32"] * 3)(*inputs)
    np.testing.assert_array_equal(got, want)


def test_results_do_not_depend_on_position():
    # equal inputs give equal bits at any position: in a full vector, in the tail, at any stride
    node = e.apply("div", X * X + 1.1, X + 3.3)
    kernel = elementwise.kernel([node], ["float32"])
    one = kernel(np.float32(0.7))
    for n in (1, 5, 16, 100, 5000):
        assert (kernel(np.full(n, 0.7, np.float32)) == one).all()
        assert (kernel(np.full((n, 3), 0.7, np.float32)[:, 1]) == one).all()


def test_kernels_are_cached():
    assert elementwise.kernel([X + Y], ["float32"] * 2) is elementwise.kernel([X + Y], [np.float32, np.float32])


def test_a_missing_input():
    with pytest.raises(TypeError, match="x1"):
        elementwise.kernel([X + Y], ["float32"])
    with pytest.raises(TypeError, match="x0"):
        elementwise.kernel([X], ["float64"])
    with pytest.raises(ValueError, match="at least one"):
        elementwise.kernel([], ["float32"])


def test_one_kernel_from_many_threads():
    kernel = elementwise.kernel([X * Y + Z - X], ["float32"] * 3)
    failures = []

    def call_repeatedly(seed):
        x, y, z = (random(90_000, seed=seed + i) for i in range(3))
        want = x * y + z - x
        for i in range(60):
            n = 90_000 if i % 3 else 100 + i
            got = kernel(x[:n], y[:n], z[:n]) if i % 2 else kernel(x[:n][::-1], y[:n][::-1], z[:n][::-1])[::-1]
            if not np.array_equal(got, want[:n]):
                failures.append((seed, i))

    workers = [threading.Thread(target=call_repeatedly, args=(seed,)) for seed in range(8)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert not failures


@pytest.mark.parametrize("count", [1, 2, 3, 5])
def test_any_number_of_threads(count, monkeypatch):
    monkeypatch.setattr(limits, "_limit", count)
    x, y = random(500_000), random(500_000, seed=1)
    kernel = elementwise.kernel([X * Y], ["float32"] * 2)
    for _ in range(20):
        same(kernel(x, y), x * y)


def test_kernels_expose_their_code():
    kernel = elementwise.kernel([X * Y - Z], ["float32"] * 3)
    assert "fmul" in kernel.ir
    assert "define" in kernel.ir
    assert "body" in kernel.asm
    assert "sub(mul(x0, x1), x2)" in repr(kernel)


@pytest.mark.parametrize("dtype", ["float32", "float64", "int32", "bool", "float16", "uint8"])
@pytest.mark.parametrize("shape", [(16, 16), (17, 33), (100, 130), (1, 50), (15, 200), (200, 15), (3, 64, 48),
                                   (5, 48, 64), (2, 3, 40, 33), (700, 900)])
def test_transposed_operands(dtype, shape):
    a, b = e.variable(0, dtype), e.variable(1, dtype)
    kernel = elementwise.kernel([e.cast(a, "float32") - e.cast(b, "float32") * 2], [dtype] * 2)
    x = (random(*shape) * 3).astype(dtype)
    y = (random(*shape[:-2], shape[-1], shape[-2], seed=1) * 3).astype(dtype).swapaxes(-1, -2)
    for p, q in [(x, y), (y, x), (x[1:], y[1:]), (x[..., 1:], y[..., 1:])]:
        same(kernel(p, q), p.astype("float32") - q.astype("float32") * 2)
