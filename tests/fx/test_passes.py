"""Passes: partitions, splits, shapes, patterns, constant folding; compared with PyTorch."""

from __future__ import annotations

from typing import Any

import pytest

import flambeau

pytorch = pytest.importorskip("torch")
pytestmark = [pytest.mark.parity, pytest.mark.filterwarnings("ignore::UserWarning")]


def model(t: Any) -> Any:
    class Model(t.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.param = t.nn.Parameter(t.ones(3, 4))
            self.linear = t.nn.Linear(4, 5)
            self.register_buffer("scale", t.full((5,), 2.0))

        def forward(self, x: Any, y: Any) -> Any:
            z = self.linear(x + self.param).clamp(min=0.0, max=1.0)
            w = self.linear(y).clamp(min=0.0, max=1.0)
            return t.relu(z + w) * self.scale, w

    t.manual_seed(0)
    return Model()


def both(run: Any) -> list[Any]:
    import importlib
    results = []
    for t in (flambeau, pytorch):
        def get(path: str, t: Any = t) -> Any:
            module, _, name = path.rpartition(".")
            return getattr(importlib.import_module(f"{t.__name__}.fx.{module}"), name)

        results.append(run(t, get))
    return results


def code_of(gm: Any) -> dict[str, str]:
    return {name: each.code for name, each in gm.named_modules() if hasattr(each, "code")}


@pytest.mark.parametrize("options", [{}, {"keep_original_order": True}, {"keep_original_node_name": True},
                                     {"keep_original_input_name": False}, {"tuple_return": True},
                                     {"partition_affix": "part"}], ids=str)
def test_split_module(options: dict[str, Any]) -> None:
    def run(t: Any, get: Any) -> Any:
        gm = t.fx.symbolic_trace(model(t))
        names = [node.name for node in gm.graph.nodes]
        paths: dict[str, str] = {}
        split = get("passes.split_module.split_module")(gm, gm, lambda node: names.index(node.name) // 4, paths,
                                                        **options)
        x, y = t.ones(3, 4), t.full((3, 4), 0.5)
        return code_of(split), paths, [each.tolist() for each in split(x, y)] == [each.tolist() for each in gm(x, y)]

    found, expected = both(run)
    assert found == expected
    assert found[2]


def test_split_by_tags() -> None:
    def run(t: Any, get: Any) -> Any:
        gm = t.fx.symbolic_trace(model(t))
        for i, node in enumerate(gm.graph.nodes):
            node.tag = "first" if i < 6 else "second"
        split, paths = get("passes.split_utils.split_by_tags")(gm, ["first", "second"], return_fqn_mapping=True)
        return code_of(split), paths

    found, expected = both(run)
    assert found == expected


def test_partitions() -> None:
    def run(t: Any, get: Any) -> Any:
        gm = t.fx.symbolic_trace(lambda a, b: t.neg(t.relu(a + b) - t.sin(b)) * t.cos(a + b))
        support = get("passes.operator_support.OperatorSupport")({
            "_operator.add": None, "_operator.sub": None, "torch.relu": None, "torch.neg": None})
        partitioner = get("passes.infra.partitioner.CapabilityBasedPartitioner")(gm, support)
        return code_of(partitioner.partition_and_fuse())

    found, expected = both(run)
    assert found == expected


def test_shapes() -> None:
    def run(t: Any, get: Any) -> Any:
        gm = t.fx.symbolic_trace(model(t))
        get("passes.shape_prop.ShapeProp")(gm).propagate(t.ones(3, 4), t.ones(3, 4))
        get("passes.graph_manipulation.get_size_of_all_nodes")(gm)
        nodes = list(gm.graph.nodes)
        metas = [node.meta["tensor_meta"] for node in nodes[:-1]]
        return ([(tuple(m.shape), str(m.dtype).split(".")[-1], m.requires_grad, m.stride,
                  str(m.memory_format).split(".")[-1]) for m in metas], [tuple(node.size_bytes) for node in nodes[:-1]],
                gm.print_readable(print_output=False))

    found, expected = both(run)
    assert found == expected


def test_replace_pattern() -> None:
    def run(t: Any, get: Any) -> Any:
        gm = t.fx.symbolic_trace(lambda x, w: t.cat([x, w]).sum() + t.max(t.cat([w, x]).sum()) + t.relu(x).neg())
        matches = t.fx.replace_pattern(gm, lambda a, b: t.cat([a, b]).sum(), lambda a, b: t.stack([a, b]).mean())
        nothing = t.fx.replace_pattern(gm, lambda a: t.relu(a) + 1, lambda a: a)
        filtered = get("subgraph_rewriter.replace_pattern_with_filters")(
            gm, lambda a: t.relu(a), lambda a: t.tanh(a), [lambda match, graph, pattern: False])
        return gm.code, len(matches), nothing, filtered, [str(match.anchor) for match in matches]

    found, expected = both(run)
    assert found == expected


def test_rewritten_assertion_with_a_message_of_several_lines(monkeypatch: pytest.MonkeyPatch) -> None:
    def run(t: Any, get: Any) -> Any:
        class Model(t.nn.Module):
            def forward(self, x: Any) -> Any:
                message = """
at the margin
    and indented"""
                assert x > 0, message
                return x + 1

        rewriting = get("experimental.rewriter.RewritingTracer")
        monkeypatch.setitem(globals(), "torch", t)  # rewritten assertions call `torch._assert`
        return str(rewriting().trace(Model()))

    found, expected = both(run)
    assert found == expected


def test_constant_folding() -> None:
    def run(t: Any, get: Any) -> Any:
        class Model(t.nn.Module):
            def __init__(self) -> None:
                super().__init__()
                self.a = t.nn.Parameter(t.ones(2))
                self.b = t.nn.Parameter(t.full((2,), 3.0))

            def forward(self, x: Any) -> Any:
                return x * (self.a + self.b) - self.a.sin()

        folded = get("experimental.const_fold.split_const_subgraphs")(Model())
        return folded.code, folded.const_subgraph_module.code, folded(t.ones(2)).tolist()

    found, expected = both(run)
    assert found[:2] == expected[:2]
    assert found[2] == pytest.approx(expected[2])


def test_normal_forms() -> None:
    def run(t: Any, get: Any) -> Any:
        gm = t.fx.symbolic_trace(lambda x: t.relu(t.add(x, 1)) + t.mul(x, x))
        operators = get("experimental.normalize.NormalizeOperators")(gm).transform()
        return operators.code

    found, expected = both(run)
    assert found == expected


def test_operator_traces() -> None:
    def run(t: Any, get: Any) -> Any:
        make_fx = get("experimental.proxy_tensor.make_fx")
        return [make_fx(f)(t.ones(2, 2)).code for f in (
            lambda x: (x * x).exp() + 1, lambda x: t.relu(x).sum(), lambda x: t.mm(x, x) - x)]

    found, expected = both(run)
    assert found == expected


def test_dead_code_and_common_subexpressions() -> None:
    def run(t: Any, get: Any) -> Any:
        gm = t.fx.symbolic_trace(lambda x: (t.relu(x), t.sin(x) + t.sin(x), t.relu(x))[1])
        changed = gm.graph.eliminate_dead_code(), gm.graph.eliminate_dead_code()
        gm.recompile()
        result = get("passes.dialect.common.cse_pass.CSEPass")()(gm)
        return gm.code, changed, result.graph_module.code, result.modified

    found, expected = both(run)
    assert found == expected


def test_fused_normalization_and_removed_dropout() -> None:
    def run(t: Any, get: Any) -> Any:
        t.manual_seed(0)
        net = t.nn.Sequential(t.nn.Conv2d(1, 2, 3), t.nn.BatchNorm2d(2), t.nn.Dropout(0.5), t.nn.ReLU()).eval()
        x = t.ones(1, 1, 4, 4)
        fused = get("experimental.optimization.fuse")(net)
        bare = get("experimental.optimization.remove_dropout")(net)
        return fused.code, bare.code, bool(t.allclose(fused(x), net(x), atol=1e-6)), bool(t.equal(bare(x), net(x)))

    found, expected = both(run)
    assert found == expected
    assert found[2:] == (True, True)


def test_merged_products() -> None:
    def run(t: Any, get: Any) -> Any:
        gm = get("experimental.merge_matmul.merge_matmul")(lambda x, y, w: t.matmul(x, w).sum() + t.matmul(y, w).sum())
        return gm.code, gm(t.ones(2, 3), t.ones(4, 3), t.ones(3, 2)).item()

    found, expected = both(run)
    assert found == expected


def test_drawing_requires_pydot(monkeypatch: pytest.MonkeyPatch) -> None:
    import sys

    monkeypatch.setitem(sys.modules, "pydot", None)
    from flambeau.fx.passes.graph_drawer import FxGraphDrawer

    with pytest.raises(RuntimeError, match="FXGraphDrawer requires the pydot package to be installed"):
        FxGraphDrawer(flambeau.fx.symbolic_trace(lambda x: x + 1), "sum")
