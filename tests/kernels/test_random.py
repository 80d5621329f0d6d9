"""The generator and its distributions, compared with values recorded from PyTorch 2.13, and properties of them."""

from __future__ import annotations

import zlib

import numpy as np
import pytest

from flambeau.dtypes import BFLOAT16
from flambeau.kernels import random
from flambeau.kernels.random import Engine
from flambeau.kernels.random.fma import fma32, fma64

F16, F32, F64 = np.dtype(np.float16), np.dtype(np.float32), np.dtype(np.float64)
C64, I64, U8, BOOL = np.dtype(np.complex64), np.dtype(np.int64), np.dtype(np.uint8), np.dtype(np.bool_)

#: draws after torch.manual_seed(6) -> checksums of PyTorch's bytes and of its generator's state afterwards
CASES = {
    "rand": lambda e: random.uniform(e, 1000, F32),
    "rand double": lambda e: random.uniform(e, 1000, F64),
    "rand half": lambda e: random.uniform(e, 1000, F16),
    "rand bfloat16": lambda e: random.uniform(e, 1000, BFLOAT16),
    "uniform_": lambda e: random.uniform(e, 1000, F32, -0.03, 0.07),
    "uniform_ double": lambda e: random.uniform(e, 1000, F64, -0.03, 0.07),
    "randn 5": lambda e: random.normal(e, 5, F32),
    "randn 16": lambda e: random.normal(e, 16, F32),
    "randn 1000": lambda e: random.normal(e, 1000, F32),
    "randn complex": lambda e: random.normal(e, 100, C64),
    "randn half": lambda e: random.normal(e, 1000, F16),
    "randn bfloat16": lambda e: random.normal(e, 1000, BFLOAT16),
    "normal_": lambda e: random.normal(e, 1003, F32, 0.3, 1.7),
    "randint": lambda e: random.randint(e, 1000, -5, 100),
    "randint wide": lambda e: random.randint(e, 1000, -(1 << 40), 1 << 41),
    "random_ uint8": lambda e: random.random(e, 1000, U8),
    "random_ half": lambda e: random.random(e, 1000, F16),
    "randperm 100": lambda e: random.randperm(e, 100),
    "randperm 3000": lambda e: random.randperm(e, 3000),
    "bernoulli_": lambda e: random.bernoulli(e, 1000, 0.3, F32),
    "bernoulli_ bool": lambda e: random.bernoulli(e, 1000, 0.3, BOOL),
    "exponential_": lambda e: random.exponential(e, 1000, F32, 1.5),
    "cauchy_": lambda e: random.cauchy(e, 1000, F32, 1.0, 2.0),
    "log_normal_": lambda e: random.log_normal(e, 1000, F32),
    "geometric_": lambda e: random.geometric(e, 1000, 0.2, I64),
    "multinomial": lambda e: random.multinomial(e, np.arange(1, 51, dtype=F32), 20),
    "multinomial again": lambda e: random.multinomial(e, np.arange(1, 51, dtype=F32), 200, True),
    "poisson": lambda e: random.poisson(e, np.array([0.5, 3.0, 20.0, 0.0] * 50, F32)),
}
GOLDEN = {
    "rand": (1831036653, 4000566454),
    "rand double": (101578916, 3079619080),
    "rand half": (1211698258, 4000566454),
    "rand bfloat16": (3333160292, 4000566454),
    "uniform_": (2636364761, 4000566454),
    "uniform_ double": (1427030127, 3079619080),
    "randn 5": (2749471146, 3940700159),
    "randn 16": (1502766171, 2435720907),
    "randn 1000": (1012109792, 2672826160),
    "randn complex": (3263986768, 1323863720),
    "randn half": (4158111345, 4028620365),
    "randn bfloat16": (1377313665, 4028620365),
    "normal_": (3950997642, 2763133604),
    "randint": (2458621729, 4000566454),
    "randint wide": (2493104572, 3079619080),
    "random_ uint8": (3780839991, 4000566454),
    "random_ half": (2475226954, 4000566454),
    "randperm 100": (1891386467, 3676520593),
    "randperm 3000": (631651920, 734743109),
    "bernoulli_": (3404689521, 3079619080),
    "bernoulli_ bool": (2479381893, 3079619080),
    "exponential_": (3600956010, 3079619080),
    "cauchy_": (1554380986, 3079619080),
    "log_normal_": (2909809981, 3079619080),
    "geometric_": (637416986, 3079619080),
    "multinomial": (3313608833, 987636379),
    "multinomial again": (28113323, 1475657588),
    "poisson": (2196409189, 3166894878),
}


@pytest.mark.parametrize("name", CASES)
def test_golden(name: str) -> None:
    engine = Engine(6)
    drawn = CASES[name](engine)
    assert (zlib.crc32(drawn.tobytes()), zlib.crc32(engine.get_state().tobytes())) == GOLDEN[name]


def test_readable_golden() -> None:
    drawn = [*random.uniform(Engine(0), 3, F32).tolist(), *random.normal(Engine(0), 3, F32).tolist()]
    assert drawn == pytest.approx([0.4962566, 0.7682218, 0.0884774, 1.5409961, -0.2934289, -2.1787894], abs=1e-7)
    assert random.randperm(Engine(0), 5).tolist() == [4, 0, 1, 3, 2]


def test_seeds() -> None:
    assert Engine(-1).initial_seed == (1 << 64) - 1
    assert Engine().initial_seed == random.DEFAULT_SEED
    assert Engine(1 << 32).random() == Engine(0).random(), "the twister sees 32 bits of a seed"
    for seed in (1 << 64, -(1 << 63) - 1):
        with pytest.raises(ValueError, match="Overflow when unpacking long long"):
            Engine(seed)
    engine = Engine(0)
    assert engine.seed_from_system() == engine.initial_seed < 1 << 53


@pytest.mark.parametrize("n", [0, 1, 47, 48, 49, 623, 624, 625, 5000])
def test_bulk_draws_equal_single_draws(n: int) -> None:
    one, many = Engine(3), Engine(3)
    assert [one.random() for _ in range(n)] == many.draw(n).tolist()
    assert one.random64() == int(many.draw64(1)[0])
    one.skip(700)
    many.draw(700)
    assert (one.get_state() == many.get_state()).all()


def test_state_round_trip() -> None:
    engine = Engine(5)
    random.normal(engine, 3, F32)  # leaves a cached sample
    engine.draw(1000)
    other = Engine()
    other.set_state(engine.get_state())
    twin = engine.copy()
    expected = random.normal(engine, 40, F64).tolist() + random.normal(engine, 3, F32).tolist()
    for again in (other, twin):
        assert again.initial_seed == 5
        assert random.normal(again, 40, F64).tolist() + random.normal(again, 3, F32).tolist() == expected


def test_seeding_drops_the_cached_sample() -> None:
    engine = Engine(5)
    random.normal(engine, 1, F32)
    engine.seed(5)
    assert random.normal(engine, 2, F64).tolist() == random.normal(Engine(5), 2, F64).tolist()


def test_bad_states() -> None:
    with pytest.raises(RuntimeError, match="Expected a CPUGeneratorImplState of size 5056 but found the input "
                                           "RNG state size to be 10"):
        Engine().set_state(np.zeros(10, np.uint8))
    with pytest.raises(RuntimeError, match="Invalid mt19937 state"):
        Engine().set_state(np.zeros(5056, np.uint8))


def test_fused_multiply_add_of_singles() -> None:
    rng = np.random.default_rng(0)
    a = rng.standard_normal(20000).astype(F32)
    for b, c in ((0.1, 1e-3), (3.7, -2.0), (1e-30, 1e-38), (1.5, 0.0), (-0.25, 7.0), (1e38, 3e38)):
        b, c = float(F32.type(b)), float(F32.type(c))
        exact = [_fused(float(x), b, c, F32.type) for x in a[:2000]]
        assert fma32(a[:2000], b, c).tolist() == exact
    # a sum next to the midpoint of two float32 numbers, where double rounding is wrong
    x, y, z = np.float32(1 + 2.0**-23), 2.0**-24 * (1 + 2.0**-23), 1.0
    assert fma32(np.array([x]), y, z).tolist() == [_fused(float(x), y, z, F32.type)]


def test_fused_multiply_add_of_doubles() -> None:
    rng = np.random.default_rng(1)
    a = rng.standard_normal(1000)
    for b, c in ((0.1, 1e-3), (3.7, -2.0), (1e-300, 1e-305), (1.5, 0.0), (-0.25, 7.0), (1e308, 1e308),
                 (0.1, 1e-17)):
        assert fma64(a, b, c).tolist() == [_fused(float(x), b, c, float) for x in a]


def _fused(a: float, b: float, c: float, kind: type) -> float:
    """The exact sum, rounded by comparing with the neighbours of an approximation."""
    from fractions import Fraction

    exact = Fraction(a) * Fraction(b) + Fraction(c)
    if kind is float:
        try:
            return float(exact)
        except OverflowError:
            return float("inf") if exact > 0 else float("-inf")
    with np.errstate(all="ignore"):
        near = kind(float(exact))
        if not np.isfinite(near):
            return float(near)
        around = [near, np.nextafter(near, kind(-np.inf)), np.nextafter(near, kind(np.inf))]
    finite = [v for v in around if np.isfinite(v)]
    return float(min(finite, key=lambda v: (abs(Fraction(float(v)) - exact), int(v.view(np.uint32)) & 1)))


@pytest.mark.parametrize("n", [1001, 1500, 4096])
def test_randperm_by_sorting_equals_swapping(n: int) -> None:
    engine = Engine(n)
    steps = Engine(n).draw(n - 1) % np.arange(n, 1, -1, dtype=np.uint32)
    order = list(range(n))
    for i, step in enumerate(steps.tolist()):
        order[i], order[i + step] = order[i + step], order[i]
    assert random.randperm(engine, n).tolist() == order


def test_inside_out_shuffle_is_a_permutation() -> None:
    from flambeau.kernels.random.permutation import _inside_out

    assert sorted(_inside_out(Engine(1), 70000).tolist()) == list(range(70000))


def test_results_follow_strides() -> None:
    out = np.zeros((2, 3), F32).T
    random.place(np.arange(6, dtype=F32), out)
    assert out.tolist() == [[0, 3], [1, 4], [2, 5]]


@pytest.mark.parametrize(("call", "kind", "text"), [
    (lambda e: random.normal(e, 3, F32, 0, -1), RuntimeError, "normal expects std >= 0.0, but found std -1"),
    (lambda e: random.normal(e, 3, I64), NotImplementedError,
     "\"normal_kernel_cpu\" not implemented for 'Long'"),
    (lambda e: random.uniform(e, 3, F32, 2, 1), RuntimeError,
     "uniform_ expects to return a [from, to) range, but found from=2 > to=1"),
    (lambda e: random.uniform(e, 3, F16, 0, 1e6), RuntimeError, "to is out of bounds for c10::Half"),
    (lambda e: random.uniform(e, 3, F16, -60000, 60000), RuntimeError,
     ("uniform_ expects to-from <= std::numeric_limits<Half>::max(), but found to=60000 and from=-60000 which "
      "result in to-from to exceed the limit")),
    (lambda e: random.uniform(e, 3, I64), NotImplementedError,
     "\"check_uniform_bounds\" not implemented for 'Long'"),
    (lambda e: random.randint(e, 3, 5, 5), RuntimeError,
     "random_ expects 'from' to be less than 'to', but got from=5 >= to=5"),
    (lambda e: random.randint(e, 3, 0, 300, U8), RuntimeError, "to - 1 is out of bounds for unsigned char"),
    (lambda e: random.random(e, 3, np.dtype(np.uint16)), NotImplementedError,
     "\"random_kernel_cpu\" not implemented for 'UInt16'"),
    (lambda e: random.randperm(e, 3000, F16), RuntimeError, "n cannot be greater than 2049 for Half type."),
    (lambda e: random.randperm(e, 300, U8), RuntimeError,
     "value cannot be converted to type uint8_t without overflow"),
    (lambda e: random.bernoulli(e, 3, 1.5, F32), RuntimeError,
     "bernoulli_ expects p to be in [0, 1], but got p=1.5"),
    (lambda e: random.bernoulli_each(e, np.array([0.1, 2.0]), F32), RuntimeError,
     ("Expected p_in >= 0 && p_in <= 1 to be true, but got false.  (Could this error message be improved?  If "
      "so, please report an enhancement request to PyTorch.)")),
    (lambda e: random.exponential(e, 3, F32, 0), RuntimeError,
     "exponential_ expects lambda > 0.0, but found lambda=0"),
    (lambda e: random.cauchy(e, 3, I64), RuntimeError,
     ("Cauchy distribution is a continuous probability distribution. dtype must be a floating point but you "
      "specified long int")),
    (lambda e: random.geometric(e, 3, 0.0, F32), RuntimeError,
     "geometric_ expects p to be in (0, 1), but got p=0"),
    (lambda e: random.poisson(e, np.array([-1.0])), RuntimeError,
     "invalid Poisson rate, expected rate to be non-negative"),
    (lambda e: random.multinomial(e, np.array([1.0, -1.0]), 1), RuntimeError,
     "probability tensor contains either `inf`, `nan` or element < 0"),
    (lambda e: random.multinomial(e, np.array([1.0, np.inf]), 3, True), RuntimeError,
     "invalid multinomial distribution (encountering probability entry = infinity or NaN)"),
    (lambda e: random.multinomial(e, np.array([0.0, 0.0]), 1), RuntimeError,
     "invalid multinomial distribution (sum of probabilities <= 0)"),
    (lambda e: random.multinomial(e, np.array([1.0, 1.0]), 3), RuntimeError,
     "cannot sample n_sample > prob_dist.size(-1) samples without replacement"),
])
def test_errors(call, kind: type[Exception], text: str) -> None:
    with pytest.raises(kind) as caught:
        call(Engine(0))
    assert str(caught.value) == text


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("size", [5, 48, 1001])
def test_normal_numbers_of_a_dtype_with_metadata(dtype: type, size: int) -> None:
    """Arrays without elements, of distributed tensors, have such a dtype."""
    marked = np.dtype(dtype, metadata={"elements": "none"})
    drawn = random.normal(Engine(3), size, marked)
    assert drawn.tolist() == random.normal(Engine(3), size, np.dtype(dtype)).tolist()
