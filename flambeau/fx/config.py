"""Options of the interpreter's progress display."""

from __future__ import annotations

disable_progress = True
verbose_progress = False
do_not_emit_stack_traces = False
