"""The explorer: a graph as one HTML file that opens from disk: walk it, search it, play it forward and backward.

    viz.explore(loss, model)        # writes the page, opens it in a browser, and says where it is
    loss.explore()

    with viz.watching(model) as watch:
        train()
    viz.explore(watch)              # every backward pass of the block, with values, to scrub through
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any


def explore(loss: Any, model: Any = None, *, path: str | os.PathLike[str] | None = None,
            open_browser: bool = True) -> Path:
    """Write a page that shows a graph, open it in a browser, and return the file's path.

    The page is one file that needs no network. It shows the graph drawn in layers, grouped by module or by source
    line, each node with its formula, line, shapes, saved tensors and memory, and plays the forward and the backward
    pass. What was recorded by `watching` comes with values, adjoints, accumulation and the freeing of buffers; of
    several backward passes each is a training step to scrub through.

    A graph that nobody watched shows the values that it saved; adjoints come from a backward pass of its own, which
    leaves the graph and every `.grad` alone. That pass is left out where a hook would notice it, and where
    `backward()` has freed the graph already.

    Args:
        loss: a tensor, several in a list or tuple, a `Graph`, or what `watching` recorded.
        model: a module whose parameters' names are shown, or `{name: tensor}`.
        path: the file to write; None: a new file in the folder for temporary files.
        open_browser: whether to open the page.

    Raises:
        RuntimeError: a tensor has no graph; a recording has none.
        TypeError: `loss` is nothing that has a graph.

    >>> import flambeau as torch
    >>> from flambeau import viz
    >>> x = torch.tensor([1., 2.], requires_grad=True)
    >>> import tempfile, pathlib
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     page = viz.explore((x * x).sum(), {"x": x}, path=f"{folder}/graph.html", open_browser=False)
    ...     page.name, "MulBackward0" in page.read_text(encoding="utf-8")
    ('graph.html', True)
    """
    from ..graph.recording import watching
    from .document import document_of, recorded_document
    from .page import open_page, write_page
    from .probe import probed

    if isinstance(loss, watching):
        document = recorded_document(loss)
    else:
        document = document_of(*probed(loss, model))
    page = write_page(document, path)
    if open_browser:
        open_page(page)
    return page


__all__ = ["explore"]
