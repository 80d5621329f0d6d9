"""Grid sampling, fractional pooling, unpooling, folding and CTC, compared with PyTorch."""

from __future__ import annotations

import itertools

import pytest

from tests.nn.same_program import compare

pytest.importorskip("torch")
pytestmark = pytest.mark.parity

START = """
x = torch.linspace(-2, 2, 2 * 3 * 5 * 4).sin().reshape(2, 3, 5, 4).requires_grad_()
g = (torch.linspace(0, 60, 2 * 3 * 6 * 2).sin() * 1.7).reshape(2, 3, 6, 2).requires_grad_()
v = torch.linspace(-2, 2, 2 * 2 * 3 * 4 * 3).sin().reshape(2, 2, 3, 4, 3).requires_grad_()
h = (torch.linspace(0, 60, 2 * 2 * 3 * 2 * 3).sin() * 1.7).reshape(2, 2, 3, 2, 3).requires_grad_()
p = torch.linspace(0, 50, 2 * 3 * 7 * 8).sin().reshape(2, 3, 7, 8).requires_grad_()
q = torch.linspace(0, 50, 2 * 2 * 5 * 6 * 4).sin().reshape(2, 2, 5, 6, 4).requires_grad_()
logs = torch.linspace(0, 50, 6 * 3 * 5).sin().reshape(6, 3, 5).log_softmax(2).requires_grad_()
t2 = torch.tensor([[1, 2, 2], [3, 1, 4], [2, 2, 2]])
def derivatives(out, *inputs, second=True):
    first = torch.autograd.grad((out * out).sum(), inputs, create_graph=True)
    if not second:
        return [out, [f.detach() for f in first]]
    return [out, [f.detach() for f in first], torch.autograd.grad(sum((f * f).sum() for f in first), inputs)]
def ctc(*args, **kwargs):
    out = F.ctc_loss(logs, *args, **kwargs)
    return [out, torch.autograd.grad(out.sum(), logs)[0]]
"""
PROGRAMS = [
    *[f"result = derivatives(F.grid_sample(x, g, {m!r}, {p!r}, {a}), x, g, second={m == 'bilinear'})"
      for m, p, a in itertools.product(("bilinear", "nearest", "bicubic"), ("zeros", "border", "reflection"),
                                       (True, False))],
    *[f"result = derivatives(F.grid_sample(v, h, {m!r}, {p!r}, {a}), v, h, second=False)"
      for m, p, a in itertools.product(("bilinear", "nearest"), ("zeros", "border", "reflection"), (True, False))],
    "result = F.grid_sample(x, g)", "F.grid_sample(x, g, mode='x')", "F.grid_sample(x, g, padding_mode='x')",
    "result = F.grid_sample(x.double(), g.double(), align_corners=False).dtype",
    "result = F.grid_sample(x.detach().half(), g.detach().half(), align_corners=False).dtype",
    "result = F.grid_sample(x, g * float('nan'), align_corners=False, padding_mode='border')",
    "result = F.grid_sample(x, g * 1e30, align_corners=False)",
    *[f"F.grid_sample({a}, align_corners=False)" for a in (
        "x, g.double()", "x.long(), g.long()", "x, g[:1]", "x, g[..., :1]", "x[0], g", "x, g[0]", "x[..., :0], g",
        "v, h, mode='bicubic'", "x, g.long()")],
    "result = torch.grid_sampler(x, g, 0, 1, True), torch.grid_sampler_2d(x, g, 2, 1, True)",
    "result = torch.grid_sampler_3d(v, h, 0, 1, True)",
    ("a = torch.randn(2, 2, 3, requires_grad=True); o = F.affine_grid(a, (2, 3, 4, 5), align_corners=True);"
     "result = [o, torch.autograd.grad((o * o).sum(), a)]"),
    "result = F.affine_grid(torch.randn(2, 2, 3).double(), (2, 3, 4, 5), align_corners=False)",
    "result = F.affine_grid(torch.randn(2, 3, 4, requires_grad=True), (2, 3, 2, 3, 4))",
    "result = F.affine_grid(torch.randn(1, 3, 4), torch.Size((1, 3, 1, 3, 4)), True)",
    *[f"F.affine_grid({a}, align_corners=False)" for a in (
        "torch.ones(2, 2, 3).long(), (2, 1, 2, 2)", "torch.ones(2, 3, 3), (2, 1, 2, 2)",
        "torch.ones(2, 2, 3), (2, 1, 2)",
        "torch.ones(2, 2, 3), (2, 1, 0, 2)", "torch.ones(2, 2, 3), (3, 1, 2, 2)",
        "torch.ones(2, 2, 3), (2, 1, 2, 2, 2)")],
    # fractional pooling
    "result = derivatives(F.fractional_max_pool2d(p, 3, (3, 4)), p, second=False)",
    "result = derivatives(F.fractional_max_pool3d(q, 2, (3, 4, 2)), q, second=False)",
    "result = F.fractional_max_pool2d(p, (2, 3), output_ratio=(0.5, 0.5), return_indices=True)",
    ("values, indices = F.fractional_max_pool2d(p.detach().to('meta'), 2, 3, return_indices=True); "
    "result = str(indices.device), indices.dtype, indices.shape"),
    "result = F.fractional_max_pool3d(q[0], 2, output_ratio=0.5, return_indices=True)",
    "result = F.fractional_max_pool2d(p[0], 2, 3), torch.rand(1)",
    "result = nn.FractionalMaxPool2d(2, output_size=3, return_indices=True)(p)",
    "result = nn.FractionalMaxPool3d(2, output_ratio=0.4)(q), repr(nn.FractionalMaxPool3d(2, output_ratio=0.4))",
    "result = nn.FractionalMaxPool2d(2, 3, _random_samples=torch.rand(2, 3, 2))(p)",
    "result = F.fractional_max_pool2d(torch.full((1, 1, 4, 4), float('nan')), 2, (2, 2), return_indices=True)",
    "nn.FractionalMaxPool2d(2)", "nn.FractionalMaxPool2d(2, 3, 0.5)", "nn.FractionalMaxPool2d(2, output_ratio=1.5)",
    "nn.FractionalMaxPool3d(0, 2)", "F.fractional_max_pool2d(p, 3)", "F.fractional_max_pool2d(p, 3, (9, 3))",
    "F.fractional_max_pool2d(p, (3, 2, 1), (2, 2))", "F.fractional_max_pool2d(p, 3, (2,))",
    "F.fractional_max_pool2d(p[..., :0], 3, (2, 2))", "F.fractional_max_pool3d(q, 3, (9, 3, 3))",
    *[f"F.fractional_max_pool2d(p, 3, (2, 2), _random_samples=torch.rand({s}))" for s in (
        "2, 3, 3", "1, 3, 2", "2, 2, 2", "2, 3, 2, dtype=torch.float64")],
    # unpooling, folding
    "o, i = F.max_pool1d(p[0], 2, return_indices=True); result = nn.MaxUnpool1d(2)(o, i), repr(nn.MaxUnpool1d(2))",
    "o, i = F.max_pool2d(p, (2, 3), return_indices=True); result = nn.MaxUnpool2d((2, 3))(o, i, output_size=(7, 8))",
    "o, i = F.max_pool2d(p, 2, return_indices=True); result = derivatives(F.max_unpool2d(o, i, 2), p, second=False)",
    "o, i = F.max_pool3d(q, 2, return_indices=True); result = nn.MaxUnpool3d(2, 2, 0)(o, i)",
    "o, i = F.max_pool2d(p, 2, return_indices=True); nn.MaxUnpool2d(2)(o, i, output_size=(20, 20))",
    "o, i = F.max_pool2d(p, 2, return_indices=True); nn.MaxUnpool2d(2)(o, i, output_size=(20,))",
    "o, i = F.max_pool2d(p, 2, return_indices=True); nn.MaxUnpool2d(2)(o, i.int())",
    "result = derivatives(F.unfold(p, (2, 3), 1, (1, 0), 2), p), repr(nn.Unfold((2, 3)))",
    "u = F.unfold(p, 2); result = F.fold(u, (7, 8), 2), nn.Fold((7, 8), 2)(u), repr(nn.Fold((7, 8), 2))",
    "result = nn.Unfold(2, dilation=2, padding=1, stride=2)(p[0])",
    "F.fold(torch.ones(1, 5, 4), (3, 3), 2)", "F.fold(torch.ones(1, 8, 5), (3, 3), 2)", "F.unfold(p, 9)",
    "F.unfold(p[0, 0], 2)", "F.fold(torch.ones(4), (3, 3), 2)",
    # CTC
    *[f"result = ctc(t2, (6, 5, 6), (3, 2, 3), reduction={r!r}, zero_infinity={z})"
      for r in ("mean", "sum", "none") for z in (True, False)],
    "result = ctc(t2, torch.tensor([6, 6, 4]), torch.tensor([3, 1, 3]), blank=4)",
    "result = ctc(torch.tensor([1, 2, 3, 1, 2]), (6, 5, 6), (2, 0, 3), reduction='sum')",
    "result = ctc(t2, (6, 3, 3), (3, 2, 3), zero_infinity=True)",
    "result = ctc(t2, (6, 3, 3), (3, 2, 3))",
    "result = F.ctc_loss(logs[:, 0], t2[0], torch.tensor(6), torch.tensor(3))",
    "result = nn.CTCLoss(blank=1, reduction='none')(logs, torch.tensor([[0, 2, 3]] * 3), (6, 6, 6), (3, 3, 3))",
    "result = repr(nn.CTCLoss(blank=1)), nn.CTCLoss(zero_infinity=True).zero_infinity",
    "ctc(t2, (7, 5, 6), (3, 2, 3))", "ctc(t2, (6, 5), (3, 2, 3))", "ctc(t2, (6, 5, 6), (3, 2))",
    "ctc(t2, (6, 5, 6), (4, 2, 3))", "ctc(t2, (6, 5, 6), (3, 2, 3), blank=9)", "ctc(t2, (6, 5, 6), (3, -2, 3))",
    "ctc(t2.float(), (6, 5, 6), (3, 2, 3))",
    "ctc(t2, (6, 5, 6), (3, 2, 3), reduction='x')",
]


@pytest.mark.parametrize("program", PROGRAMS)
def test_program(program):
    compare(START + program, close=2e-5)
