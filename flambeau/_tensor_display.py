"""`Tensor.graph` and `Tensor.explore`: methods that display a tensor's graph with `flambeau.viz`.

`viz` is imported when one of them is first called, so that `import flambeau` does not load it.
"""

from __future__ import annotations

from typing import Any

from ._tensor import Tensor


def graph(self: Tensor, params: Any = None) -> Any:
    """The graph that produced this tensor (`viz.Graph`): prints as text, displays in a notebook, reports its memory.

    Args:
        params: names of leaves: `{name: tensor}`, or a module with named parameters.

    Raises:
        RuntimeError: the tensor has no graph.

    >>> import flambeau as torch
    >>> x = torch.ones(3, requires_grad=True)
    >>> print((x * x).sum().graph(params={"x": x}))
    a graph of 2 nodes and 1 leaf, which keeps no memory of its own for backward
    ● SumBackward0  ()
    ● MulBackward0  (3,)  keeps self, other
    ○ x  (3,)
    """
    from .viz.graph.graph import Graph

    return Graph.of(self, params)


def explore(self: Tensor, model: Any = None, *, path: Any = None, open_browser: bool = True) -> Any:
    """Write this tensor's graph as an HTML page, open it in a browser, and return the file's path (`viz.explore`).

    Args:
        model: names of leaves: a module with named parameters, or `{name: tensor}`.
        path: the file to write; None: a new file in the directory for temporary files.
        open_browser: whether to open the page.

    Raises:
        RuntimeError: the tensor has no graph.

    >>> import pathlib, tempfile
    >>> import flambeau as torch
    >>> y = torch.ones(3, requires_grad=True).exp().sum()
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     y.explore(path=pathlib.Path(folder) / "graph.html", open_browser=False).name
    'graph.html'
    """
    from .viz.explorer import explore as write_page

    return write_page(self, model, path=path, open_browser=open_browser)


for _method in (graph, explore):
    setattr(Tensor, _method.__name__, _method)

__all__: list[str] = []
