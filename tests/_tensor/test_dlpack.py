"""DLPack in both directions, with NumPy and between the two libraries; errors of PyTorch."""

import numpy as np
import pytest

import flambeau

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.parity

DTYPES = ["bool", "uint8", "int8", "int16", "int32", "int64", "float16", "bfloat16", "float32", "float64", "complex64",
          "complex128", "float8_e4m3fn", "float8_e5m2"]


@pytest.mark.parametrize("version", [None, (1, 0)])
@pytest.mark.parametrize("name", DTYPES)
def test_memory_is_shared_between_the_libraries(name, version):
    for source, target in ((torch, flambeau), (flambeau, torch), (flambeau, flambeau)):
        x = source.ones(2, 3).to(getattr(source, name)).t()
        y = target.from_dlpack(x.__dlpack__(max_version=version))
        assert y.data_ptr() == x.data_ptr()
        assert str(y.dtype).split(".")[1] == name
        assert (tuple(y.shape), tuple(y.stride())) == ((3, 2), (1, 3))


class Exporter:
    """An array of another library, which records the protocol's arguments."""

    def __init__(self, array):
        self.array, self.seen = array, []

    def __dlpack__(self, **arguments):
        self.seen.append(sorted(arguments))
        return self.array.__dlpack__(**arguments)

    def __dlpack_device__(self):
        return (1, 0)


@pytest.mark.parametrize("options", [{}, {"copy": True}, {"copy": False}, {"device": "cpu"}])
def test_arguments_of_the_protocol(options):
    found = []
    for module in (torch, flambeau):
        exporter = Exporter(np.arange(3.0))
        x = module.from_dlpack(exporter, **options)
        found.append((exporter.seen, x.tolist(), x.data_ptr() == exporter.array.ctypes.data))
    assert found[0] == found[1]


def test_read_only_memory_is_shared():
    array = np.arange(4.0)[::2]
    array.flags.writeable = False
    for module in (torch, flambeau):
        x = module.from_dlpack(array)
        assert x.data_ptr() == array.ctypes.data
        assert x.tolist() == [0, 2]


CALLS = [
    lambda m: m.ones(2, requires_grad=True).__dlpack__(), lambda m: m.from_dlpack(5),
    lambda m: m.ones(2).__dlpack__(stream=1), lambda m: m.ones(2).__dlpack__(stream="a"),
    lambda m: m.ones(2, device="meta").__dlpack__(), lambda m: m.eye(2).to_sparse().__dlpack__(),
    lambda m: [m.from_dlpack(capsule) for capsule in [m.ones(2).__dlpack__()] * 2],
    lambda m: m.from_dlpack(m.ones(2), device="cuda"), lambda m: m.from_dlpack(np.zeros(3, "U1")),
]


@pytest.mark.parametrize("call", CALLS)
def test_errors(call):
    found = []
    for module in (torch, flambeau):
        with pytest.raises(Exception) as error:
            call(module)
        found.append((error.type, str(error.value)))
    assert found[0] == found[1]


def test_devices_and_functions():
    assert flambeau.ones(2).__dlpack_device__() == (flambeau.utils.dlpack.DLDeviceType.kDLCPU, 0)
    x = flambeau.ones(2)
    assert flambeau.from_dlpack(flambeau.to_dlpack(x)).data_ptr() == x.data_ptr()
    assert flambeau.from_dlpack(x, copy=True).data_ptr() != x.data_ptr()
