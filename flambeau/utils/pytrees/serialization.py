"""Structures of pytrees as JSON, in PyTorch's format."""

from __future__ import annotations

import importlib
import json
from collections import OrderedDict, defaultdict, deque
from collections.abc import Callable
from enum import Enum
from typing import Any, NamedTuple

from ...shapes import Size
from ...trees import LEAF, TreeSpec

DEFAULT_TREESPEC_SERIALIZATION_PROTOCOL = 1


class SerializedNode(NamedTuple):
    """How a class of containers is written: its name, and functions for its context (None: as JSON)."""

    name: str
    dump: Callable[[Any], Any] | None = None
    load: Callable[[Any], Any] | None = None


def _dump_factory(context: Any) -> Any:
    factory, keys = context
    return {"default_factory_module": factory.__module__, "default_factory_name": factory.__qualname__,
            "dict_context": keys}


def _load_factory(dumped: Any) -> Any:
    module = importlib.import_module(dumped["default_factory_module"])
    return [getattr(module, dumped["default_factory_name"]), dumped["dict_context"]]


#: class -> how it is written
serialized: dict[type, SerializedNode] = {
    tuple: SerializedNode("builtins.tuple"), list: SerializedNode("builtins.list"),
    dict: SerializedNode("builtins.dict"), OrderedDict: SerializedNode("collections.OrderedDict"),
    defaultdict: SerializedNode("collections.defaultdict", _dump_factory, _load_factory),
    deque: SerializedNode("collections.deque"), Size: SerializedNode("torch.Size"),
}


class EnumEncoder(json.JSONEncoder):
    """JSON with enumerations, by module and name."""

    def default(self, o: Any) -> Any:
        """The object for an enumeration's member."""
        if isinstance(o, Enum):
            return {"__enum__": True, "fqn": f"{type(o).__module__}:{type(o).__qualname__}", "name": o.name}
        return super().default(o)


def enum_object_hook(obj: dict[str, Any]) -> Any:
    """The enumeration's member that an object of JSON stands for; any other object itself."""
    if "__enum__" not in obj:
        return obj
    module, _, name = obj["fqn"].partition(":")
    found: Any = importlib.import_module(module)
    for part in name.split("."):
        found = getattr(found, part)
    return found[obj["name"]]


_NAMEDTUPLE = "collections.namedtuple"


def _is_namedtuple_class(cls: Any) -> bool:
    return isinstance(cls, type) and issubclass(cls, tuple) and hasattr(cls, "_fields")


def _to_json(spec: TreeSpec) -> dict[str, Any]:
    if spec.is_leaf():
        return {"type": None, "context": None, "children_spec": []}
    node = serialized.get(spec.type)
    if node is None:
        if _is_namedtuple_class(spec.type):
            raise NotImplementedError(f"Can't serialize TreeSpec of namedtuple class {spec.type} because we didn't "
                                      "register a serializated_type_name. Please register using "
                                      "`_register_namedtuple`.")
        raise NotImplementedError(f"Serializing {spec.type} in pytree is not registered.")
    if _is_namedtuple_class(spec.type) and node.dump is None and node.name:
        return {"type": _NAMEDTUPLE, "context": node.name, "children_spec": [
            _to_json(child) for child in spec.children()]}
    if not node.name:
        raise NotImplementedError(f"No registered serialization name for {spec.type} found. Please update your "
                                  "_register_pytree_node call with a `serialized_type_name` kwarg.")
    if node.dump is not None:
        context = node.dump(spec.context)
    else:
        try:
            context = json.dumps(spec.context, cls=EnumEncoder)
        except TypeError as error:
            raise TypeError("Unable to serialize context. Please make the context json dump-able, or register a custom "
                            "serializer using _register_pytree_node.") from error
    return {"type": node.name, "context": context, "children_spec": [_to_json(child) for child in spec.children()]}


def _from_json(dumped: dict[str, Any]) -> TreeSpec:
    if dumped["type"] is None and dumped["context"] is None and not dumped["children_spec"]:
        return LEAF
    name = dumped["context"] if dumped["type"] == _NAMEDTUPLE else dumped["type"]
    cls = next((cls for cls, node in serialized.items() if node.name == name), None)
    if cls is None:
        raise NotImplementedError(f"Deserializing {dumped['type']} in pytree is not registered.")
    if dumped["type"] == _NAMEDTUPLE:
        return TreeSpec(cls, cls, [_from_json(child) for child in dumped["children_spec"]])
    load = serialized[cls].load
    if load is not None:
        context = load(dumped["context"])
    else:
        try:
            context = json.loads(dumped["context"], object_hook=enum_object_hook)
        except TypeError as error:
            raise TypeError("Unable to deserialize context. Please make the context json load-able, or register a "
                            "custom serializer using _register_pytree_node.") from error
    return TreeSpec(cls, context, [_from_json(child) for child in dumped["children_spec"]])


def treespec_dumps(treespec: TreeSpec, protocol: int | None = None) -> str:
    """A structure as JSON.

    Raises:
        TypeError: it is no structure, or a context cannot be written.
        ValueError: unknown protocol.
        NotImplementedError: a class has no registered name.

    >>> from flambeau.utils._pytree import tree_structure, treespec_dumps, treespec_loads
    >>> treespec_loads(treespec_dumps(tree_structure([1, (2,)])))
    TreeSpec(list, None, [*,
      TreeSpec(tuple, None, [*])])
    """
    if not isinstance(treespec, TreeSpec):
        raise TypeError("Expected `treespec` to be an instance of PyTreeSpec but got item of type "
                        f"{type(treespec)}.")
    protocol = DEFAULT_TREESPEC_SERIALIZATION_PROTOCOL if protocol is None else protocol
    if protocol != DEFAULT_TREESPEC_SERIALIZATION_PROTOCOL:
        raise ValueError(f"Unknown protocol {protocol}. Available protocols: "
                         f"{[DEFAULT_TREESPEC_SERIALIZATION_PROTOCOL]}")
    return json.dumps((protocol, _to_json(treespec)), cls=EnumEncoder)


def treespec_loads(serialized: str) -> TreeSpec:
    """The structure that `treespec_dumps` wrote.

    Raises:
        ValueError: unknown protocol.
    """
    protocol, dumped = json.loads(serialized)
    if protocol != DEFAULT_TREESPEC_SERIALIZATION_PROTOCOL:
        raise ValueError(f"Unknown protocol {protocol}. Available protocols: "
                         f"{[DEFAULT_TREESPEC_SERIALIZATION_PROTOCOL]}")
    return _from_json(dumped)


def treespec_pprint(treespec: TreeSpec) -> str:
    """The tree with `*` for each leaf."""
    return treespec.describe()


__all__ = ["DEFAULT_TREESPEC_SERIALIZATION_PROTOCOL", "EnumEncoder", "SerializedNode", "enum_object_hook", "serialized",
           "treespec_dumps", "treespec_loads", "treespec_pprint"]
