"""Functions that want a tuple of ints, or of tensors, where the method takes them one by one."""

from __future__ import annotations

import pytest

import flambeau as torch
from tests.autograd.differential import same

x = torch.arange(6.).reshape(2, 3)


@pytest.mark.parametrize(("call", "said"), [
    (lambda t, x: t.reshape(x, 6), "argument 'shape' (position 2) must be tuple of ints, not int"),
    (lambda t, x: t.permute(x, 1), "argument 'dims' (position 2) must be tuple of ints, not int"),
    (lambda t, x: t.tile(x, 2), "argument 'dims' (position 2) must be tuple of ints, not int"),
    (lambda t, x: t.full(2, 1.), "argument 'size' (position 1) must be tuple of ints, not int"),
    (lambda t, x: x.new_full(2, 1.), "argument 'size' (position 1) must be tuple of ints, not int"),
    (lambda t, x: t.full_like(x, None), "argument 'fill_value' (position 2) must be Number, not NoneType"),
    (lambda t, x: t.cat(x), "cat(): argument 'tensors' (position 1) must be tuple of Tensors, not Tensor"),
    (lambda t, x: t.stack(x, 1), "stack(): argument 'tensors' (position 1) must be tuple of Tensors, not Tensor"),
    (lambda t, x: t.concat(x), "argument 'tensors' (position 1) must be tuple of Tensors, not Tensor"),
])
def test_what_wants_a_tuple_refuses_an_int_and_a_tensor(call, said):
    with pytest.raises(TypeError) as got:
        call(torch, x)
    assert said in str(got.value)
    pytorch = pytest.importorskip("torch")
    with pytest.raises(TypeError) as expected:
        call(pytorch, pytorch.arange(6.).reshape(2, 3))
    assert said in str(expected.value)


@pytest.mark.parametrize("call", [lambda: torch.reshape(x, 3, 2), lambda: torch.permute(x, 1, 0),
                                  lambda: torch.tile(x, 2, 2)])
def test_further_ints_are_arguments_of_their_own(call):
    with pytest.raises(TypeError, match="2 positional arguments but 3 were given"):
        call()


def test_methods_take_them_one_by_one_and_functions_by_name():
    assert x.reshape(3, 2).equal(torch.reshape(x, shape=[3, 2]))
    assert x.permute(1, 0).equal(torch.permute(x, dims=(1, 0)))
    assert x.tile(2, 2).equal(torch.tile(x, dims=(2, 2)))
    assert x.tile(dims=(2,)).equal(torch.tile(x, (2,)))
    assert torch.reshape(x.t(), (6,)).tolist() == [0., 3., 1., 4., 2., 5.]
    with pytest.raises(TypeError, match="tile\\(\\)"):
        x.tile(2, dims=(2,))


@pytest.mark.parametrize("call", [
    lambda x: x.squeeze(0, 2), lambda x: x.squeeze(0, 1, -2), lambda x: x.clone().squeeze_(0, 2),
    lambda x: x.squeeze(0, 0), lambda x: x.squeeze(0, "a"), lambda x: x.squeeze(0, 1.5), lambda x: x.squeeze(0, None),
    lambda x: x.squeeze(True, 1), lambda x: x.clone().squeeze_(0, True), lambda x: x.squeeze(0, 9),
    lambda x: x.squeeze((0,), 2), lambda x: x.squeeze(x[0, 0, 0, 0].long(), 2), lambda x: x.count_nonzero(1, 3),
    lambda x: x.count_nonzero(1, "a"), lambda x: x.hsplit(1, 2), lambda x: x.vsplit(0, 1), lambda x: x[0].dsplit(2, 4),
    lambda x: x.hsplit(1, "a"), lambda x: x.flip(1, 3), lambda x: x.std(1, 3), lambda x: x.sum_to_size(1, 4, 1, 1),
])
def test_methods_with_one_list_of_ints_take_them_one_by_one(call):
    same(lambda torch: call(torch.arange(24.).reshape(1, 4, 1, 6)))


@pytest.mark.parametrize("name", ["squeeze", "count_nonzero", "hsplit"])
def test_functions_do_not(name):
    same(lambda torch: getattr(torch, name)(torch.arange(24.).reshape(1, 4, 1, 6), 0, 2))


def test_dimensions_one_by_one_have_gradients():
    def program(torch):
        x = torch.arange(6.).reshape(1, 6, 1).requires_grad_()
        x.squeeze(0, 2).pow(2).sum().backward()
        return x.grad

    same(program)
