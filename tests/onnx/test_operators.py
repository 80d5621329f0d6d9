"""Each translated operator: exported to ONNX, checked, and run by onnxruntime against eager mode."""

from __future__ import annotations

from typing import Any

import pytest

import flambeau as torch
from flambeau.utils._pytree import tree_leaves
from tests.onnx.records import RECORDS

pytest.importorskip("onnx")
pytest.importorskip("onnxruntime")
pytestmark = [pytest.mark.filterwarnings("ignore::UserWarning"), pytest.mark.filterwarnings(
    "ignore::DeprecationWarning")]


def module_of(function: Any) -> Any:
    class Program(torch.nn.Module):
        def forward(self, *args):
            return function(*args)

    return Program()


def agree(got: Any, expected: Any) -> None:
    for result, value in zip(tree_leaves(got), tree_leaves(expected), strict=True):
        torch.testing.assert_close(result, value.detach(), rtol=1e-4, atol=1e-5, equal_nan=True)


#: records whose translation depends on the version of ONNX's operators, and some others
NEWER = ("gelu", "gelu.tanh", "grid_sampler", "pad.circular", "add", "softmax", "reshape", "conv2d",
         "upsample_bilinear2d", "fft_irfft2")


@pytest.mark.parametrize(("name", "opset"), [*((name, 18) for name in RECORDS), *(
    (name, opset) for name in RECORDS if name in NEWER for opset in (20, 23))])
def test_operator(name, opset):
    function, inputs = RECORDS[name]
    program = torch.onnx.export(module_of(function), inputs, opset_version=opset)
    targets = {node.target.overloadpacket.__name__ for node in program.exported_program.graph.nodes
               if hasattr(node.target, "overloadpacket")}
    own = name.partition(".")[0]
    assert own in targets or own in {"clamp_min", "clamp_max", "slice_scatter", "select_scatter", "relu6", "celu"} or (
        f"{own}_" in targets), targets
    agree(program(*inputs), function(*inputs))
