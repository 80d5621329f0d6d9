"""Wrappers whose handlers answer for sizes, strides, device and layout; tags; kernels that replace PyTorch's."""

from __future__ import annotations

import pytest

import flambeau

POLICIES = [{"dispatch_sizes_strides_policy": "sizes"}, {"dispatch_sizes_strides_policy": "strides"},
            {"dispatch_device": True}, {"dispatch_layout": True}, {}]
QUERIES = ["a.size()", "a.shape", "a.size(0)", "a.dim()", "a.ndim", "a.numel()", "a.nelement()", "a.stride()",
           "a.stride(1)", "a.storage_offset()", "a.is_contiguous()",
           "a.is_contiguous(memory_format=torch.channels_last)", "a.device", "a.layout", "len(a)", "a.is_cuda"]


def answers(torch, policy, reply):
    asked = []

    class Wrapper(torch.Tensor):
        @staticmethod
        def __new__(cls, x):
            return torch.Tensor._make_wrapper_subclass(cls, x.size(), dtype=x.dtype, **policy)

        @classmethod
        def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
            asked.append(str(func))
            return reply(torch, str(func))

    found = []
    a = Wrapper(torch.ones(2, 3))
    for query in QUERIES:
        try:
            found.append((query, str(eval(query, {"a": a, "torch": torch}))))
        except Exception as error:
            found.append((query, type(error).__name__, str(error).partition(";")[0]))
    return found, asked


def nothing(torch, name):
    return NotImplemented


def own(torch, name):
    return None


def other(torch, name):
    return {"aten.sym_size.default": (5, 4), "aten.dim.default": 2, "aten.sym_numel.default": 20,
            "aten.sym_stride.default": (1, 5), "aten.sym_storage_offset.default": 3,
            "prim.layout.default": torch.sparse_csr, "prim.device.default": torch.device("meta")}.get(name, False)


@pytest.mark.parity
@pytest.mark.parametrize("reply", [nothing, own, other])
@pytest.mark.parametrize("policy", POLICIES, ids=str)
def test_handlers_answer_as_in_pytorch(policy, reply):
    torch = pytest.importorskip("torch")
    mine, theirs = answers(flambeau, policy, reply), answers(torch, policy, reply)
    assert [str(each).replace("flambeau.", "torch.") for each in mine[0]] == list(map(str, theirs[0]))
    assert mine[1] == theirs[1]


@pytest.mark.parity
def test_an_unknown_policy_is_refused():
    torch = pytest.importorskip("torch")

    def refusal(module):
        with pytest.raises(ValueError) as caught:
            answers(module, {"dispatch_sizes_strides_policy": "neither"}, own)
        return str(caught.value)

    assert refusal(flambeau) == refusal(torch)


@pytest.mark.parity
def test_tags_are_those_of_pytorch():
    torch = pytest.importorskip("torch")
    from flambeau.ops.schemas import aten_names, aten_out_overloads, aten_overloads

    for name in aten_names():
        for overload in (*aten_overloads(name), *aten_out_overloads(name)):
            theirs = getattr(getattr(torch.ops.aten, name, None), overload, None)
            if theirs is not None:
                mine = getattr(getattr(flambeau.ops.aten, name), overload)
                assert [tag.name for tag in mine.tags] == [tag.name for tag in theirs.tags], (name, overload)
    assert flambeau.Tag.pointwise in flambeau.ops.aten.add.Tensor.tags


REPLACEMENTS = {
    "below autograd": """
        lib.impl("neg", lambda x: x * 7, "CPU")
        y = torch.ones(2, requires_grad=True)
        z = -y
        show(z.detach()); show(type(z.grad_fn).__name__)
    """,
    "above autograd": """
        lib.impl("neg", lambda x: x.exp(), "AutogradCPU")
        y = torch.ones(2, requires_grad=True)
        z = -y
        show(z.detach()); show(type(z.grad_fn).__name__)
        z.sum().backward()
        show(y.grad)
    """,
    "a reduction": """
        lib.impl("aten::sum", lambda x, **kwargs: x.clone(), "CPU")
        show(torch.sum(torch.ones(3)).tolist()); show(torch.ones(2, 2).sum(0).tolist())
    """,
    "a method and an overload": """
        lib.impl(torch.ops.aten.mul.Tensor, lambda x, y: x + y, "CPU")
        show(torch.ones(2).mul(torch.ones(2))); show(torch.ones(2) * 3 * torch.ones(2))
    """,
    "twice": """
        lib.impl("sin", lambda x: x, "CPU")
        try: lib.impl("sin", lambda x: x, "CPU", allow_override=False)
        except RuntimeError as error: show(error)
    """,
    "not callable": """
        try: lib.impl("sin", [], "CPU")
        except TypeError as error: show(error)
    """,
}


@pytest.mark.parity
@pytest.mark.filterwarnings("ignore:.*other operators may also be overridden")
@pytest.mark.parametrize("program", REPLACEMENTS.values(), ids=REPLACEMENTS)
def test_kernels_of_pytorchs_operators_are_replaced(program):
    torch = pytest.importorskip("torch")
    from textwrap import dedent

    def run(module):
        out = []
        lib = module.library.Library("aten", "IMPL")
        try:
            exec(dedent(program), {"torch": module, "lib": lib, "show": lambda x: out.append(str(x))})
        finally:
            lib._destroy()
        out.append(str(-module.ones(2)) + str(module.ones(2).sum()) + str(module.ones(2) * module.ones(2)))
        return out

    assert run(flambeau) == run(torch)


def test_what_cannot_be_replaced_is_refused():
    lib = flambeau.library.Library("aten", "IMPL")
    for name, key in (("sin", "CUDA"), ("sin_", "CPU"), ("zeros", "CPU")):
        with pytest.raises(NotImplementedError):
            lib.impl(name, lambda *args: args, key)


@pytest.mark.parity
@pytest.mark.parametrize("source", ["sin(x)", "mul(x, x)", "convert_element_type(x, t.float64)", "sum(x, [0])",
                                    "broadcast_in_dim(x, [2, 3, 2], [1, 2])", "collapse(x, 0, 1)", "var(x, [1], 1.0)",
                                    "iota(4, start=1, step=2, dtype=t.int64, device='cpu', requires_grad=False)",
                                    "transpose(x, [1, 0])", "where(x > 2, x, x)", "rev(x, [0])", "sin(3)"])
def test_primitive_operators_are_those_of_pytorch(source):
    torch = pytest.importorskip("torch")

    def outcome(module):
        x = module.arange(6.).reshape(3, 2)
        try:
            result = eval(f"t.ops.prims.{source}", {"t": module, "x": x})
            named = eval(f"t._prims.{source}", {"t": module, "x": x})
            return str(result.tolist()), result.dtype.itemsize, str(named.tolist())
        except Exception as error:
            return type(error).__name__

    assert outcome(flambeau) == outcome(torch)


@pytest.mark.parity
def test_handlers_see_primitive_operators():
    torch = pytest.importorskip("torch")
    import importlib

    def seen(module):
        names = []
        modes = importlib.import_module(f"{module.__name__}.utils._python_dispatch")

        class Log(modes.TorchDispatchMode):
            def __torch_dispatch__(self, func, types, args=(), kwargs=None):
                names.append(str(func))
                return func(*args, **(kwargs or {}))

        x = module.ones(2)
        with Log():
            module.ops.prims.sin(x)
        return names[:1]

    assert seen(flambeau) == seen(torch)


WRAPPERS = {
    "views share the storage": """
        for views in (x.split([1, 2]), x.split(2), [x[0]], [x.view(2, 3)], [x.t()], [x * 2]):
            for y in views:
                show(storage(y) == storage(x))
                show((y.storage_offset(), y.stride()))
    """,
    "writes to detached tensors are counted": """
        before = x._version
        x.detach().add_(1)
        show(x._version - before)
        x.data.add_(1)
        show(x._version - before)
    """,
    "set and resize": """
        x.set_(torch.ones(2)); x.set_(); x.set_(torch.ones(4), 0, [2], [1]); x.resize_([4, 2]); x.resize_(3)
        x.set_(torch.ones(3).untyped_storage())
    """,
    "text": "show(repr(x))",
    "keys": """
        keys = torch._C.DispatchKeySet(torch._C.DispatchKey.NestedTensor)
        made = torch.Tensor._make_wrapper_subclass(type(x), (2,), None, None, None, torch.float32, torch.strided,
                                                   torch.device("cpu"), False, False, None, False, False, keys)
        show(torch._C._dispatch_keys(made).has(torch._C.DispatchKey.NestedTensor))
        show(torch._C._dispatch_keys(x).has(torch._C.DispatchKey.NestedTensor))
    """,
}


@pytest.mark.parity
@pytest.mark.parametrize("program", WRAPPERS.values(), ids=WRAPPERS)
def test_wrappers_are_as_in_pytorch(program):
    torch = pytest.importorskip("torch")
    import importlib
    from textwrap import dedent

    def run(module):
        out = []
        dispatch = importlib.import_module(f"{module.__name__}.utils._python_dispatch")
        trees = importlib.import_module(f"{module.__name__}.utils._pytree")

        class Wrapper(module.Tensor):
            @staticmethod
            def __new__(cls, inner):
                return module.Tensor._make_wrapper_subclass(
                    cls, inner.shape, strides=inner.stride(), storage_offset=inner.storage_offset(), dtype=inner.dtype)

            def __init__(self, inner):
                self.inner = inner

            def __repr__(self):
                return super().__repr__(tensor_contents=f"{self.inner.tolist()}")

            @classmethod
            def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
                out.append(str(func))
                if func.overloadpacket.__name__ in ("set_", "resize_"):
                    return args[0]
                inner = trees.tree_map_only(Wrapper, lambda x: x.inner, (args, kwargs or {}))
                result = trees.tree_map_only(module.Tensor, Wrapper, func(*inner[0], **inner[1]))
                return dispatch.return_and_correct_aliasing(func, args, kwargs or {}, result)

        exec(dedent(program), {"torch": module, "x": Wrapper(module.arange(6.).reshape(3, 2)), "dispatch": dispatch,
                               "storage": lambda x: module._C._storage_id(x), "show": lambda x: out.append(str(x))})
        return out

    assert run(flambeau) == run(torch)
