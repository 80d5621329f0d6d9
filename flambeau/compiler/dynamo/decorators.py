"""`torch._dynamo.decorators`: hints to the tracer under another name."""

from __future__ import annotations

from .. import dynamo as _dynamo

(allow_in_graph, assume_constant_result, disable, disallow_in_graph, dont_skip_tracing, graph_break, mark_dynamic,
 mark_static, mark_static_address, mark_unbacked, maybe_mark_dynamic, nonstrict_trace, patch_dynamo_config, run,
 set_stance, skip_frame, substitute_in_graph) = (getattr(_dynamo, _name) for _name in (
    "allow_in_graph", "assume_constant_result", "disable", "disallow_in_graph", "dont_skip_tracing", "graph_break",
    "mark_dynamic", "mark_static", "mark_static_address", "mark_unbacked", "maybe_mark_dynamic", "nonstrict_trace",
    "patch_dynamo_config", "run", "set_stance", "skip_frame", "substitute_in_graph"))

__all__ = ["allow_in_graph", "assume_constant_result", "disable", "disallow_in_graph", "dont_skip_tracing",
           "graph_break", "mark_dynamic", "mark_static", "mark_static_address", "mark_unbacked", "maybe_mark_dynamic",
           "nonstrict_trace", "patch_dynamo_config", "run", "set_stance", "skip_frame", "substitute_in_graph"]
