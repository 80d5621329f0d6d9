"""What attention layers do with views: linear maps of batches, heads split from one product, compared with PyTorch."""

from __future__ import annotations

import pytest

from tests.nn.same_program import compare

pytest.importorskip("torch")
pytestmark = pytest.mark.parity

MODES = {"recorded": "contextlib.nullcontext()", "no_grad": "torch.no_grad()",
         "inference": "torch.inference_mode()"}


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("shape", ["2, 3, 4", "1, 1, 4", "0, 3, 4", "2, 2, 3, 4", "2, 0, 4"])
@pytest.mark.parametrize("records", [False, True])
def test_linear_of_batches(mode: str, shape: str, records: bool) -> None:
    compare(f"""
import contextlib
x = torch.arange(1.0 * torch.zeros({shape}).numel()).sin().reshape({shape})
w, b = torch.arange(20.0).reshape(5, 4).cos().requires_grad_({records}), torch.arange(5.0).requires_grad_({records})
with {MODES[mode]}:
    y = F.linear(x, w, b)
    base = y._base
    result = [y, y.stride(), y._is_view(), None if base is None else (base.shape, base._version), y.is_inference()]
    if {mode == "no_grad"}:
        y.add_(1)
        result += [y._version, base._version, x._version, base]
""")


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("view", ["view(2, 3, 2, 4)", "view((2, 3, 2, -1))", "view(6, 8)", "view(2, 3, 8, 1)",
                                  "view(2, 24)", "view(2, 1, 3, 8)", "unflatten(-1, (2, -1))", "view(3, 2, 8)",
                                  "view(2, 3, 4.0)"])
@pytest.mark.parametrize("source", ["x.chunk(3, dim=-1)[1]", "x.split(8, dim=2)[2]", "x.split([8, 16], 2)[0]",
                                    "x[..., 4:12]", "x.transpose(0, 1)[..., :8]", "x.expand(2, 3, 24)[..., :8]"])
def test_views_of_parts(mode: str, view: str, source: str) -> None:
    """Views of tensors that are not contiguous, with their strides and graphs, or the error."""
    compare(f"""
import contextlib
leaf = torch.arange(144.0).reshape(2, 3, 24).requires_grad_()
x = leaf * 1
for _ in range(40):
    with {MODES[mode]}:
        y = {source}.{view}
result = [y, y.stride(), y.storage_offset(), y._is_view()]
if {mode == "recorded"}:
    y.sin().sum().backward()
    result.append(leaf.grad)
""")
