"""`make_dot`: the graph of a tensor as a Graphviz drawing with torchviz's API.

Nodes are objects with `next_functions`, tensors objects with `requires_grad`. The traversal has an explicit stack, so
the depth of graphs is not limited by Python's recursion limit.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from .picture import Arrow, Box, Picture

if TYPE_CHECKING:
    from graphviz import Digraph

LEAF = "lightblue"
OUTPUT = "darkolivegreen1"
BASE = "darkolivegreen3"
SAVED = "orange"

_SAVED_PREFIX = "_saved_"
_FREED = "[freed]"  # shown for a saved value that backward() has freed

_NODE_LOOKS = {"style": "filled", "shape": "box", "align": "left", "fontsize": "10", "ranksep": "0.1",
               "height": "0.2", "fontname": "monospace"}
_INCHES_PER_LINE = 0.15
_LEAST_INCHES = 12


def make_dot(var: Any, params: Mapping[str, Any] | None = None, show_attrs: bool = False,
             show_saved: bool = False, max_attr_chars: int = 50) -> Digraph:
    """Draw the graph of a tensor, as torchviz does.

    Nodes are grey, leaves light blue, outputs light green, the base of an output that is a view darker green, saved
    tensors orange.

    Args:
        var: the output tensor, or a tuple of output tensors.
        params: names for tensors, `{name: tensor}`; `dict(model.named_parameters())` fits.
        show_attrs: list each node's saved attributes under its name.
        show_saved: draw the saved tensors of built-in nodes; those of a custom `Function` are always drawn.
        max_attr_chars: the length at which attributes are truncated.

    Returns:
        A `graphviz.Digraph`: notebooks display it, `.source` is its text, and `.render("name", format="png")` writes a
        file if the `dot` program is installed.

    Raises:
        ModuleNotFoundError: the `graphviz` package is not installed.
        TypeError: `params` holds something that is not a tensor.

    >>> import flambeau as torch
    >>> from flambeau.viz import make_dot
    >>> x = torch.ones(2, 3, requires_grad=True)
    >>> drawing = make_dot(x.exp().sum(), params={"x": x})
    >>> [name in drawing.source for name in ("SumBackward0", "ExpBackward0", "AccumulateGrad", "(2, 3)")]
    [True, True, True, True]
    """
    return to_digraph(backward_picture(var, params, show_attrs, show_saved, max_attr_chars))


def backward_picture(var: Any, params: Mapping[str, Any] | None = None, show_attrs: bool = False,
                     show_saved: bool = False, max_attr_chars: int = 50) -> Picture:
    """The `Picture` that `make_dot` draws, for other back ends.

    >>> import flambeau as torch
    >>> from flambeau.viz import backward_picture
    >>> x = torch.ones(2, requires_grad=True)
    >>> [box.label for box in backward_picture((x * 2).sum()).boxes()][0]
    '\\n ()'
    """
    return _BackwardGraph(params or {}, show_attrs, show_saved, max_attr_chars).picture_of(var)


def to_digraph(picture: Picture) -> Digraph:
    """A `graphviz.Digraph` of a picture."""
    graphviz = _graphviz()
    if picture.round:
        drawing = graphviz.Digraph(picture.title or None)
        drawing.attr(rankdir=picture.direction)
        drawing.attr("node", shape="circle")
    else:
        drawing = graphviz.Digraph(picture.title or None, node_attr=_NODE_LOOKS,
                                   graph_attr={} if picture.direction == "TB" else
                                   {"rankdir": picture.direction})
    for piece in picture.pieces:
        if isinstance(piece, Box):
            drawing.node(piece.key, piece.label, **({"fillcolor": piece.colour} if piece.colour else {}))
        else:
            looks = {**({"dir": "none"} if piece.headless else {}),
                     **({"style": "dotted"} if piece.dotted else {})}
            drawing.edge(piece.tail, piece.head, **looks)
    if not picture.round:
        side = max(_LEAST_INCHES, len(drawing.body) * _INCHES_PER_LINE)
        drawing.graph_attr["size"] = f"{side},{side}"
    return drawing


def _graphviz() -> Any:
    try:
        import graphviz
    except ModuleNotFoundError as missing:
        raise ModuleNotFoundError("drawing needs the graphviz package, which is not installed: "
                                  "pip install flambeau[viz]", name="graphviz") from missing
    return graphviz


def _is_tensor(value: object) -> bool:
    return hasattr(type(value), "requires_grad")


class _BackwardGraph:
    """A traversal of a graph that builds its picture."""

    def __init__(self, params: Mapping[str, Any], show_attrs: bool, show_saved: bool,
                 max_attr_chars: int) -> None:
        for name, value in params.items():
            if not _is_tensor(value):
                raise TypeError(f"params[{name!r}] is not a tensor but {type(value).__name__}")
        self.names = {id(value): name for name, value in params.items()}
        self.show_attrs = show_attrs
        self.show_saved = show_saved
        self.max_attr_chars = max(max_attr_chars, 3)
        self.seen: dict[int, object] = {}  # keeps visited objects alive, so that their ids stay unique
        self.keys: dict[int, str] = {}
        self.picture = Picture()

    def picture_of(self, var: Any) -> Picture:
        for output in var if isinstance(var, tuple) else (var,):
            self.draw_tensor(output, OUTPUT)
        return self.picture

    def key(self, thing: object) -> str:
        return self.keys.setdefault(id(thing), f"n{len(self.keys)}")

    def first_time(self, thing: object) -> bool:
        if id(thing) in self.seen:
            return False
        self.seen[id(thing)] = thing
        return True

    def box(self, thing: object, label: str, colour: str = "") -> None:
        self.picture.pieces.append(Box(self.key(thing), label, colour))

    def arrow(self, tail: object, head: object, dotted: bool = False, headless: bool = False) -> None:
        self.picture.pieces.append(Arrow(self.key(tail), self.key(head), dotted, headless))

    def tensor_box(self, tensor: Any, colour: str, name: str = "") -> None:
        size = ", ".join(str(int(length)) for length in tensor.shape)
        self.box(tensor, f"{name or self.names.get(id(tensor), '')}\n ({size})", colour)

    def draw_tensor(self, tensor: Any, colour: str) -> None:
        """Draw an output, its graph, and its bases."""
        views = []
        while self.first_time(tensor):
            self.tensor_box(tensor, colour)
            if tensor.grad_fn is not None:
                self.draw_nodes(tensor.grad_fn)
                self.arrow(tensor.grad_fn, tensor)
            if not tensor._is_view():
                break
            views.append((tensor._base, tensor))
            tensor, colour = tensor._base, BASE
        for base, view in reversed(views):
            self.arrow(base, view, dotted=True)

    def draw_nodes(self, root: Any) -> None:
        """Draw a node and its predecessors, depth first; saved tensors after the successors."""
        if not self.first_time(root):
            return
        pending = [(root, self.open_node(root))]
        while pending:
            node, successors = pending[-1]
            for successor in successors:
                self.arrow(successor, node)
                if self.first_time(successor):
                    pending.append((successor, self.open_node(successor)))
                    break
            else:
                pending.pop()
                self.draw_saved_tensors(node)

    def open_node(self, node: Any) -> Iterator[Any]:
        """Draw a node and its tensors, and return its successors."""
        if self.show_saved:
            for name, value in saved_attributes(node):
                if _is_tensor(value):
                    self.first_time(value)
                    self.draw_saved(node, value, name)
                elif isinstance(value, tuple):
                    self.first_time(value)
                    for position, item in enumerate(value):
                        if _is_tensor(item):
                            self.draw_saved(node, item, f"{name}[{position}]")
        if hasattr(node, "variable"):
            leaf = node.variable
            self.first_time(leaf)
            self.tensor_box(leaf, LEAF)
            self.arrow(leaf, node)
        self.box(node, self.node_label(node))
        return iter([successor for successor, _ in getattr(node, "next_functions", ())
                     if successor is not None])

    def draw_saved(self, node: Any, tensor: Any, name: str) -> None:
        self.arrow(node, tensor, headless=True)
        self.tensor_box(tensor, SAVED, name)

    def draw_saved_tensors(self, node: Any) -> None:
        """Draw the tensors that a custom Function saved with `save_for_backward`."""
        try:
            saved = getattr(node, "saved_tensors", ())
        except RuntimeError:  # freed by backward()
            saved = ()
        for tensor in saved:
            if tensor is None:
                continue
            self.first_time(tensor)
            self.arrow(tensor, node, headless=True)
            self.tensor_box(tensor, SAVED)

    def node_label(self, node: Any) -> str:
        name = type(node).__name__
        shown = {}
        for attribute, value in saved_attributes(node) if self.show_attrs else ():
            if _is_tensor(value):
                shown[attribute] = "[saved tensor]"
            elif isinstance(value, tuple) and any(map(_is_tensor, value)):
                shown[attribute] = "[saved tensors]"
            else:
                shown[attribute] = str(value)
        if not shown:
            return name
        left = max(map(len, shown))
        right = min(max(map(len, shown.values())), self.max_attr_chars)
        rule = "-" * max(left + right + 2, len(name))
        rows = [f"{attribute:<{left}}: {_truncated(value, right):>{right}}"
                for attribute, value in shown.items()]
        return "\n".join([name, rule, *rows])


def _truncated(text: str, width: int) -> str:
    return text if len(text) <= width else text[:width - 3] + "..."


def saved_attributes(node: Any) -> Iterator[tuple[str, Any]]:
    """The saved attributes of a node, as `(name, value)`, in alphabetical order."""
    for attribute in dir(node):
        if attribute.startswith(_SAVED_PREFIX):
            try:
                value = getattr(node, attribute)
            except RuntimeError:  # freed by backward()
                value = _FREED
            yield attribute[len(_SAVED_PREFIX):], value
