"""`torch._inductor.compile_fx`: the compiler as a function of a graph, which backends of programs call."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ..api import compile
from . import check_options


def compile_fx(model_: Callable[..., Any], example_inputs_: Sequence[Any], inner_compile: None = None,
               config_patches: dict[str, Any] | None = None, decompositions: Any = None,
               ignore_shape_env: bool = False, compile_region_name: str | None = None) -> Callable[..., Any]:
    """Compile a graph; what a backend returns.

    Args:
        model_: the graph.
        example_inputs_: ignored: the arguments of its calls decide.
        inner_compile: None: another compiler of lowered graphs is not supported.
        config_patches: settings, which are checked only.
        decompositions, ignore_shape_env, compile_region_name: ignored.

    Raises:
        NotImplementedError: an `inner_compile`.
        RuntimeError: an unknown setting.

    >>> import flambeau as torch
    >>> from flambeau.compiler.inductor.compile_fx import compile_fx
    >>> f = torch.compile(lambda x: x.sin() + 1, backend=lambda graph, inputs: compile_fx(graph, inputs))
    >>> f(torch.zeros(2))
    tensor([1., 1.])
    """
    if inner_compile is not None:
        raise NotImplementedError("compile_fx(inner_compile=...): flambeau lowers graphs itself; a backend that is a "
                                  "function gets the graph")
    check_options(config_patches or {})
    return compile(model_)


__all__ = ["compile_fx"]
