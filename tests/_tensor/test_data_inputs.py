"""What `tensor`, `as_tensor`, `asarray` and legacy constructors take: sequences, buffers, arrays of other libraries."""

import array
import pickle
import sys
import warnings

import numpy as np
import pytest

import flambeau

torch = pytest.importorskip("torch")
pytestmark = [pytest.mark.parity, pytest.mark.filterwarnings("ignore")]


class Sequence:
    def __init__(self, length):
        self.length = length

    def __len__(self):
        return self.length

    def __getitem__(self, at):
        if at >= self.length:
            raise IndexError
        return at * 2


class Keyed(Sequence):
    def __getitem__(self, at):
        raise KeyError(at)


class OnlyArray:
    def __array__(self, *args, **kwargs):
        return np.ones(2)


class OnlyFloat:
    def __float__(self):
        return 2.5


class NoLength:
    def __getitem__(self, at):
        return 1


DATA = [
    Sequence(3), Sequence(0), Keyed(2), OnlyArray(), OnlyFloat(), NoLength(), [Sequence(2), Sequence(2)],
    [Sequence(2), Sequence(3)], [OnlyArray()], [OnlyFloat()], {}, {1: 2}, {1}, None, [None], object(), [{}],
    b"ab", "ab", ["a"], [b"a"], range(3), [range(2), range(2)], [[]], [[], [1]], [[1], 2], [1, [2]], [[1, 2], [3]],
    [np.ones(2), [1, 2]], [[1, 2], np.ones(2)], [np.ones(2), np.ones(3)], [np.ones((2, 1)), 3],
    (np.float32(1), np.float64(2)), np.array([None]), np.array(["a"]), np.ones(2, ">f4"), (x for x in range(3)),
    [True, 1.0], [1, 2j], array.array("f", [1, 2]), bytearray(b"abcd"), memoryview(b"abcd"),
]


def outcome(module, function, data, options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            out = getattr(module, function)(data, **options)
        except (TypeError, ValueError, RuntimeError, BufferError) as error:
            return type(error), str(error).replace("flambeau", "torch")
    return str(out.dtype).split(".")[1], out.tolist()


@pytest.mark.parametrize(("function", "at"), [
    (function, at) for function in ("tensor", "as_tensor", "asarray", "FloatTensor") for at in range(len(DATA))
    if function != "FloatTensor" or not isinstance(DATA[at], bytes)])
def test_data(function, at):
    assert outcome(flambeau, function, DATA[at], {}) == outcome(torch, function, DATA[at], {})


@pytest.mark.parametrize("options", [{"copy": True}, {"copy": False}, {"dtype": "uint8"}, {"requires_grad": True},
                                     {"dtype": "int32", "copy": False}, {"dtype": "int32", "requires_grad": True}])
@pytest.mark.parametrize("data", [[1.0, 2.0], np.ones(2), np.float32(2), array.array("i", [1, 2]), bytearray(b"abcd"),
                                  2.5, Sequence(2)], ids=lambda x: type(x).__name__)
def test_asarray(data, options):
    found = []
    for module in (torch, flambeau):
        chosen = {k: getattr(module, v) if k == "dtype" else v for k, v in options.items()}
        found.append(outcome(module, "asarray", data, chosen))
    assert found[0] == found[1]


@pytest.mark.parametrize("wrapped", [lambda a: a, memoryview])
def test_buffers_share_memory(wrapped):
    buffer = array.array("f", [1, 2])
    x = flambeau.frombuffer(wrapped(buffer), dtype=flambeau.float32)
    x[0] = 5
    assert buffer[0] == 5
    with pytest.raises(ValueError, match="buffer protocol"):
        flambeau.frombuffer(5, dtype=flambeau.float32)


def test_series_and_images():
    pandas = pytest.importorskip("pandas")
    for data in (pandas.Series([1, 2, 3]), pandas.Series([1, 2], index=[5, 6]), pandas.DataFrame({"a": [1.0]}),
                 pandas.Series([True]), pandas.Index([1, 2]), [pandas.Series([1, 2])] * 2):
        assert outcome(flambeau, "tensor", data, {}) == outcome(torch, "tensor", data, {})


def test_a_conversion_to_the_same_dtype_under_another_number():
    x = torch.from_numpy(np.array([1, 2], np.longlong))  # int64, too, but another `numpy.dtype.num` on Linux
    assert x.long() is x


@pytest.mark.parametrize("dtype", ["float16", "float32", "int64", "complex64"])
@pytest.mark.parametrize("make", [flambeau.from_numpy, flambeau.tensor, flambeau.as_tensor])
def test_other_instances_of_numpys_dtypes(dtype, make):
    """An unpickled dtype, or one whose byte order is spelt, is native, but another object than NumPy's own."""
    own = np.dtype(dtype)
    for other in (pickle.loads(pickle.dumps(own)), own.newbyteorder("<" if sys.byteorder == "little" else ">")):
        assert make(np.ones(2, other)).numpy().dtype is own
    with pytest.raises(ValueError, match="byte order different"):
        make(np.ones(2, own.newbyteorder("S")))
