"""`Module`: registration, lookup by path, hooks, repr, state dicts."""

from __future__ import annotations

import copy
import gc
import pickle
import weakref
from collections import OrderedDict

import pytest

import flambeau as torch
from flambeau import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = nn.Linear(2, 3)
        self.act = nn.ReLU()
        self.second = nn.Linear(3, 1, bias=False)
        self.register_buffer("seen", torch.zeros(()))
        self.register_buffer("scratch", torch.zeros(2), persistent=False)

    def forward(self, x):
        return self.second(self.act(self.first(x)))


class Scale(nn.Module):
    def __init__(self, factor=3.0):
        super().__init__()
        self.factor = nn.Parameter(torch.tensor(factor))

    def forward(self, x, *, twice=False):
        y = x * self.factor
        return y * 2 if twice else y


# -- registration ------------------------------------------------------------------------------------


def test_names():
    net = Net()
    assert [n for n, _ in net.named_parameters()] == ["first.weight", "first.bias", "second.weight"]
    assert [n for n, _ in net.named_buffers()] == ["seen", "scratch"]
    assert [n for n, _ in net.named_modules()] == ["", "first", "act", "second"]
    assert [n for n, _ in net.named_modules(prefix="net")] == ["net", "net.first", "net.act", "net.second"]
    assert [n for n, _ in net.named_children()] == ["first", "act", "second"]
    assert list(net.children()) == [net.first, net.act, net.second]
    assert [n for n, _ in net.named_parameters(prefix="m", recurse=False)] == []
    assert list(net.state_dict()) == ["seen", "first.weight", "first.bias", "second.weight"]


def test_shared_members_are_yielded_once():
    net = Net()
    net.again = net.first
    net.second_weight = net.second.weight
    assert len(list(net.parameters())) == 3
    assert [n for n, _ in net.named_parameters(remove_duplicate=False)] == [
        "second_weight", "first.weight", "first.bias", "second.weight", "again.weight", "again.bias"]
    assert len(list(net.modules())) == 4
    assert len(list(net.named_modules(remove_duplicate=False))) == 5
    assert "again.weight" in net.state_dict()


def test_assignment_before_init():
    class Early(nn.Module):
        def __init__(self, value):
            self.x = value

    with pytest.raises(AttributeError, match=r"^cannot assign parameters before Module.__init__\(\) call$"):
        Early(nn.Parameter(torch.zeros(1)))
    with pytest.raises(AttributeError, match=r"^cannot assign module before Module.__init__\(\) call$"):
        Early(nn.Module())
    Early(3)


@pytest.mark.parametrize(("act", "error", "text"), [
    (lambda m: setattr(m, "weight", torch.zeros(3)), TypeError,
     "cannot assign 'torch.FloatTensor' as parameter 'weight' (torch.nn.Parameter or None expected)"),
    (lambda m: setattr(m, "child", 3), TypeError,
     "cannot assign 'int' as child module 'child' (torch.nn.Module or None expected)"),
    (lambda m: setattr(m, "buf", 3), TypeError,
     "cannot assign 'int' as buffer 'buf' (torch.nn.Buffer, torch.Tensor or None expected)"),
    (lambda m: m.register_parameter("p", torch.zeros(1)), TypeError,
     "cannot assign 'torch.FloatTensor' object to parameter 'p' (torch.nn.Parameter or None required)"),
    (lambda m: m.register_parameter("weight.x", None), KeyError, "parameter name can't contain \".\""),
    (lambda m: m.register_parameter("", None), KeyError, 'parameter name can\'t be empty string ""'),
    (lambda m: m.register_parameter(3, None), TypeError, "parameter name should be a string. Got int"),
    (lambda m: m.register_parameter("forward", None), KeyError, "attribute 'forward' already exists"),
    (lambda m: m.register_buffer("weight", torch.zeros(1)), KeyError, "attribute 'weight' already exists"),
    (lambda m: m.register_buffer("b", 3), TypeError,
     "cannot assign 'int' object to buffer 'b' (torch Tensor or None required)"),
    (lambda m: m.add_module("a", 3), TypeError, "int is not a Module subclass"),
    (lambda m: m.add_module("a.b", nn.Module()), KeyError, 'module name can\'t contain ".", got: a.b'),
    (lambda m: m.add_module("weight", nn.Module()), KeyError, "attribute 'weight' already exists"),
    (lambda m: m.nothing, AttributeError, "'Linear' object has no attribute 'nothing'"),
    (lambda m: delattr(m, "nothing"), AttributeError, "'Linear' object has no attribute 'nothing'"),
    (lambda m: m.get_submodule("a.b"), AttributeError, "Linear has no attribute `a`"),
    (lambda m: m.get_parameter("in_features"), AttributeError, "`in_features` is not an nn.Parameter"),
    (lambda m: m.get_buffer("in_features"), AttributeError, "`in_features` is not a buffer"),
    (lambda m: m.set_submodule("", m), ValueError, "Cannot set the submodule without a target name!"),
    (lambda m: m.set_submodule("a", 3), ValueError, "`module` is not an nn.Module, found <class 'int'>"),
    (lambda m: m.set_submodule("a", m, strict=True), AttributeError, "Linear has no attribute `a`"),
    (lambda m: m.train(3), ValueError, "training mode is expected to be boolean"),
    (lambda m: nn.Module()(1), NotImplementedError,
     'Module [Module] is missing the required "forward" function'),
    (lambda m: nn.Module(3), TypeError, "Module.__init__() takes 1 positional argument but 2 were given"),
    (lambda m: nn.Module(a=3), TypeError, "Module.__init__() got an unexpected keyword argument 'a'"),
    (lambda m: m.get_extra_state(), RuntimeError,
     ("Reached a code path in Module.get_extra_state() that should never be called. Please file an issue at "
     "https://github.com/pytorch/pytorch/issues/new?template=bug-report.yml to report this bug.")),
])
def test_errors(act, error, text):
    m = nn.Linear(2, 2)
    m.child = nn.ReLU()
    m.register_buffer("buf", torch.zeros(1))
    with pytest.raises(error) as caught:
        act(m)
    assert caught.value.args[0].replace("flambeau.", "torch.") == text


def test_non_leaf_parameter_is_rejected():
    p = nn.Parameter(torch.zeros(1))
    computed = (p * 2).as_subclass(nn.Parameter) if hasattr(p, "as_subclass") else None
    if computed is None or computed.grad_fn is None:
        pytest.skip("no way to make a non-leaf parameter")
    with pytest.raises(ValueError, match="Cannot assign non-leaf Tensor to parameter 'p'"):
        nn.Module().register_parameter("p", computed)


def test_reassignment_across_registries():
    m = nn.Module()
    m.x = 3
    m.x = nn.Parameter(torch.zeros(1))
    assert "x" in m._parameters
    assert "x" not in m.__dict__
    with pytest.raises(TypeError, match=r"cannot assign '.*ReLU' as parameter 'x'"):
        m.x = nn.ReLU()
    del m.x
    m.x = nn.ReLU()
    assert "x" in m._modules
    m.x = nn.Parameter(torch.zeros(1))
    assert "x" in m._parameters
    assert "x" not in m._modules
    del m.x
    m.x = nn.Buffer(torch.zeros(1), persistent=False)
    assert "x" in m._buffers
    assert not m.state_dict()
    m.x = torch.ones(1)  # a plain tensor replaces a buffer's value, and it stays what it was
    assert "x" in m._buffers
    assert not m.state_dict()
    del m.x
    assert not hasattr(m, "x")
    assert "x" not in m._non_persistent_buffers_set


def test_buffer_is_a_marked_tensor():
    b = nn.Buffer(torch.ones(2))
    assert isinstance(b, nn.Buffer)
    assert isinstance(b, torch.Tensor)
    assert not isinstance(torch.ones(2), nn.Buffer)


def test_none_as_member():
    m = nn.Linear(2, 2, bias=False)
    assert m.bias is None
    assert list(m.state_dict()) == ["weight"]
    m.bias = nn.Parameter(torch.zeros(2))
    assert list(m.state_dict()) == ["weight", "bias"]


def test_paths():
    net = nn.Sequential(OrderedDict(a=nn.Sequential(nn.Linear(2, 2)), b=nn.ReLU()))
    assert net.get_submodule("a.0") is net.a[0]
    assert net.get_submodule("") is net
    assert net.get_parameter("a.0.weight") is net.a[0].weight
    net.set_submodule("a.0", nn.Tanh())
    assert isinstance(net.a[0], nn.Tanh)


def test_dir_has_members_but_no_indices():
    names = dir(nn.Sequential(nn.Linear(1, 1)))
    assert "forward" in names
    assert "0" not in names
    assert {"weight", "bias", "in_features"} <= set(dir(nn.Linear(1, 1)))


# -- modes, conversion -------------------------------------------------------------------------------


def test_train_eval_reach_everything():
    net = Net()
    assert net.eval() is net
    assert not any(m.training for m in net.modules())
    assert all(m.training for m in net.train().modules())


def test_apply_goes_children_first():
    order = []
    net = Net()
    assert net.apply(lambda m: order.append(type(m).__name__)) is net
    assert order == ["Linear", "ReLU", "Linear", "Net"]


def test_requires_grad_and_zero_grad():
    net = Net().requires_grad_(False)
    assert not any(p.requires_grad for p in net.parameters())
    net.requires_grad_()
    net(torch.ones(1, 2)).sum().backward()
    net.zero_grad(set_to_none=False)
    assert all(p.grad is not None and not p.grad.any() for p in net.parameters())
    net.zero_grad()
    assert all(p.grad is None for p in net.parameters())


def test_conversion_keeps_the_parameters():
    net = Net()
    weight = net.first.weight
    net(torch.ones(1, 2)).sum().backward()
    net.register_buffer("count", torch.tensor(3))
    assert net.double() is net
    assert net.first.weight is weight
    assert weight.dtype == torch.float64 == weight.grad.dtype == net.seen.dtype
    assert net.count.dtype == torch.int64
    for convert, dtype in ((net.float, torch.float32), (net.half, torch.float16), (net.bfloat16, torch.bfloat16)):
        convert()
        assert net.first.weight.dtype == dtype
    assert net.to(torch.float64).first.weight.dtype == torch.float64
    assert net.to("cpu", torch.float32).first.weight.dtype == torch.float32
    assert net.to(torch.ones(1, dtype=torch.float64)).seen.dtype == torch.float64
    assert net.to(dtype=torch.float32).seen.dtype == torch.float32
    with pytest.raises(TypeError, match=r"nn\.Module\.to only accepts floating point or complex dtypes"):
        net.to(torch.int32)
    with pytest.warns(UserWarning, match="Complex modules are a new feature"):
        nn.Linear(1, 1).to(torch.complex64)
    with pytest.raises(TypeError, match=r"^to\(\) received an invalid combination of arguments - got \(str, "):
        net.to("cpu", torch.float64, 3, 4)


# -- state -------------------------------------------------------------------------------------------


def test_state_dict_round_trip():
    a, b = Net(), Net()
    state = a.state_dict()
    assert isinstance(state, OrderedDict)
    assert state._metadata == {"": {"version": 1}, "first": {"version": 1}, "act": {"version": 1},
                               "second": {"version": 1}}
    assert not any(t.requires_grad for t in state.values())
    assert a.state_dict(keep_vars=True)["first.weight"] is a.first.weight
    keys = b.load_state_dict(state)
    assert repr(keys) == str(keys) == "<All keys matched successfully>"
    assert all(torch.equal(x, y) for x, y in zip(a.parameters(), b.parameters(), strict=True))


def test_state_dict_shares_memory():
    m = nn.Linear(1, 1)
    m.state_dict()["weight"].fill_(7.0)
    assert m.weight.item() == 7.0


def test_state_dict_destination_and_prefix():
    destination = {}
    assert nn.Linear(1, 1).state_dict(destination=destination, prefix="m.") is destination
    assert list(destination) == ["m.weight", "m.bias"]
    with pytest.warns(FutureWarning, match="Positional args are being deprecated, use kwargs instead"):
        nn.Linear(1, 1).state_dict({})


def test_load_errors():
    m = nn.Linear(2, 3)
    with pytest.raises(RuntimeError) as caught:
        m.load_state_dict({"weight": torch.zeros(3, 3), "x": 1})
    assert str(caught.value).replace("flambeau.", "torch.") == (
        'Error(s) in loading state_dict for Linear:\n\tMissing key(s) in state_dict: "bias". \n\t'
        'Unexpected key(s) in state_dict: "x". \n\tsize mismatch for weight: copying a param with shape '
        "torch.Size([3, 3]) from checkpoint, the shape in current model is torch.Size([3, 2]).")
    with pytest.raises(RuntimeError, match=r"expected torch\.Tensor or Tensor-like object from checkpoint but "
                                           "received <class 'int'>"):
        m.load_state_dict({"weight": 1, "bias": torch.zeros(3)})
    with pytest.raises(TypeError, match=r"Expected state_dict to be dict-like, got <class 'int'>\."):
        m.load_state_dict(3)
    keys = m.load_state_dict({"weight": torch.ones(3, 2), "z.y": torch.ones(1)}, strict=False)
    assert repr(keys) == "_IncompatibleKeys(missing_keys=['bias'], unexpected_keys=['z.y'])"
    assert m.weight.sum().item() == 6.0


def test_load_assign():
    m = nn.Linear(2, 2)
    new = torch.ones(2, 2, dtype=torch.float64)
    m.load_state_dict({"weight": new, "bias": torch.zeros(2)}, assign=True)
    assert m.weight.dtype == torch.float64
    assert m.weight.requires_grad
    assert isinstance(m.weight, nn.Parameter)


def test_load_scalar_from_old_checkpoint():
    m = Scale()
    m.load_state_dict({"factor": torch.tensor([5.0])})
    assert m.factor.item() == 5.0


def test_extra_state():
    class Extra(nn.Module):
        value = 3

        def get_extra_state(self):
            return {"value": self.value}

        def set_extra_state(self, state):
            self.value = state["value"]

    a, b = nn.Sequential(Extra()), nn.Sequential(Extra())
    a[0].value = 7
    state = a.state_dict()
    assert list(state) == ["0._extra_state"]
    b.load_state_dict(state)
    assert b[0].value == 7
    with pytest.raises(RuntimeError, match=r'Missing key\(s\) in state_dict: "0._extra_state"'):
        b.load_state_dict({})
    with pytest.raises(RuntimeError, match=r'Unexpected key\(s\) in state_dict: "_extra_state"'):
        nn.ReLU().load_state_dict({"_extra_state": 1})


def test_state_hooks():
    m = nn.Sequential(nn.Linear(1, 1))
    seen = []
    m.register_state_dict_pre_hook(lambda module, prefix, keep: seen.append(("pre", prefix, keep)))
    m.register_state_dict_post_hook(lambda module, state, prefix, meta: state.pop("0.bias") and None)
    state = m.state_dict()
    assert seen == [("pre", "", False)]
    assert list(state) == ["0.weight"]
    m._register_state_dict_hook(lambda module, state, prefix, meta: {"replaced": 1})
    assert m.state_dict() == {"replaced": 1}

    m = nn.Linear(1, 1)

    def rename(module, state, prefix, meta, strict, missing, unexpected, errors):
        assert module is m
        state[prefix + "weight"] = state.pop(prefix + "old")

    m.register_load_state_dict_pre_hook(rename)
    m.register_load_state_dict_post_hook(lambda module, keys: keys.missing_keys.clear())
    assert repr(m.load_state_dict({"old": torch.zeros(1, 1)})) == "<All keys matched successfully>"
    m.register_load_state_dict_post_hook(lambda module, keys: 3)
    with pytest.raises(AssertionError, match=r"it should be done inplace\."):
        m.load_state_dict({"old": torch.zeros(1, 1)})


def test_post_hook_must_return_none():
    m = nn.Linear(1, 1)
    hook = lambda module, state, prefix, meta: 3
    m.register_state_dict_post_hook(hook)
    with pytest.raises(RuntimeError, match="state_dict post-hook must return None"):
        m.state_dict()
    with pytest.raises(RuntimeError, match="previously registered via register_state_dict_post_hook"):
        m._register_state_dict_hook(hook)


# -- hooks -------------------------------------------------------------------------------------------


def test_forward_hooks():
    m = Scale()
    x = torch.tensor(1.0)
    with m.register_forward_pre_hook(lambda module, args: args[0] + 1):
        assert m(x).item() == 6.0
    with m.register_forward_pre_hook(lambda module, args, kwargs: (args, {"twice": True}), with_kwargs=True):
        assert m(x).item() == 6.0
    with m.register_forward_hook(lambda module, args, out: out + 1):
        assert m(x).item() == 4.0
    with m.register_forward_hook(lambda module, args, kwargs, out: kwargs["twice"], with_kwargs=True):
        assert m(x, twice=True) is True
    assert m(x).item() == 3.0
    with m.register_forward_pre_hook(lambda module, args, kwargs: 3, with_kwargs=True), \
            pytest.raises(RuntimeError, match=r"must return None or a tuple of \(new_args, new_kwargs\), but got 3."):
        m(x)


def test_hook_order():
    order = []
    m = nn.Identity()
    for name, prepend in (("a", False), ("b", False), ("c", True)):
        m.register_forward_hook(lambda *args, name=name: order.append(name), prepend=prepend)
    m(1)
    assert order == ["c", "a", "b"]


def test_always_call():
    class Fails(nn.Module):
        def forward(self, x):
            raise ValueError("no")

    seen = []
    m = Fails()
    m.register_forward_hook(lambda module, args, out: seen.append(("plain", out)))
    m.register_forward_hook(lambda module, args, out: seen.append(("always", out)), always_call=True)
    with pytest.raises(ValueError, match="no"):
        m(1)
    assert seen == [("always", None)]

    def broken(module, args, out):
        raise KeyError("hook")

    m.register_forward_hook(broken, always_call=True)
    with pytest.warns(UserWarning, match="module forward hook with ``always_call=True`` raised an exception"), \
            pytest.raises(ValueError, match="no"):
        m(1)


def test_hooks_on_a_module_with_conflicting_names():
    class Busy(nn.Module):
        # names that a careless base class might use for itself
        def _run(self, x):
            return x + 1

        _forget = _registered = _check_name = _load_tree = _load_one = _cast = _set_buffer = None

        def forward(self, x):
            return self._run(x)

    m = Busy()
    m.register_forward_hook(lambda module, args, out: out * 10)
    m.register_buffer("b", torch.ones(1))
    m.b = torch.zeros(1)
    m.double().load_state_dict(m.state_dict())
    assert m(1) == 20
    rnn = nn.GRU(2, 3)
    rnn.register_forward_hook(lambda module, args, out: out[0])
    assert rnn(torch.zeros(4, 1, 2)).shape == (4, 1, 3)


def test_global_hooks():
    seen = []
    hooks = nn.modules.module
    with hooks.register_module_forward_pre_hook(lambda module, args: seen.append("pre")), \
            hooks.register_module_forward_hook(lambda module, args, out: seen.append("post")):
        nn.Identity()(1)
    nn.Identity()(1)
    assert seen == ["pre", "post"]
    with hooks.register_module_module_registration_hook(lambda module, name, child: seen.append(name)):
        nn.Sequential(nn.ReLU())
    with hooks.register_module_parameter_registration_hook(lambda module, name, param: seen.append(name)):
        nn.Linear(1, 1)
    with hooks.register_module_buffer_registration_hook(lambda module, name, buffer: seen.append(name)):
        nn.Module().register_buffer("b", None)
    assert seen[2:] == ["0", "weight", "bias", "b"]


def test_hooks_do_not_keep_modules_alive():
    m = nn.Linear(1, 1)
    handle = m.register_forward_hook(lambda *args: None)
    reference = weakref.ref(m)
    del m
    gc.collect()
    assert reference() is None
    handle.remove()


def test_full_backward_hook():
    m = Scale()
    seen = []
    m.register_full_backward_hook(lambda module, gin, gout: seen.append((module is m, gin, gout)))
    x = torch.tensor(2.0, requires_grad=True)
    y = m(x)
    assert y.grad_fn.name() == "BackwardHookFunctionBackward"
    y.backward()
    (is_module, grad_input, grad_output), = seen
    assert is_module
    assert grad_input[0].item() == 3.0
    assert grad_output[0].item() == 1.0
    assert x.grad.item() == 3.0
    assert m.factor.grad.item() == 2.0
    with pytest.raises(RuntimeError, match="Cannot use both regular backward hooks and full backward hooks on a "
                                           "single Module"):
        m.register_backward_hook(lambda *args: None)


def test_full_backward_hooks_change_gradients():
    m = Scale()
    m.register_full_backward_pre_hook(lambda module, gout: (gout[0] * 10,))
    m.register_full_backward_hook(lambda module, gin, gout: (gin[0] + 1,))
    x = torch.tensor(2.0, requires_grad=True)
    m(x).backward()
    assert x.grad.item() == 31.0
    assert m.factor.grad.item() == 20.0


def test_full_backward_hook_without_input_grad():
    m = Scale()
    seen = []
    m.register_full_backward_hook(lambda module, gin, gout: seen.append((gin, gout[0].item())))
    y = m(torch.tensor(2.0))
    with pytest.warns(UserWarning, match="Full backward hook is firing when gradients are computed"):
        y.backward()
    assert seen == [((None,), 1.0)]


def test_backward_hook_with_wrong_number():
    m = Scale()
    m.register_full_backward_hook(lambda module, gin, gout: (gin[0], gin[0]))
    y = m(torch.tensor(2.0, requires_grad=True))
    with pytest.raises(RuntimeError, match="Backward hook returned an invalid number of grad_input, got 2, but "
                                           "expected 1"):
        y.backward()


def test_backward_hooks_are_idle_without_grad():
    m = Scale()
    m.register_full_backward_hook(lambda *args: pytest.fail("no backward here"))
    with torch.no_grad():
        assert m(torch.tensor(2.0)).item() == 6.0


# -- copies and printing -----------------------------------------------------------------------------


def test_copies_are_independent():
    a = Net()
    b = copy.deepcopy(a)
    b.first.weight.data.zero_()
    assert a.first.weight.any()
    assert not b.first.weight.any()
    assert b.first.weight is not a.first.weight


def test_pickle():
    a = nn.Sequential(nn.Linear(2, 2), nn.BatchNorm1d(2))
    b = pickle.loads(pickle.dumps(a))
    assert repr(a) == repr(b)
    assert all(torch.equal(x, y) for x, y in zip(a.state_dict().values(), b.state_dict().values(), strict=True))


def _ignore(module, *args):
    pass


def test_pickle_with_a_hook_that_gets_the_module():
    a = nn.Linear(2, 2)
    a._register_load_state_dict_pre_hook(_ignore, with_module=True)
    b = pickle.loads(pickle.dumps(a))
    hook, = b._load_state_dict_pre_hooks.values()
    assert hook.module() is b


def test_repr():
    assert repr(nn.Module()) == "Module()"
    assert repr(Net()) == ("Net(\n  (first): Linear(in_features=2, out_features=3, bias=True)\n  (act): ReLU()\n"
                           "  (second): Linear(in_features=3, out_features=1, bias=False)\n)")
    nested = nn.Sequential(nn.Sequential(nn.ReLU(inplace=True)))
    assert repr(nested) == "Sequential(\n  (0): Sequential(\n    (0): ReLU(inplace=True)\n  )\n)"

    class Lines(nn.Module):
        def extra_repr(self):
            return "a\nb"

    assert repr(Lines()) == "Lines(\n  a\n  b\n)"


def test_loading_into_a_meta_parameter_warns():
    module = nn.Linear(2, 3, device="meta")
    with pytest.warns(UserWarning, match="for weight: copying from a non-meta parameter in the checkpoint to a meta"):
        module.load_state_dict({"weight": torch.ones(3, 2), "bias": torch.ones(3, device="meta")})


@pytest.mark.parametrize("size", [(2.0,), (torch.tensor(2.0),), ("a",), (None,)])
def test_interpolation_to_a_size_that_is_no_int(size):
    with pytest.raises(TypeError, match=r"expected size to be one of int or Tuple.*types .<class"):
        nn.functional.interpolate(torch.ones(1, 1, 4), size=size)


def test_threshold_writes_to_an_expanded_tensor():
    x = torch.tensor([0., 1.]).expand(3, 2)
    nn.functional.threshold_(x, 0.5, 7)
    assert x.tolist() == [[7, 1]] * 3
