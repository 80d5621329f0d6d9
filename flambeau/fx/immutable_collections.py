"""Lists and dictionaries that cannot be changed: arguments of nodes, whose users are counted."""

from __future__ import annotations

from typing import Any, NoReturn

from ..utils._pytree import register_pytree_node
from ..utils.pytrees.paths import keyed_flattens

_ADVICE = """\
If you are attempting to modify the kwargs or args of a torch.fx.Node object,
instead create a new copy of it and assign the copy to the node:

    new_args = ...  # copy and mutate args
    node.args = new_args"""


def _no_mutation(self: Any, *args: Any, **kwargs: Any) -> NoReturn:
    raise TypeError(f"{type(self).__name__!r} object does not support mutation. {_ADVICE}")


class immutable_list(list):
    """A list whose items cannot be changed.

    >>> import flambeau as torch
    >>> torch.fx.immutable_collections.immutable_list([1, 2])
    [1, 2]
    """

    __delitem__ = __iadd__ = __imul__ = __setitem__ = _no_mutation
    append = clear = extend = insert = pop = remove = reverse = sort = _no_mutation

    def __hash__(self) -> int:  # type: ignore[override]
        return hash(tuple(self))

    def __reduce__(self) -> Any:
        return type(self), (tuple(self),)


class immutable_dict(dict):
    """A dictionary whose items cannot be changed.

    >>> import flambeau as torch
    >>> torch.fx.immutable_collections.immutable_dict(a=1)
    {'a': 1}
    """

    __delitem__ = __ior__ = __setitem__ = _no_mutation
    clear = pop = popitem = setdefault = update = _no_mutation

    def __hash__(self) -> int:  # type: ignore[override]
        return hash(frozenset(self.items()))

    def __reduce__(self) -> Any:
        return type(self), (tuple(self.items()),)


register_pytree_node(immutable_list, lambda x: (list(x), None), lambda items, _: immutable_list(items),
                     serialized_type_name="torch.fx.immutable_collections.immutable_list",
                     flatten_with_keys_fn=keyed_flattens[list])
register_pytree_node(immutable_dict, lambda x: (list(x.values()), list(x)),
                     lambda values, keys: immutable_dict(zip(keys, values, strict=True)),
                     serialized_type_name="torch.fx.immutable_collections.immutable_dict",
                     flatten_with_keys_fn=keyed_flattens[dict])

__all__ = ["immutable_dict", "immutable_list"]
