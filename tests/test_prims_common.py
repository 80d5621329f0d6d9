"""`torch._prims_common` and `torch._prims`: rules of dtypes and strides on random arguments, beside PyTorch's."""

from __future__ import annotations

import random

import pytest

import flambeau
from flambeau import _prims_common as ours

torch = pytest.importorskip("torch")
theirs = pytest.importorskip("torch._prims_common")

DTYPES = ("bool", "uint8", "int16", "int64", "float16", "bfloat16", "float32", "float64", "complex64", "complex128")


def outcome(function, *args, **kwargs):
    try:
        return str(function(*args, **kwargs)).replace("flambeau.", "torch.")
    except Exception as error:
        return f"{type(error).__name__}: {error}".replace("flambeau.", "torch.")


def test_dtypes_of_elementwise_operators():
    draw = random.Random(0)
    for _ in range(400):
        described = [(draw.choice(DTYPES), draw.choice([(), (2,)])) if draw.random() < 0.7 else
                     draw.choice([True, 2, 2.5, 1j]) for _ in range(draw.randint(1, 3))]
        kind = draw.choice(list(theirs.ELEMENTWISE_TYPE_PROMOTION_KIND)).name
        found = [outcome(rules.elementwise_dtypes, *(
            library.zeros(x[1], dtype=getattr(library, x[0])) if isinstance(x, tuple) else x for x in described),
            type_promotion_kind=rules.ELEMENTWISE_TYPE_PROMOTION_KIND[kind])
            for library, rules in ((torch, theirs), (flambeau, ours))]
        assert found[0] == found[1], (described, kind)


def test_strides_of_elementwise_results_and_memory_formats():
    draw = random.Random(1)
    for _ in range(300):
        shape = [draw.choice([1, 2, 3]) for _ in range(draw.randint(0, 5))]
        tensors = []
        for _ in range(draw.randint(1, 3)):
            order = draw.sample(range(len(shape)), len(shape))
            x = torch.zeros([shape[i] for i in order]).permute([order.index(i) for i in range(len(shape))])
            tensors.append(x[..., :1].expand(shape) if shape and draw.random() < 0.2 else x)
        own = [flambeau.empty_strided(tuple(x.shape), x.stride()) for x in tensors]
        for name in ("compute_elementwise_output_strides", "compute_elementwise_output_logical_to_physical_perm"):
            assert outcome(getattr(theirs, name), *tensors) == outcome(getattr(ours, name), *own)
        for name in ("is_contiguous", "is_channels_last_contiguous", "is_non_overlapping_and_dense_or_false",
                     "suggest_memory_format"):
            assert outcome(getattr(theirs, name), tensors[0]) == outcome(getattr(ours, name), own[0])


@pytest.mark.parametrize(("name", "args"), [
    ("infer_size", ((2, -1), 6)), ("infer_size", ((2, -1), 7)), ("infer_size", ((0, -1), 0)),
    ("infer_size", ((-1, -1), 4)), ("infer_size_shapes", ((2, 1), (3,))), ("infer_size_shapes", ((2,), (3,))),
    ("canonicalize_dim", (3, -1)), ("canonicalize_dim", (3, 5)), ("canonicalize_dim", (0, 0, False)),
    ("is_expandable_to", ((1, 2), (2,))), ("is_expandable_to", ((1, 2), (4, 3, 2))),
    ("make_channels_last_strides_for", ((2, 3, 4, 5),)), ("make_channels_last_strides_for", ((2,),)),
    ("make_channels_last_2d_strides_for", ((2, 3),)), ("make_contiguous_strides_for", ((2, 0, 3),)),
    ("make_contiguous_strides_for", ((2, 3, 4), False)), ("set_correction", (None, 2)), ("set_correction", (True, 2)),
    ("set_correction", (None, "a")), ("validate_exclusive_idx", (2, 5)), ("validate_idx", (2, 3)),
    ("validate_no_repeating_dims", ((1, 1),)), ("get_higher_type", (int, float)), ("get_higher_type", (int, str)),
    ("is_weakly_lesser_type", (float, int)), ("get_higher_dtype", (None, 3)), ("get_higher_dtype", ("a", 3)),
    ("is_valid_permutation", (2, [1, 0])), ("compute_required_storage_length", ((2, 3), (1, 4), 2)),
    ("compute_reduction_output_shape", ((2, 3, 4), (0, 2))), ("reduction_dims", ((2, 3), (-1,))),
    ("extract_shape_from_varargs", (((2, 3),),)), ("extract_dims_from_varargs", (((2, 3), 1),)),
    ("check_pin_memory", (True,)), ("type_to_dtype", (complex,)), ("type_to_dtype", (str,)),
    ("canonicalize_device", (3,)), ("is_same_shape", ((1, 2), [1, 2]))])
def test_rules_of_shapes(name, args):
    assert outcome(getattr(theirs, name), *args) == outcome(getattr(ours, name), *args)


def test_compare_tensor_meta():
    for first, second in (((2, 3), (3, 2)), ((2, 3), (2, 3))):
        found = [outcome(rules.compare_tensor_meta, library.empty(first), library.empty(3, 2).t() if first == second
                         else library.empty(second), check_strides=True)
                 for library, rules in ((torch, theirs), (flambeau, ours))]
        assert found[0] == found[1]
        assert found[0] != "None"


def test_out_wrapper_and_promotion_wrapper():
    from flambeau._prims_common.wrappers import (
        _maybe_remove_out_wrapper,
        elementwise_type_promotion_wrapper,
        out_wrapper,
    )

    @out_wrapper("values", "indices")
    def both(a):
        return a + 1, a > 0

    a = flambeau.tensor([0.0, 1.0])
    values, indices = flambeau.empty(0), flambeau.empty(0, dtype=flambeau.bool)
    found = both(a, out=(values, indices))
    assert found.values is values
    assert found.indices is indices
    assert values.tolist() == [1.0, 2.0]
    assert _maybe_remove_out_wrapper(both)(a)[1].tolist() == [False, True]
    with pytest.raises(RuntimeError, match="this can't be cast because it is not safe!"):
        out_wrapper()(lambda a: a * 0.5)(a, out=flambeau.empty(2, dtype=flambeau.int64))

    @elementwise_type_promotion_wrapper(type_promoting_args=("a", "b"),
                                        type_promotion_kind=ours.ELEMENTWISE_TYPE_PROMOTION_KIND.DEFAULT)
    def added(a, b):
        assert a.dtype is flambeau.float32
        return a + b

    assert added(flambeau.ones(2, dtype=flambeau.float16), 1).dtype is flambeau.float16


def test_prims():
    prims, own = torch._prims, flambeau._prims
    for name in own.__all__:
        assert getattr(own, name) is not None
        assert name in (*prims.__all__, "slice")
    for name, make in (("collapse", lambda library: (library.ones(2, 3, 4), 1, 2)),
                       ("collapse_view", lambda library: (library.ones(2, 3, 4).permute(2, 0, 1), 0, 1)),
                       ("split_dim", lambda library: (library.arange(6), 0, 2)),
                       ("split_dim", lambda library: (library.arange(7), 0, 2)),
                       ("transpose", lambda library: (library.arange(6).view(2, 3), (1, 0))),
                       ("transpose", lambda library: (library.arange(6).view(2, 3), (1, 1))),
                       ("broadcast_in_dim", lambda library: (library.tensor([1.0, 2.0]), (2, 3), (0,))),
                       ("sum", lambda library: (library.ones(2, 3), (0, 1))),
                       ("xor_sum", lambda library: (library.tensor([[1, 2], [5, 7]]), (0,))),
                       ("div", lambda library: (library.tensor([-7]), library.tensor([2]))),
                       ("rev", lambda library: (library.arange(3), (0,)))):
        if name == "xor_sum":
            assert own.xor_sum(*make(flambeau)).tolist() == [4, 5]  # PyTorch's has no kernel on a CPU
        else:
            assert outcome(getattr(prims, name), *make(torch)) == outcome(getattr(own, name), *make(flambeau)), name
