"""Names of PyTorch that packages use while they are imported: torchvision's and torch-geometric's."""

import importlib

import pytest

import flambeau

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.parity
BOTH = (torch, flambeau)


@pytest.mark.parametrize("device", ["cpu", "meta", "cuda", "cuda:0"])
def test_devices_of_compiled_functions(device):
    importlib.import_module("torch._dynamo.utils")
    found = [m._dynamo.utils.is_compile_supported(m.device(device)) for m in BOTH]
    assert found[0] == found[1]


@pytest.mark.parametrize("name", ["_sparse_addmm", "_sparse_mm_reduce_impl"])
def test_operators_of_sparse_products_can_be_overridden(name):
    schemas = [str(getattr(m.ops.aten, name).default._schema) for m in BOTH]
    assert schemas[0] == schemas[1]


def test_functions_of_remote_calls_are_refused_when_they_are_called():
    importlib.import_module("torch.distributed.rpc")
    messages = []
    for m in BOTH:
        @m.distributed.rpc.api._require_initialized
        def remote(value):
            """Remote."""

        assert (remote.__name__, remote.__doc__) == ("remote", "Remote.")
        with pytest.raises(RuntimeError) as error:
            remote(1)
        messages.append(str(error.value))
    assert messages[0] == messages[1]


@pytest.mark.parametrize(("suffixes", "new_line"), [([], False), (["a=1"], False), (["a=1"], True),
                                                    (["b" * 50, "c"], False)])
def test_suffixes_of_printed_tensors(suffixes, new_line):
    texts = [m._tensor_str._add_suffixes("tensor([1., 2.]", suffixes, 7, new_line) for m in BOTH]
    assert texts[0] == texts[1]


def test_printed_tensors_with_other_contents():
    texts = [m._tensor_str._str_intern(m.ones(2, requires_grad=True), tensor_contents="<ones>") for m in BOTH]
    assert texts[0] == texts[1]


@pytest.mark.parametrize(("name", "args"), [("uniform", (-1, 2)), ("normal", (1, 2)), ("trunc_normal", (0, 1, -1, 1)),
                                            ("fill", (3,)), ("zero", ())])
def test_fills_without_gradient(name, args):
    filled = []
    for m in BOTH:
        m.manual_seed(0)
        filled.append(getattr(m.nn.init, f"_no_grad_{name}_")(m.empty(3, requires_grad=True), *args).tolist())
    assert filled[0] == filled[1]


def test_reductions_of_segments():
    sums = [m._segment_reduce(m.arange(5.0), "sum", offsets=m.tensor([0, 2, 5]), initial=0).tolist() for m in BOTH]
    assert sums[0] == sums[1]


@pytest.mark.parametrize("name", ["equal", "allclose"])
def test_comparisons_of_all_elements_are_dispatched(name):
    found = []
    for m in BOTH:
        class Wrapper(m.Tensor):
            @staticmethod
            def __new__(cls, data, m=m):
                return m.Tensor._make_wrapper_subclass(cls, data.size(), dtype=data.dtype)

            def __init__(self, data):
                self.data_of = data

            @classmethod
            def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
                found.append(str(func))
                return func(*(x.data_of if isinstance(x, cls) else x for x in args), **(kwargs or {}))

        wrapped = Wrapper(m.ones(2))
        found.append([getattr(m, name)(wrapped, m.ones(2)), getattr(m, name)(m.zeros(2), wrapped),
                      getattr(wrapped, name)(wrapped)])
    assert found[:4] == found[4:]


@pytest.mark.parametrize("pair", [
    lambda m: (1.0, 1.0 + 1e-6), lambda m: (m.ones(2), m.ones(2) + 1e-7), lambda m: (m.ones(2), m.ones(2).double()),
    lambda m: ([1.0, m.ones(1)], [1.0, m.ones(1)]), lambda m: (m.ones(1), 1.0), lambda m: ({"a": 1}, {"a": 1}),
    lambda m: ("a", "b"), lambda m: (1, 2), lambda m: ({"a": m.ones(1)}, {"a": m.zeros(1)}), lambda m: (None, None),
    lambda m: (m.tensor(float("nan")), m.tensor(float("nan"))), lambda m: ({"a": 1}, {"b": 1}),
    lambda m: ([1], [1, 2]), lambda m: (m.ones(1), 2.0),
])
def test_equality_in_test_cases(pair):
    outcomes = []
    for m in BOTH:
        case = importlib.import_module(f"{m.__name__}.testing._internal.common_utils").TestCase()
        try:
            case.assertEqual(*pair(m))  # noqa: PT009 - what is tested
        except AssertionError:
            outcomes.append("differs")
        else:
            outcomes.append("equal")
    assert outcomes[0] == outcomes[1]


def test_groups_of_a_subclass_of_optimizer_get_no_options_when_a_state_dict_is_loaded():
    groups = []
    for m in BOTH:
        class Own(m.optim.Optimizer):
            def step(self, closure=None):
                """Do nothing."""

        optimizer = Own([m.zeros(1, requires_grad=True)], {"lr": 1.0})
        optimizer.load_state_dict(optimizer.state_dict())
        groups.append(sorted(optimizer.param_groups[0]))
    assert groups[0] == groups[1] == ["lr", "params"]


@pytest.mark.parametrize("name", ["Parameter", "Buffer"])
def test_classes_of_parameters_and_buffers(name):
    found = [(type(getattr(m.nn, name)).__name__, type(getattr(m.nn, name)) is getattr(m.nn.parameter, f"_{name}Meta"))
             for m in BOTH]
    assert found[0] == found[1]


def test_calls_wait_for_cuda():
    called = []
    assert [m.cuda._lazy_call(lambda: called.append(1)) for m in BOTH] == [None, None]
    assert not called
