"""`Verifier`: the check of a program's graph that `ExportedProgram.validate` makes."""

from __future__ import annotations

from typing import Any

from .graph_signature import OutputKind

__all__ = ["SpecViolationError", "Verifier"]


class SpecViolationError(Exception):
    """A program is not well formed."""


class Verifier:
    """Checks the graph of a program, and that its signature names what the graph has.

    Attributes:
        dialect: which operators are allowed; "TRAINING" allows all.
    """

    dialect = "TRAINING"

    def check(self, ep: Any) -> None:
        """Check a program.

        Raises:
            SpecViolationError: its signature has other inputs or outputs than its graph.
            RuntimeError: its graph is not well formed.
        """
        ep.graph.lint()
        names = [node.name for node in ep.graph.nodes if node.op == "placeholder"]
        specs = ep.graph_signature.input_specs
        if len(names) != len(specs):
            raise SpecViolationError(f"the graph has {len(names)} inputs, its signature {len(specs)}")
        for name, spec in zip(names, specs, strict=True):
            if getattr(spec.arg, "name", name) != name:
                raise SpecViolationError(f"the input {name} of the graph is {spec.arg.name} in its signature")
        results = next(node for node in reversed(list(ep.graph.nodes)) if node.op == "output").args[0]
        outputs = ep.graph_signature.output_specs
        if len(results) != len(outputs):
            kinds = ", ".join(sorted({spec.kind.name for spec in outputs} or {OutputKind.USER_OUTPUT.name}))
            raise SpecViolationError(f"the graph has {len(results)} outputs, its signature {len(outputs)} ({kinds})")
