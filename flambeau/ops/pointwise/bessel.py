"""Bessel functions of the first and second kind, the Airy function: functions without a derivative in PyTorch."""

from __future__ import annotations

from ..declare import elementwise, not_implemented


def _declare(name: str, primitive: str, doc: str, example: str) -> None:
    def forward(xp, input):
        return getattr(xp, primitive)(input)

    forward.__name__ = f"special_{name}"
    forward.__doc__ = f"""{doc}

    >>> import flambeau as torch
    >>> torch.special.{name}(torch.tensor([1., 2.]))
    {example}
    """
    elementwise(promote="float", expose=("special",), differentiable=False, key=f"special_{name}",
                unsupported_dtypes=not_implemented(f"{name}_cpu", "complex", "narrow"))(forward)


for _name, _primitive, _doc, _example in (
        ("bessel_j0", "bessel_j0", "The Bessel function J₀.", "tensor([0.7652, 0.2239])"),
        ("bessel_j1", "bessel_j1", "The Bessel function J₁.", "tensor([0.4401, 0.5767])"),
        ("bessel_y0", "bessel_y0", "The Bessel function Y₀; nan below 0.", "tensor([0.0883, 0.5104])"),
        ("bessel_y1", "bessel_y1", "The Bessel function Y₁; nan below 0.", "tensor([-0.7812, -0.1070])"),
        ("modified_bessel_i0", "i0", "The modified Bessel function I₀.", "tensor([1.2661, 2.2796])"),
        ("modified_bessel_i1", "i1", "The modified Bessel function I₁.", "tensor([0.5652, 1.5906])"),
        ("modified_bessel_k0", "bessel_k0", "The modified Bessel function K₀.", "tensor([0.4210, 0.1139])"),
        ("modified_bessel_k1", "bessel_k1", "The modified Bessel function K₁.", "tensor([0.6019, 0.1399])"),
        ("scaled_modified_bessel_k0", "bessel_k0e", "exp(x) K₀(x); nan below 0.", "tensor([1.1445, 0.8416])"),
        ("scaled_modified_bessel_k1", "bessel_k1e", "exp(x) K₁(x); nan below 0.", "tensor([1.6362, 1.0335])"),
        ("spherical_bessel_j0", "spherical_bessel_j0", "The spherical Bessel function j₀, sin(x) / x.",
         "tensor([0.8415, 0.4546])"),
        ("airy_ai", "airy_ai", "The Airy function Ai.", "tensor([0.1353, 0.0349])")):
    _declare(_name, _primitive, _doc, _example)
