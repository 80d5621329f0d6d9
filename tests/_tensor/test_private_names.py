"""Private names of PyTorch that programs use: of the printing, of sparse indices, of `torch._C`."""

import pytest

import flambeau

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.parity


@pytest.mark.parametrize("shape", [(), (0,), (0, 2), (2, 2), (2000,), (2, 3, 4)])
def test_tensor_str_prints_the_elements(shape):
    texts = [m._tensor_str._tensor_str(m.arange(float(torch.Size(shape).numel())).reshape(shape), 4)
             for m in (torch, flambeau)]
    assert texts[0] == texts[1]


@pytest.mark.parametrize("call", [
    lambda m: m._fft_c2c(m.arange(6).reshape(2, 3) + 1j, [0, -1], 1, True),
    lambda m: m._fft_c2c(m.arange(3.), [0], 1, True), lambda m: m._fft_c2c(m.arange(3) + 0j, [0], 2, False),
    lambda m: m._fft_r2c(m.arange(4.), [0], 0, True), lambda m: m._fft_r2c(m.arange(4.), [0], 0, False),
    lambda m: m._fft_c2r(m.arange(3.) + 0j, [0], 1, 4), lambda m: m._C.TensorBase(), lambda m: m._C.TensorBase(2),
    lambda m: type("Other", (m._C.TensorBase,), {}), lambda m: m.Tensor.__mro__[1].__name__,
    lambda m: issubclass(type("Other", (m.Tensor,), {}), m._C.TensorBase), lambda m: m.tensor(),
    lambda m: m.as_tensor(dtype=m.int64), lambda m: m.asarray(copy=True),
    lambda m: len(m._storage_classes & {m.FloatStorage, m.QInt8Storage, m.TypedStorage, m.UntypedStorage}),
    lambda m: m._disable_dynamo(lambda: 1)(),
])
def test_calls_of_private_names(call):
    found = []
    for m in (torch, flambeau):
        try:
            found.append(str(call(m)))
        except (RuntimeError, TypeError) as error:
            found.append((type(error), str(error)))
    assert found[0] == found[1]


@pytest.mark.parametrize("out_int32", [False, True])
@pytest.mark.parametrize("rows", [[0, 0, 2, 3], [1], [4, 4]])
def test_rows_are_compressed(rows, out_int32):
    found, expected = (m._convert_indices_from_coo_to_csr(m.tensor(rows), 5, out_int32=out_int32)
                       for m in (flambeau, torch))
    assert found.tolist() == expected.tolist()
    assert str(found.dtype).split(".")[1] == str(expected.dtype).split(".")[1]


@pytest.mark.parametrize("transpose", [False, True])
@pytest.mark.parametrize(("crow", "col"), [([0, 2, 3], [0, 1, 1]), ([[0, 2, 3], [0, 1, 3]], [[0, 1, 1], [0, 0, 1]])])
def test_compressed_rows_become_coordinates(crow, col, transpose):
    found, expected = (m._convert_indices_from_csr_to_coo(m.tensor(crow), m.tensor(col), transpose=transpose)
                       for m in (flambeau, torch))
    assert found.tolist() == expected.tolist()


@pytest.mark.parametrize("call", [
    lambda m: m._convert_indices_from_coo_to_csr(m.tensor([0.0]), 5),
    lambda m: m._convert_indices_from_coo_to_csr(m.tensor([[0]]), 5),
    lambda m: m._convert_indices_from_csr_to_coo(m.tensor([0.0, 1.0]), m.tensor([0.0])),
    lambda m: m.arange(0, 1j), lambda m: m.arange(1j), lambda m: m.arange(3, dtype=m.complex64),
    lambda m: m.arange(3, dtype=m.bool),
    lambda m: m.nn.functional.native_channel_shuffle(m.ones(2, 2), 2),
])
def test_errors_are_pytorchs(call):
    with pytest.raises(Exception) as expected:
        call(torch)
    with pytest.raises(expected.type) as found:
        call(flambeau)
    assert str(found.value) == str(expected.value)


def test_singular_matrices_raise_the_error_of_the_extension():
    with pytest.raises(flambeau._C._LinAlgError):
        flambeau.linalg.inv(flambeau.zeros(2, 2))
    assert flambeau._C._LinAlgError is flambeau.linalg.LinAlgError


def test_indices_of_different_dimensions_are_refused_with_both_numbers():
    """PyTorch prints the first number twice."""
    with pytest.raises(RuntimeError, match="got 1 and 2 dimensional"):
        flambeau._convert_indices_from_csr_to_coo(flambeau.tensor([0, 1]), flambeau.tensor([[0]]))


@pytest.mark.parametrize("name", ["elu_", "gelu_", "hardsigmoid_", "hardswish_", "hardtanh_", "leaky_relu_", "mish_",
                                  "relu6_", "silu_"])
def test_activations_in_place_of_the_extension(name):
    results = []
    for m in (flambeau, torch):
        x = m.tensor([-1., 0.5, 7.])
        assert getattr(m._C._nn, name)(x) is x
        results.append(x.tolist())
    assert results[0] == pytest.approx(results[1])


def test_generators_return_themselves_with_their_state():
    for m in (flambeau, torch):
        generator = m.Generator()
        assert generator.set_state(generator.get_state()) is generator
        assert m.functional.F is m.nn.functional


@pytest.mark.parametrize(("change", "equal"), [
    ("x + 0", True), ("x.double()", False), ("x.requires_grad_()", False), ("x[:1]", False), ("x.view(2)", False),
    ("x.to_sparse()", False)])
def test_metadata_is_compared(change, equal):
    for m in (flambeau, torch):
        compare = __import__(f"{m.__name__}._subclasses.meta_utils", fromlist=["x"]).assert_metadata_eq
        different = []
        compare(lambda a, b, found=different: found.append(a) if a != b else None, m.ones(2),
                eval(change, {"x": m.ones(2)}))
        assert (not different) == equal


@pytest.mark.parametrize("call", [
    "N.upsample_nearest2d(x, (8, 10))", "N.upsample_nearest2d(x, None, (2., 2.))",
    "N.upsample_nearest2d(x, output_size=[3, 3], scales_h=.75, scales_w=.6)", "N.upsample_bilinear2d(x, (7, 9), True)",
    "N.upsample_bilinear2d(x, (8, 10), False, 2.1, 2.2)", "N.upsample_bilinear2d(x, None, False, (1.5, 1.5))",
    "N._upsample_bilinear2d_aa(x, (2, 3), False)", "N.upsample_bicubic2d(x, [6, 6], align_corners=False)",
    "N.upsample_linear1d(x[0], [6], False)", "N._upsample_nearest_exact1d(x[0], [7], 2.)",
    "N.slow_conv3d(x[None], x[None, :, :, :2, :2], (2, 2, 2))", "N.thnn_conv2d(x, x[:, :, :2, :2], 2)",
    "N.slow_conv_dilated2d(x, x[:, :, :2, :2], 2, None, 1, 0, 2)",
    "N.slow_conv_transpose2d(x, x[0, :, None, :2, :2], 2)", "N.reflection_pad2d(x, (1, 1, 1, 1))",
    "N.replication_pad1d(x[0], [1, 2])", "N._pad_circular(x, (1, 1, 1, 1))", "N._pad_enum(x, (1, 1), 3, 2.)",
    "N.im2col(x, (2, 2), (1, 1), (0, 0), (1, 1))", "N.cross_entropy_loss(x[0, 0], x[0, 0, :, 0].long(), None, 1)",
    "N.nll_loss_nd(x[0, 0], x[0, 0, :, 0].long())", "N.nll_loss2d(x, x[:, 0].long())", "N.elu_(x - 1, 1., 2., 3.)",
    "m._addmm_activation(x[0, 0, 0, :4], x[0, 0], x[0, 1].T)", "m._masked_softmax(x, x > .5, 1)",
    "m._addmm_activation(x[0, 0, 0, :4], x[0, 0], x[0, 1].T, use_gelu=True)", "m._softmax(x, 1, False)",
    "m._masked_softmax(x[:, :, :, :4], x[0, 0, :, :4] > .5, None, 0)", "m._log_softmax(x, 1, False)",
    "m._transform_bias_rescale_qkv(m.ones(2, 3, 12), m.arange(12.), 2)[0]", "m._softmax(x, 1, True)",
    "m._grid_sampler_2d_cpu_fallback(x, m.zeros(1, 2, 2, 2), 0, 0, True)",
])
def test_functions_of_the_extension(call):
    results = []
    for m in (flambeau, torch):
        x = (m.arange(40.) * 7 % 11 / 11).view(1, 2, 4, 5)
        try:
            results.append(eval(call, {"m": m, "N": m._C._nn, "x": x}).tolist())
        except RuntimeError as error:
            results.append(str(error))
    if isinstance(results[1], str):
        assert results[0] == results[1]
    else:
        torch.testing.assert_close(torch.tensor(results[0]), torch.tensor(results[1]), equal_nan=True)


@pytest.mark.parametrize("call", ["m.margin_ranking_loss(x, x, x)", "m.kl_div(x, x)", "m.triplet_margin_loss(x, x, x)"])
def test_losses_of_torch_run_in_full_precision_under_autocast(call):
    for m in (flambeau, torch):
        x = m.ones(2, 2, dtype=m.bfloat16)
        with m.autocast("cpu"):
            assert eval(call, {"m": m, "x": x}).dtype is m.float32
