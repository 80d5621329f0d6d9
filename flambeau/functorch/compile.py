"""`functorch.compile`: AOTAutograd, compilers and partitioners of its graphs."""

from __future__ import annotations

from ..compiler.functorch import config
from ..compiler.functorch.aot_autograd import (
    aot_function,
    aot_module,
    aot_module_simplified,
    compiled_function,
    compiled_module,
    get_aot_compilation_context,
    get_aot_graph_name,
    get_graph_being_compiled,
    make_boxed_compiler,
    make_boxed_func,
)
from ..compiler.functorch.compilers import (
    debug_compile,
    default_decompositions,
    draw_graph_compile,
    memory_efficient_fusion,
    nop,
    print_compile,
    simple_ts_compile,
    ts_compile,
)
from ..compiler.functorch.partitioners import default_partition, draw_graph, min_cut_rematerialization_partition

__all__ = ["aot_function", "aot_module", "aot_module_simplified", "compiled_function", "compiled_module", "config",
           "debug_compile", "default_decompositions", "default_partition", "draw_graph", "draw_graph_compile",
           "get_aot_compilation_context", "get_aot_graph_name", "get_graph_being_compiled", "make_boxed_compiler",
           "make_boxed_func", "memory_efficient_fusion", "min_cut_rematerialization_partition", "nop", "print_compile",
           "simple_ts_compile", "ts_compile"]
