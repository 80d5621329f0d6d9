"""Pytrees compared with `torch.utils._pytree`: leaves, structures, maps and errors."""

from __future__ import annotations

import re
from collections import OrderedDict, defaultdict, deque, namedtuple
from collections.abc import Callable
from typing import Any

import pytest

import flambeau
import flambeau.utils._pytree as ours

pytorch = pytest.importorskip("torch")
theirs = pytest.importorskip("torch.utils._pytree")

Point = namedtuple("Point", "x y")
Pair = namedtuple("Pair", "x y")

TREES: list[Any] = [
    1, None, (), [], {}, (1, [2, {"a": 3, "b": (4,)}], None), OrderedDict([("z", 1), ("a", (2, 3))]),
    defaultdict(int, {"a": 1}), deque([1, (2,)], maxlen=3), Point(1, [2]),
    [[], [[]], ()], slice(1, 2), {"b": 1, "a": 2}]


def outcome(call: Callable[[], Any]) -> Any:
    try:
        return call()
    except Exception as error:
        return type(error).__name__, re.sub(r"<function namedtuple at 0x\w+>", "", str(error))


def both(run: Callable[[Any], Any]) -> None:
    assert outcome(lambda: run(ours)) == outcome(lambda: run(theirs))


@pytest.mark.parametrize("tree", TREES, ids=repr)
def test_flatten_and_unflatten(tree: Any) -> None:
    def run(p: Any) -> Any:
        leaves, spec = p.tree_flatten(tree)
        assert spec == p.tree_structure(tree)
        return (leaves, list(p.tree_iter(tree)), p.tree_leaves(tree), p.tree_unflatten(leaves, spec),
                spec.unflatten(leaves), repr(spec), spec.num_leaves, spec.num_nodes, spec.num_children, spec.is_leaf(),
                spec.context, [repr(c) for c in spec.children()], p.tree_is_leaf(tree))

    both(run)


@pytest.mark.parametrize("tree", TREES, ids=repr)
def test_tree_map(tree: Any) -> None:
    both(lambda p: p.tree_map(lambda x: (x,), tree))
    both(lambda p: p.tree_map(lambda x, y: (x, y), tree, tree))
    both(lambda p: p.tree_map(lambda x: 0, tree, is_leaf=lambda t: isinstance(t, tuple)))
    both(lambda p: p.tree_map_only(int, lambda x: -x, tree))
    both(lambda p: p.tree_map_only((int, str), lambda x: -x, tree))
    both(lambda p: p.tree_map_only(int | str, lambda x: -x, tree))
    both(lambda p: p.tree_map_only(lambda x: x == 2, lambda x: -x, tree))
    both(lambda p: (p.tree_all(bool, tree), p.tree_any(bool, tree)))
    both(lambda p: (p.tree_all_only(int, lambda x: x > 1, tree), p.tree_any_only(int, lambda x: x > 1, tree)))


@pytest.mark.parametrize(("one", "other"), [
    ({"a": 1, "b": 2}, {"b": 3, "a": 4}), ({"a": 1, "b": 2}, OrderedDict([("b", 3), ("a", 4)])),
    (OrderedDict(a=1, b=2), defaultdict(int, b=3, a=4)), (deque([1, 2]), deque([3, 4], maxlen=4)), ((1, 2), 3),
    ((1, (2, 3)), (1, 4)), ((1, 2), (1, (2, 3))), ({"a": 1, "b": 2}, {"a": 4}), ({"a": 1}, {"b": 1}), ((1, 2), (3,)),
    ((1, 2), [3, 4]), (1, (3, 4)), (Point(1, 2), Point(3, 4))], ids=repr)
def test_tree_map_of_several_trees(one: Any, other: Any) -> None:
    both(lambda p: p.tree_map(lambda *x: x, one, other))
    both(lambda p: p.tree_structure(one).flatten_up_to(other))
    both(lambda p: p.tree_structure(one) == p.tree_structure(other))


def test_named_tuples_of_other_classes() -> None:
    for other in (Pair(3, 4), (3, 4)):
        with pytest.raises(ValueError, match="mismatch"):
            ours.tree_map(max, Point(1, 2), other)
        with pytest.raises(ValueError, match="mismatch"):
            theirs.tree_map(max, Point(1, 2), other)


@pytest.mark.parametrize("shorter", [1, None, (1, 2), [1, 2], {"a": 1, "b": 2}, {"a": 1, "b": (2, 3)}, {"a": 1}],
                         ids=repr)
def test_broadcast_to_subtrees(shorter: Any) -> None:
    both(lambda p: p._broadcast_to_and_flatten(shorter, p.tree_structure({"a": 1, "b": (2, 3)})))


def test_errors() -> None:
    both(lambda p: p.tree_unflatten([1], p.tree_structure((1, (2, 3)))))
    both(lambda p: p.tree_unflatten(3, p.tree_structure((1, 2))))
    both(lambda p: p.register_pytree_node(list, None, None))
    both(lambda p: p.tree_map_only(3, abs, (1,)))
    with pytest.raises(TypeError, match="Expected `treespec` to be an instance of PyTreeSpec but got item of type "):
        ours.tree_unflatten([1], [2])


@pytest.mark.parametrize("p", [ours, theirs], ids=["ours", "theirs"])
def test_registered_containers(p: Any) -> None:
    class Box:
        def __init__(self, held: Any, label: str) -> None:
            self.held, self.label = held, label

    p.register_pytree_node(Box, lambda b: ([b.held], b.label), lambda held, label: Box(*held, label))
    doubled = p.tree_map(lambda x: x * 2, [Box((1, 2), "a")])[0]
    assert (doubled.held, doubled.label) == ((2, 4), "a")
    assert repr(p.tree_structure(Box(1, "a"))) == "TreeSpec(Box, a, [*])"
    with pytest.raises(ValueError, match="is already registered as pytree node"):
        p.register_pytree_node(Box, lambda b: ([], None), lambda held, label: None)
    with pytest.raises(ValueError, match="Node context mismatch for custom node type"):
        p.tree_map(max, Box(1, "a"), Box(1, "b"))
    with pytest.raises(ValueError, match=r"^Type mismatch; expected "):
        p.tree_map(max, Box(1, "a"), (1,))


def test_named_results_stay_what_they_are() -> None:
    found = ours.tree_map(lambda x: x * 2, flambeau.tensor([1.0, 3.0]).max(0))
    assert found.values.item() == 6.0
    assert repr(ours.tree_structure(found)) == repr(theirs.tree_structure(pytest.importorskip("torch").ones(2).max(0)))


def test_in_place_maps() -> None:
    seen: list[int] = []
    tree = (1, [2, "x"])
    assert ours.tree_map_(seen.append, tree) is tree
    assert ours.tree_map_only_(str, seen.append, tree) is tree
    assert seen == [1, 2, "x", "x"]


def test_named_tuples() -> None:
    both(lambda p: [(p.is_namedtuple(x), p.is_namedtuple_class(x), p.is_namedtuple_instance(x))
                    for x in (Point, Point(1, 2), tuple, (1,), 3)])


@pytest.mark.parametrize(("kind", "tree"), [
    ("tuple", (1, 2)), ("list", [1, 2]), ("dict", {"b": 1, "a": 2}), ("namedtuple", Point(1, 2)),
    ("deque", deque([1], maxlen=2)), ("ordereddict", OrderedDict(b=1)), ("odict", OrderedDict(b=1)),
    ("defaultdict", defaultdict(int, a=1))])
def test_functions_of_one_container(kind: str, tree: Any) -> None:
    def called(p: Any) -> Any:
        values, context = getattr(p, f"_{kind}_flatten")(tree)
        keyed = getattr(p, f"_{kind}_flatten_with_keys")(tree)[0] if kind != "odict" else []
        rebuilt = getattr(p, f"_{kind}_unflatten")(values, context)
        return values, context, [(str(key), value) for key, value in keyed], rebuilt, type(rebuilt)

    both(called)


def test_functions_of_unknown_containers() -> None:
    with pytest.raises(AttributeError):
        ours._set_flatten


def test_sizes_are_containers() -> None:
    size = flambeau.Size([2, 3])
    leaves, spec = ours.tree_flatten((size,))
    assert leaves == [2, 3]
    assert ours.treespec_loads(ours.treespec_dumps(spec)) == spec
    assert ours.tree_map(str, size) == ("2", "3")
    assert type(ours.tree_map(abs, size)) is tuple
    with pytest.raises(ValueError, match=r"^Type mismatch; expected <class '\w+\.Size'>, but got <class 'tuple'>\.$"):
        ours.tree_map(max, size, (4, 5))
    with pytest.raises(ValueError, match="must only return Tensors, got type <class 'int'>"):
        flambeau.vmap(lambda x: x.shape)(flambeau.ones(2, 3))
    compiled = flambeau.compile(lambda x: (x + 1, x.shape))
    assert {type(compiled(flambeau.ones(2))[1]) for _ in range(3)} == {flambeau.Size}


def test_kinds_of_named_tuples_and_immutable_containers():
    def program(trees, immutable):
        leaves, spec = trees.tree_flatten(Point(1, 2))
        made = trees.TreeSpec(namedtuple, Point, [trees.tree_structure(0), trees.tree_structure(0)])
        containers = immutable.immutable_list([1, 2]), immutable.immutable_dict(a=1)
        return leaves, spec == made, trees.tree_unflatten([3, 4], made), [
            trees.keystr(path) for path, _ in trees.tree_flatten_with_path(containers)[0]]

    from torch.fx import immutable_collections as original

    assert program(ours, flambeau.fx.immutable_collections) == program(theirs, original)


def test_the_deprecated_registration_overwrites():
    class Node:
        pass

    arguments = (Node, lambda node: ([], None), lambda children, _: Node())
    for trees in (ours, theirs):
        with pytest.warns(FutureWarning, match="_register_pytree_node` is deprecated"):
            trees._register_pytree_node(*arguments)
        with pytest.warns() as caught:
            trees._register_pytree_node(*arguments)
        assert [str(each.message) for each in caught if each.category is UserWarning] == [
            f"{Node} is already registered as pytree node. Overwriting the previous registration."]
        trees._deregister_pytree_node(Node)


@pytest.mark.parametrize(("p", "torch"), [(ours, flambeau), (theirs, pytorch)], ids=["ours", "theirs"])
def test_named_results_are_struct_sequences(p: Any, torch: Any) -> None:
    result = torch.max(torch.ones(2, 2), 0)
    assert p.is_structseq(result)
    assert not p.is_namedtuple(result)
    assert not hasattr(result, "_fields")
    assert type(result).__match_args__ == ("values", "indices")
    paths, _ = p.tree_flatten_with_path(result)
    assert [path for path, _ in paths] == [(p.SequenceKey(0),), (p.SequenceKey(1),)]
