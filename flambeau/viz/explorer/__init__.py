"""The explorer: an interactive view of a graph and its passes, as one self-contained HTML file.

    viz.explore(loss, model)        # writes the page, opens it in a browser, returns its path
    loss.explore()

    with viz.watching(model) as watch:
        train()
    viz.explore(watch)              # all backward passes of the block, with values
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any


def explore(loss: Any, model: Any = None, *, path: str | os.PathLike[str] | None = None,
            open_browser: bool = True) -> Path:
    """Write a page that shows a graph, open it in a browser, and return the file's path.

    The page is one file that needs no network. It shows the graph in layers, grouped by module or by source line, with
    the formula, source line, shapes, saved tensors and memory of each node, and plays the passes event by event.
    A recording of `watching` adds values, adjoints, accumulation and the freeing of buffers; each backward pass is a
    step of a timeline.

    A graph that was not recorded shows its saved values, and adjoints from a separate backward pass, which changes no
    `.grad`. That pass is skipped if the graph has hooks or was freed.

    Args:
        loss: a tensor, a list or tuple of tensors, a `Graph`, or a recording of `watching`.
        model: a module with named parameters, or `{name: tensor}`.
        path: the file; None: a new temporary file.
        open_browser: whether to open the page.

    Raises:
        RuntimeError: a tensor or a recording has no graph.
        TypeError: `loss` is none of these.

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
    from .probe import probe

    if isinstance(loss, watching):
        document = recorded_document(loss)
    else:
        document = document_of(*probe(loss, model))
    page = write_page(document, path)
    if open_browser:
        open_page(page)
    return page


__all__ = ["explore"]
