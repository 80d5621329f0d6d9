"""Key paths, registration and JSON of `torch.utils._pytree`, compared with PyTorch."""

from __future__ import annotations

import dataclasses
import time
import warnings
from collections import OrderedDict, defaultdict, deque, namedtuple
from typing import Any

import pytest

from flambeau.utils import _pytree

reference = pytest.importorskip("torch.utils._pytree")
pytestmark = pytest.mark.parity

Pair = namedtuple("Pair", "a b")


class Plain:
    """A class registered without keys or a name."""

    def __init__(self, v: Any) -> None:
        self.v = v


def _tree() -> dict[str, Any]:
    return {"a": 1, "b": (2, [3]), "c": OrderedDict(x=1), "d": defaultdict(int, {"q": 3}), "e": deque([1], maxlen=3)}


def _results(p: Any) -> list[Any]:
    @dataclasses.dataclass
    class D:
        x: Any
        y: Any = None
        z: Any = 0

    @dataclasses.dataclass(frozen=True)
    class C:
        n: str

    class K(Plain):
        pass

    found: list[Any] = []

    def record(f: Any) -> None:
        try:
            found.append(str(f()))
        except Exception as error:
            found.append((type(error).__name__, str(error)))

    tree = _tree()
    spec = p.tree_structure(tree)
    p.register_dataclass(D, serialized_type_name="D")
    p.register_constant(C)
    p.register_pytree_node(K, lambda k: ([k.v], None), lambda children, _: K(*children))
    for f in (lambda: spec, lambda: p.treespec_pprint(spec), lambda: p.treespec_dumps(spec),
              lambda: p.treespec_loads(p.treespec_dumps(spec)) == spec, lambda: p.tree_structure(Pair(1, [2])),
              lambda: p.tree_flatten_with_path({**tree, "n": Pair(1, [2])}),
              lambda: [p.keystr(path) for path, _ in p.tree_leaves_with_path(tree)],
              lambda: p.key_get(tree, (p.MappingKey("b"), p.SequenceKey(1))),
              lambda: p.tree_map_with_path(lambda k, x, y: (p.keystr(k), x, y), {"a": 1, "b": [2]}, {"a": 3, "b": [4]}),
              lambda: [repr(p.GetAttrKey("x")), str(p.GetAttrKey("x"))], lambda: p.treespec_dumps(3),
              lambda: p.treespec_dumps(p.tree_structure(Pair(1, 2))), lambda: p.treespec_loads("[2, {}]"),
              lambda: p.treespec_tuple([p.treespec_leaf(), p.tree_structure([1])]), lambda: p.treespec_tuple([1]),
              lambda: p.treespec_dict(a=p.treespec_leaf()), lambda: p.tree_leaves(D(1, None, [2])),
              lambda: p.treespec_dumps(p.tree_structure(D(1))), lambda: p.tree_leaves_with_path(D(1, {"k": 2})),
              lambda: dataclasses.astuple(p.tree_map(lambda v: v + 1, D(1))), lambda: p.tree_leaves([C("a"), 1]),
              lambda: p.is_constant_class(C), lambda: p.is_constant_class(D), lambda: p.arg_tree_leaves([1, (2,)], a=3),
              lambda: p.is_structseq(time.localtime()), lambda: p.is_structseq_class(Pair), lambda: p.LeafSpec(),
              lambda: p.LeafSpec() == p.treespec_leaf(), lambda: p.TreeSpec(list, None, [p.treespec_leaf()]),
              lambda: list in p.SUPPORTED_NODES, lambda: p.SUPPORTED_NODES[list].type, lambda: spec.child(1),
              lambda: spec.num_nodes):
        record(f)
    for f in (lambda: p.tree_flatten_with_path(K(1)), lambda: p.register_pytree_node(K, print, print),
              lambda: p.treespec_dumps(p.tree_structure(K(1))), lambda: p.register_constant(Plain),
              lambda: p.register_dataclass(Plain)):
        record(f)
    p._register_namedtuple(Pair, serialized_type_name="tests.Pair")
    record(lambda: p.treespec_dumps(p.tree_structure(Pair(1, 2))))
    p._deregister_pytree_node(D)
    record(lambda: p.tree_is_leaf(D(1)))
    return found


def test_results() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        expected = _results(reference)
        found = _results(_pytree)
    assert [each for each in zip(found, expected, strict=True) if each[0] != each[1]] == []
