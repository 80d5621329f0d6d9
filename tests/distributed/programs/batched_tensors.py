"""Operators of matrices, images and transforms on distributed tensors: results, gradients, placements."""

from importlib import import_module


def main(torch, rank, size):
    """By operator and placement: result and gradients, those of one process, the placement of the result."""
    dist, F = torch.distributed, torch.nn.functional
    tensor = import_module(f"{torch.__name__}.distributed.tensor")
    S, R = tensor.Shard, tensor.Replicate
    mesh = dist.device_mesh.init_device_mesh("cpu", (size,))

    def numbers(*shape):
        return (torch.arange(1, 1 + torch.Size(shape).numel(), dtype=torch.float64) * 0.7).sin().reshape(shape)

    A = numbers(4, 3, 3) + 3 * torch.eye(3, dtype=torch.float64)
    H, X, V, Y = A @ A.mT, numbers(4, 3, 2), numbers(2, 4, 6, 6), numbers(2, 4, 6)
    index = torch.tensor([2, 0])
    operators = {
        "cholesky": (torch.linalg.cholesky, H), "qr": (lambda a: torch.linalg.qr(a)[1], A),
        "eigvalsh": (torch.linalg.eigvalsh, H), "svdvals": (torch.linalg.svdvals, A), "det": (torch.linalg.det, A),
        "slogdet": (lambda a: torch.linalg.slogdet(a)[1], A), "inv": (torch.linalg.inv, A),
        "solve": (torch.linalg.solve, A, X), "matrix_exp": (torch.linalg.matrix_exp, A / 5),
        "pinv": (torch.linalg.pinv, A), "cholesky_solve": (torch.cholesky_solve, X, torch.linalg.cholesky(H)),
        "solve_triangular": (lambda a, b: torch.linalg.solve_triangular(a, b, upper=True), A.triu(), X),
        "lu": (lambda a: torch.linalg.lu(a)[2], A), "cross": (lambda a, b: torch.linalg.cross(a, b, dim=1), A, A.mT),
        "rfft": (lambda a: torch.fft.rfft(a, dim=2).abs(), A), "ifft": (lambda a: torch.fft.ifft(a, dim=1).real, A),
        "irfft": (lambda a: torch.fft.irfft(torch.fft.rfft(a, dim=0) * 2, dim=0), X),
        "nearest": (lambda a: F.interpolate(a, scale_factor=2), V),
        "bilinear": (lambda a: F.interpolate(a, (8, 9), mode="bilinear"), V),
        "bicubic": (lambda a: F.interpolate(a, (4, 9), mode="bicubic"), V),
        "linear": (lambda a: F.interpolate(a, 9, mode="linear"), Y),
        "reflect": (lambda a: F.pad(a, (1, 2, 2, 1), mode="reflect"), V),
        "replicate": (lambda a: F.pad(a, (1, 2), mode="replicate"), Y),
        "pixel_shuffle": (lambda a: F.pixel_shuffle(a, 2), V), "unfold": (lambda a: F.unfold(a, 2), V),
        "fold": (lambda a: F.fold(a, 4, 2), numbers(2, 4, 9)),
        "channel_shuffle": (lambda a: F.channel_shuffle(a, 2), V), "cdist": (torch.cdist, A, X.mT.contiguous()),
        "addr": (torch.addr, numbers(3, 4), numbers(3), numbers(4)), "addbmm": (torch.addbmm, numbers(3, 2), A, X),
        "index_fill": (lambda a: a.index_fill(1, index.clone(), 2.), A),
        "diagonal_scatter": (lambda a, b: torch.diagonal_scatter(a, b, dim1=1, dim2=2), A, numbers(4, 3)),
        "histc": (lambda a: torch.histc(a, 5, -1, 1), X), "renorm": (lambda a: torch.renorm(a, 2, 0, 1.), A),
        "dist": (torch.dist, A, A.mT),
    }

    def run(function, inputs):
        inputs = [x.detach().requires_grad_() for x in inputs]
        out = function(*inputs)
        if out.requires_grad:
            out.square().sum().backward()
        whole = [t.full_tensor() if isinstance(t, tensor.DTensor) else t for t in (out, *(x.grad for x in inputs))
                 if t is not None]
        return [each.detach().tolist() for each in whole], out

    report = {}
    implicit_replication = import_module(f"{tensor.__name__}.experimental").implicit_replication
    for name, (function, *operands) in operators.items():
        expected, _ = run(function, operands)
        for kind, placement in (("first", S(0)), ("second", S(1)), ("replicated", R())):
            placed = [tensor.distribute_tensor(x, mesh, [placement if x.ndim > 1 or kind == "first" else R()])
                      for x in operands]
            with implicit_replication():  # derivatives of numbers
                found, out = run(function, placed)
            report[f"{name}, {kind}"] = found, expected, str(out.placements[0])
    return report
