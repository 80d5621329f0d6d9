"""Views, bases and in-place writes: regression tests of errors that `tests/random_programs` found."""

from __future__ import annotations

import copy
import warnings

import numpy as np
import pytest

import flambeau as torch


def names(x):
    """The names of the nodes from a tensor's down its first edges."""
    found, node = [], x.grad_fn
    while node is not None:
        found.append(node.name())
        node = node.next_functions[0][0] if node.next_functions else None
    return found


# ----- whether views require grad ----------------------------------------------------------


def test_other_views_require_grad_once_their_base_does():
    w = torch.tensor(3.0, requires_grad=True)
    base = torch.ones(3)
    first, second = base[:2], base[1:]
    first.mul_(w)
    assert second.requires_grad
    (second * 2).sum().backward()
    assert w.grad.item() == 2.0


def test_requires_grad_of_a_base_extends_to_its_views():
    base = torch.zeros(3)
    view = base[1:]
    base.requires_grad_()
    assert view.requires_grad
    assert view.is_leaf
    base.requires_grad_(False)
    assert not view.requires_grad


def test_temporary_views_are_not_retained():
    base = torch.zeros(3)
    kept = [base[:1] for _ in range(100)]
    for _ in range(5000):
        base[:2]
    assert len(base._counter) < 1000
    base.requires_grad_()
    assert all(view.requires_grad for view in kept)


def test_a_view_made_without_recording_has_no_edge_to_its_base():
    x = torch.ones(3, requires_grad=True)
    with torch.no_grad():
        view = x[:2]
    assert view.requires_grad
    assert view.grad_fn is None
    assert (view * 2).grad_fn.next_functions == ((None, 0), (None, 0))
    with pytest.raises(RuntimeError, match="does not require grad and does not have a grad_fn"):
        torch.autograd.backward(view, torch.ones(2))


def test_backward_ends_at_a_view_made_without_recording():
    x = torch.ones(3, requires_grad=True)
    with torch.no_grad():
        view = x[:2]
    view.sum().backward()
    assert x.grad is None


# ----- writes that are refused -------------------------------------------------------------


def test_the_history_of_a_multi_output_view_cannot_be_regenerated():
    x = torch.ones(4, requires_grad=True) * 1
    first, second = x.chunk(2)
    x.mul_(2)
    with pytest.raises(RuntimeError, match="Output 1 of Split is a view and its base or another view of its base has "
                                           "been modified inplace"):
        second.grad_fn
    with pytest.raises(RuntimeError, match="Output 0 of Split is a view and is being modified inplace"):
        first.mul_(2)


def test_a_value_that_requires_grad_may_not_be_written_to_a_view_made_without_recording():
    base = torch.zeros(3)
    with torch.no_grad():
        view = base[:2]
    with pytest.raises(RuntimeError, match="A view was created in no_grad mode and is being modified inplace"):
        view.mul_(torch.ones(2, requires_grad=True))


def test_copying_a_leaf_onto_itself_is_a_write():
    x = torch.ones(2, requires_grad=True)
    with pytest.raises(RuntimeError, match="a leaf Variable that requires grad"):
        x.copy_(x)
    y = torch.ones(2)
    y[...] = y
    assert y._version == 1


def test_autograd_errors_precede_shape_errors():
    x = torch.ones(2, requires_grad=True)
    with pytest.raises(RuntimeError, match="a leaf Variable that requires grad"):
        x.copy_(torch.ones(3))


def test_a_write_to_an_inference_tensor_is_refused_when_it_is_counted():
    with torch.inference_mode():
        x = torch.ones(2)
        x.add_(1)
    with pytest.raises(RuntimeError, match="Inplace update to inference tensor outside InferenceMode"):
        x.add_(1)
    with pytest.raises(RuntimeError, match="Inference tensors cannot be saved for backward"):
        x * torch.ones(2, requires_grad=True)


# ----- gradients through writes ------------------------------------------------------------


def test_in_place_product_with_itself_invalidates_the_saved_operand():
    x = torch.tensor([2.0, 3.0], requires_grad=True) * 1
    x.mul_(x)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        x.sum().backward()


def test_a_write_through_complex_numbers_made_of_a_part_of_the_base():
    x = torch.arange(6.0, dtype=torch.float64).requires_grad_()
    y = x * 1
    z = torch.view_as_complex(y[2:].view(2, 2))
    z.mul_(2j)
    (y * torch.arange(6.0, dtype=torch.float64)).sum().backward()
    assert x.grad.tolist() == [0.0, 1.0, 6.0, -4.0, 10.0, -8.0]
    assert names(z)[:3] == ["ViewAsComplexBackward0", "AsStridedBackward0", "torch::autograd::CopySlices"]


def test_a_stale_complex_view_gets_its_history_also_without_grad_mode():
    y = torch.ones(4, requires_grad=True) * 1
    z = torch.view_as_complex(y.view(2, 2))
    y.mul_(2)
    with torch.no_grad():
        assert z.grad_fn.name() == "ViewAsComplexBackward0"


def test_a_gradient_outside_the_input_of_as_strided_is_lost():
    x = torch.ones(4, requires_grad=True)
    tail = x[2:]
    tail.as_strided((2,), (1,), 0).sum().backward()  # elements 0 and 1, none of which is in the tail
    assert x.grad.tolist() == [0.0, 0.0, 0.0, 0.0]


def test_the_history_of_a_view_of_a_base_with_other_data():
    base = torch.ones(3, requires_grad=True) * 1
    view = base[1:]
    base.data = torch.zeros(3)
    view.mul_(2)
    base.sum().backward()


def test_writing_through_an_expanded_view_has_no_gradient():
    x = torch.ones(1, requires_grad=True) * 1
    x.expand(3).zero_()
    with pytest.raises(RuntimeError, match="more than one element of the written-to tensor"):
        x.sum().backward()


def test_a_write_through_a_view_is_freed_with_the_graph():
    x = torch.ones(3, requires_grad=True) * 1
    x[0].add_(1)
    x.sum().backward()
    with pytest.raises(RuntimeError, match="a second time"):
        x.sum().backward()


# ----- gradients ---------------------------------------------------------------------------


def test_a_gradient_with_a_graph_is_added_to_in_place():
    x = torch.tensor([2.0], requires_grad=True)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        (x * x).sum().backward(create_graph=True)
    kept = x.grad
    (x * 3).sum().backward()
    assert x.grad is kept
    assert x.grad.requires_grad
    assert x.grad.item() == 7.0


def test_backward_with_inputs_keeps_the_gradients_of_inner_tensors():
    x = torch.ones(2, requires_grad=True)
    y = x * 2
    (y * 3).sum().backward(inputs=[y])
    assert y.retains_grad
    assert y.grad.tolist() == [3.0, 3.0]
    assert x.grad is None


def test_an_intermediate_target_is_captured_before_its_hooks():
    x = torch.ones(2, requires_grad=True)
    y = x * 2
    y.register_hook(lambda g: g * 10)
    of_y, of_x = torch.autograd.grad(y.sum(), [y, x], retain_graph=True)
    assert of_y.tolist() == [1.0, 1.0]
    assert of_x.tolist() == [20.0, 20.0]
    of_y, = torch.autograd.grad(y.sum(), [y])
    assert of_y.tolist() == [10.0, 10.0]


def test_node_hooks_see_no_unneeded_gradients():
    x, y = torch.ones(2, requires_grad=True), torch.ones(2, requires_grad=True)
    z = x * y
    seen = []
    z.grad_fn.register_hook(lambda inputs, outputs: seen.append([g is None for g in inputs]))
    torch.autograd.grad(z.sum(), [y])
    assert seen == [[True, False]]


def test_missing_zeros_can_be_differentiated():
    x = torch.ones(2, requires_grad=True)
    y = torch.ones(2, requires_grad=True)
    g, = torch.autograd.grad(x.sum(), [y], create_graph=True, materialize_grads=True)
    assert g.requires_grad


def test_a_leaf_detached_in_place_accumulates_nothing():
    x = torch.ones(2, requires_grad=True)
    y = x * 2
    x.detach_()
    y.sum().backward()
    assert x.grad is None


# ----- modes -------------------------------------------------------------------------------


def test_grad_mode_has_no_effect_under_inference_mode():
    x = torch.ones(2, requires_grad=True)
    with torch.inference_mode():
        assert not torch.is_grad_enabled()
        with torch.enable_grad():
            assert torch.is_grad_enabled()
            assert not (x * 2).requires_grad
        assert not torch.is_grad_enabled()
    assert torch.is_grad_enabled()


# ----- copies and layouts ------------------------------------------------------------------


def test_a_copy_of_a_complex_view_is_complex():
    x = torch.view_as_complex(torch.tensor([[1.0, 2.0], [3.0, 4.0]]))[1:]
    made = copy.deepcopy(x)
    assert made.dtype == torch.complex64
    assert made.tolist() == [3 + 4j]


def test_a_shallow_copy_is_a_leaf_of_the_same_memory():
    x = torch.ones(2, requires_grad=True) * 2
    made = copy.copy(x)
    assert made.is_leaf
    assert made.requires_grad
    assert made.data_ptr() == x.data_ptr()


@pytest.mark.parametrize("of", [lambda x: x.softmax(-1), lambda x: x.sum(0), lambda x: torch.cat([x, x]),
                                lambda x: x.cumsum(0), lambda x: x.roll(1, 0), lambda x: x.amax(-1, keepdim=True)])
def test_results_of_permuted_operands_can_be_viewed(of):
    x = torch.arange(24.0).reshape(2, 3, 4).permute(2, 0, 1)
    assert of(x).view(-1).shape == (of(x).numel(),)


def test_copies_of_expanded_tensors_are_row_major():
    x = torch.arange(3.0).expand(2, 3)
    for made in (x.clone(), x.double(), torch.zeros_like(x), x.tanh()):
        assert made.stride() == (3, 1)


def test_results_take_no_more_memory_than_they_need():
    assert torch.topk(torch.arange(10.0), 2)[0].untyped_storage().nbytes() == 8


def test_values_of_too_many_dimensions_raise():
    x = torch.zeros(3)
    with pytest.raises(RuntimeError, match=r"value tensor of shape \[1, 2\] cannot be broadcast to indexing result of "
                                           r"shape \[2\]"):
        x.index_put_((torch.tensor([0, 1]),), torch.ones(1, 2))


def test_lerp_takes_one_dtype():
    with pytest.raises(RuntimeError, match="expected dtype float for `end` but got dtype double"):
        torch.lerp(torch.ones(2), torch.ones(2, dtype=torch.float64), 0.5)


def test_strides_of_leading_dimensions_added_by_expand():
    x = torch.zeros(4, 3)
    assert x.expand(1, 4, 3).stride() == (12, 3, 1)
    x[True] = x
    assert np.array_equal(x.numpy(), np.zeros((4, 3)))
