"""Objects that are no tensors, given to functions of tensors: PyTorch's TypeError, or `__torch_function__`."""

from __future__ import annotations

import pytest

import flambeau
from flambeau._tensor.overriding.other_objects import reports_other_objects


class Other:
    pass


CALLS = {name: (0, *rest) for name, rest in {
    "reshape": ((2, 2),), "clone": (), "permute": ((0, 1),), "transpose": (0, 1), "unsqueeze": (0,), "squeeze": (),
    "flatten": (), "t": (), "numel": (), "is_complex": (), "is_floating_point": (), "zeros_like": (), "rand_like": (),
    "detach": (), "adaptive_avg_pool1d": (1,), "diag": (), "kron": (1,), "outer": (1,), "tile": ((2,),),
    "unflatten": (0, (2, 1)), "take_along_dim": (1,), "cdist": (1,), "real": (), "chunk": (2,),
    "atleast_1d": (1,), "broadcast_tensors": (1,), "cartesian_prod": (1,), "kl_div": (1,), "row_indices_copy": (),
    "gradient": (), "is_same_size": (1,)}.items()}


def call(module, name, positions):
    """The outcome of a call with an object that is no tensor at each of `positions`, counted in the arguments."""
    arguments = [Other() if argument == 0 and place == 0 else argument for place, argument in enumerate(CALLS[name])]
    arguments = [module.ones(2) if place and argument == 1 and positions == "tensors" else argument
                 for place, argument in enumerate(arguments)]
    try:
        return getattr(module, name)(*arguments)
    except Exception as error:
        return type(error).__name__, str(error).partition("\n")[0]


@pytest.mark.parity
@pytest.mark.parametrize("name", [name for name in CALLS if name not in ("adaptive_avg_pool1d", "atleast_1d")])
def test_the_error_is_that_of_pytorch(name):
    torch = pytest.importorskip("torch")
    mine = call(flambeau, name, "tensors")
    assert mine == call(torch, name, "tensors")
    assert mine[0] == "TypeError"


@pytest.mark.parity
@pytest.mark.parametrize("name", ["inner", "is_same_size", "is_set_to", "kron", "slice_inverse"])
def test_the_error_of_a_method_counts_from_its_second_tensor(name):
    torch = pytest.importorskip("torch")
    for module in (flambeau, torch):
        with pytest.raises(TypeError, match=rf"{name}\(\): argument '\w+' \(position 1\) must be Tensor, not Other"):
            getattr(module.ones(2), name)(Other())


#: expressions of a matrix x and an object o
REFUSED = """
    torch.conj(o); torch.detach_(o); torch.fill_(o, 1); torch.pixel_shuffle(o, 1); torch.channel_shuffle(o, 1)
    torch.poisson(x, o); torch.binomial(x, x, o); torch.unsqueeze(x, o); x.squeeze(o); x.select(0, o)
    torch.split(x, o); torch.split(x); torch.outer(x, None); x.cross(o); x.cummax(o); x.diagonal(o); x.flatten(o)
    x.histc(o); x.mode(x); x.svd(x); x.qr(x); x.unsafe_split(o); x.to_sparse_csr(o); x.kthvalue(o)
    x.diag(o); x.sum_to_size(o); x.rot90(o); x.fill_diagonal_(x); x.cauchy_(x); x.bincount(x, None)
    F.nll_loss(x, o); F.nll_loss(o, x); F.cross_entropy(x, o); F.cross_entropy(x, x, o); F.kl_div(x, o); F.one_hot(o)
    F.pad(o, (1, 1)); F.pixel_unshuffle(o, 1); F.poisson_nll_loss(o, x); F.cosine_embedding_loss(x, x, o)
    F.triplet_margin_loss(x, x, o); F.conv_transpose2d(x, o); F.embedding(o, x)
""".replace("\n", ";").split(";")


@pytest.mark.parity
@pytest.mark.filterwarnings("ignore")
def test_the_errors_of_other_arguments_are_those_of_pytorch():
    torch = pytest.importorskip("torch")
    for text in filter(None, map(str.strip, REFUSED)):
        said = []
        for module in (flambeau, torch):
            scope = {"torch": module, "F": module.nn.functional, "x": module.ones(2, 2), "o": Other()}
            with pytest.raises(TypeError) as caught:
                eval(text, scope)
            said.append(str(caught.value).replace("flambeau", "torch"))
        assert said[0] == said[1], text


@pytest.mark.parametrize("name", ["float", "double", "long", "bool"])
def test_conversions_take_nothing_by_position(name):
    with pytest.raises(TypeError, match=rf"{name}\(\) takes 0 positional arguments but 1 was given"):
        getattr(flambeau.ones(2), name)(flambeau.preserve_format)


@pytest.mark.parametrize("name", ["reshape", "clone", "permute", "transpose", "t", "zeros_like", "diag", "kron"])
def test_objects_that_override_functions_are_asked(name):
    def kind(func, types, args=(), kwargs=None):
        return func.__name__

    fresh = type("Fresh", (), {"__torch_function__": classmethod(lambda cls, *args: kind(*args))})
    assert getattr(flambeau, name)(fresh(), *CALLS[name][1:]) == name


def test_an_attribute_error_of_another_object_is_kept():
    def broken(input: flambeau.Tensor):
        return None.shape

    with pytest.raises(AttributeError, match="'NoneType' object has no attribute 'shape'"):
        reports_other_objects(broken, "broken")(flambeau.ones(2))
