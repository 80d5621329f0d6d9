"""The classes of arguments that a function has been called with and that fit its signature: each is checked once.

PyTorch parses the arguments of every call. Here a call looks its arguments' classes up, in a tree that has a branch for
each class at each position, and only a call of classes that were not seen before is compared with the signatures.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import numpy as np

from ...dtypes import is_derived_number, python_number
from ..tensor import Tensor

#: parameters that are tensors whatever their values
_TENSORS = frozenset(("Tensor", "TensorList", "c10::List<::std::optional<Tensor>>"))
#: parameters that are numbers, or lists for which one number may stand
_NUMBERS = frozenset(("int64_t", "SymInt", "double", "Scalar", "IntArrayRef", "SymIntArrayRef"))

Arguments = tuple[tuple[Any, ...], dict[str, Any]]  # by position and by name


class Conversion(tuple[int | str, ...]):
    """The positions and names of arguments that are numbers of other classes than Python's.

    >>> from flambeau._tensor.argument_errors.seen_classes import Conversion
    >>> import numpy
    >>> Conversion([1, "k"]).applied((2, numpy.int64(3)), {"k": numpy.float32(0.5)})
    ((2, 3), {'k': 0.5})
    """

    __slots__ = ()

    def applied(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Arguments:
        """The arguments of a call with Python's numbers."""
        by_position, by_name = list(args), dict(kwargs)
        for where in self:
            given: Any = by_position if isinstance(where, int) else by_name
            value = given[where]
            given[where] = value.item() if isinstance(value, Tensor) else python_number(value)
        return tuple(by_position), by_name


class SeenClasses:
    """The classes that fit a function.

    Args:
        space: "torch" for a function, "Tensor" for a method.
        name: its public name.
        skips: whether the first argument is not in the tree, because it is a tensor.

    Attributes:
        known: a tree; its branches are classes of arguments by position, then (name, class) of those by name. At None,
            a call's last node has True, the arguments to convert, or what `check` needs to look at the elements of
            lists.

    >>> import flambeau as torch
    >>> from flambeau._tensor.argument_errors.seen_classes import SeenClasses
    >>> seen = SeenClasses("torch", "tril", skips=True)
    >>> _ = seen.check(False, (torch.ones(2, 2), 1), {})
    >>> seen.known
    {<class 'int'>: {None: True}}
    """

    __slots__ = ("known", "name", "skips", "space")

    def __init__(self, space: str, name: str, skips: bool) -> None:
        self.space, self.name, self.skips = space, name, skips
        self.known: dict[Any, Any] = {}

    def check(self, fits: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Arguments:
        """Compare a call whose classes are new with the signatures, and note the classes.

        Args:
            fits: False, a `Conversion`, or (where, the classes that fit) of lists among the arguments.

        Returns:
            The arguments, numbers of NumPy, enumerations and tensors that stand for numbers as Python's.

        Raises:
            TypeError: the arguments fit no signature (PyTorch's text).
        """
        if fits.__class__ is Conversion:
            return fits.applied(args, kwargs)
        if fits:
            for where, classes in fits:
                if not classes.issuperset(map(type, args[where] if where.__class__ is int else kwargs[where])):
                    break
            else:
                return args, kwargs
        from .messages import explained

        space, name = self.called()
        error = explained(space, name, args[1:] if space == "Tensor" else args, kwargs)
        if error is not None:
            try:
                raise error
            finally:
                del error  # whose traceback refers to this frame, and so to the arguments
        return self.note(space, name, args, kwargs)

    def called(self) -> tuple[str, str]:
        """The namespace and the name of the function that is running."""
        return self.space, self.name

    def look(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        """Check a call, as the code of guarded functions does.

        Raises:
            TypeError: the arguments fit no signature (PyTorch's text).
        """
        known = self.known
        try:
            for x in args[1:] if self.skips else args:
                known = known[x.__class__]
            for name in kwargs:
                known = known[name, kwargs[name].__class__]
            fits = known[None]
        except KeyError:
            fits = False
        if fits is not True:
            self.check(fits, args, kwargs)

    def note(self, space: str, name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Arguments:
        """Add the classes of a call that fits, unless values decide whether it does; return Python's numbers."""
        from .signatures import signatures

        of_method = space == "Tensor"
        own = args[1:] if of_method else args
        overload = next((each for each in signatures(space, name) if each.mismatch(own, kwargs) is None), None)
        renamed = kwargs if overload is None or not kwargs else overload.renamed(kwargs)
        if renamed != kwargs:  # names are not converted by what the tree holds
            return self.note(space, name, args, renamed)[0], renamed
        lists: list[Any] = []
        given: list[tuple[int | str, Any]] = [*enumerate(args), *kwargs.items()]
        numbers: list[int | str] = []
        # whether it depends on values that are not in the tree: an input that is a number, or a tensor that is one
        by_value = self.skips and bool(args) and not isinstance(args[0], Tensor)
        for where, value in given:
            if where == 0 and of_method:
                continue
            kind = _kind_of(overload, where - of_method if isinstance(where, int) else where)
            if kind in _NUMBERS and (isinstance(value, (np.generic, Tensor)) or is_derived_number(value)):
                numbers.append(where)
            if isinstance(value, Tensor) and kind not in _TENSORS and kind != "":
                by_value = True
            if kind and isinstance(value, (tuple, list)):
                by_value = by_value or (kind not in _TENSORS and any(isinstance(x, Tensor) for x in value))
                lists.append((where, set(map(type, value))))
        conversion = Conversion(numbers)
        converted = conversion.applied(args, kwargs) if numbers else (args, kwargs)
        if by_value or (numbers and lists):
            return converted
        node = self.known
        for value in args[self.skips:]:
            node = node.setdefault(value.__class__, {})
        for name, value in kwargs.items():
            node = node.setdefault((name, value.__class__), {})
        if not lists:
            node[None] = conversion if numbers else True
        else:  # overloads may differ in which of the same arguments are lists
            noted = dict(node[None]) if isinstance(node.get(None), list) else {}
            node[None] = [(where, classes | noted.get(where, set())) for where, classes in lists]
        return converted


#: in place of True: what fits the method and not the function, `x.flip(1)`
_METHODS = "methods"


class OperatorClasses(SeenClasses):
    """The classes that fit the public function of a declared operator, or a method that is the same code.

    Args:
        names: the operator's, and its aliases.
        order: names of its arguments by position.

    Attributes:
        by_name: of each argument, the classes of those that fit and are passed on as they are.
        elements: classes of the elements of lists that are.
        methods: qualified names of the methods' code.
        passed: `by_name` without lists and bools, which binding looks at.
    """

    __slots__ = ("by_name", "elements", "methods", "names", "order", "passed")

    def __init__(self, names: tuple[str, ...], order: tuple[str, ...]) -> None:
        super().__init__("torch", names[0], skips=True)
        self.names, self.order = names, order
        self.methods = frozenset(f"Tensor.{name}" for name in names)
        self.by_name: dict[str, set[type]] = {name: set() for name in order}
        self.passed: dict[str, set[type]] = {name: set() for name in order}
        self.elements: set[type] = set()

    def bound(self, bind: Callable[[], Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """What `bind` returns, after the classes were looked up.

        Raises:
            TypeError: the arguments fit no signature.
        """
        result = bind()
        self.look(args, kwargs)
        return result

    def called(self) -> tuple[str, str]:
        from .messages import called

        return called(self.names)

    def check(self, fits: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Arguments:
        if fits is not _METHODS:
            return super().check(fits, args, kwargs)
        if not self._of_method():
            return super().check(False, args, kwargs)
        return args, kwargs

    def _of_method(self) -> bool:
        """Whether one of the frames next to this one is the method's."""
        frame: Any = sys._getframe(4)  # past `check`, `look` and binding
        for _ in range(4):
            if frame is None:
                break
            if frame.f_code.co_qualname in self.methods:
                return True
            frame = frame.f_back
        return False

    def note(self, space: str, name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Arguments:
        from .messages import explained

        if space == "Tensor" and explained("torch", name, args, kwargs) is not None:
            node = self.known
            for value in args[1:]:
                node = node.setdefault(value.__class__, {})
            if not kwargs and node.get(None, _METHODS) is _METHODS:
                node[None] = _METHODS
            return args, kwargs
        converted = super().note(space, name, args, kwargs)
        for key, value in (*zip(self.order[1:], args[1:], strict=False), *kwargs.items()):
            if key in self.by_name and value.__class__ in PLAIN:
                self.by_name[key].add(value.__class__)
                if value.__class__ not in (bool, tuple, list):
                    self.passed[key].add(value.__class__)
                if value.__class__ is tuple or value.__class__ is list:
                    self.elements.update(x.__class__ for x in value if x.__class__ in PLAIN)
        return converted


#: classes of parameters that are passed on unchanged
PLAIN = frozenset((int, float, bool, str, tuple, list, type(None)))


def _kind_of(overload: Any, where: int | str) -> str:
    """The kind of a parameter by position or name; "" if there is none."""
    if overload is None:
        return ""
    if isinstance(where, int):
        return str(overload.parameters[min(where, len(overload.parameters) - 1)].kind)  # several are one list
    return next((str(p.kind) for p in overload.parameters if p.name == where), "")


__all__ = ["PLAIN", "OperatorClasses", "SeenClasses"]
