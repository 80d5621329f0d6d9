"""Provenance of a cache entry's programs: the values of its backward program, and what results are used for."""

from __future__ import annotations

from ...ir.graph.value import Value
from ..tracing.provenance import Place, Provenance
from .backward_graph import BackwardGraph
from .cache_entry import CacheEntry


def backward_provenance(origins: Provenance, backward: BackwardGraph) -> Provenance:
    """The provenance of the values of the backward program."""
    names: dict[Value, str] = {}
    places: dict[int, Place] = {}
    cotangents = {v: f"grad_output{f'[{i}]' * (len(backward.joint.cotangents) > 1)}"
                  for i, v in enumerate(backward.joint.cotangents)}
    for old, new in backward.made.items():
        if old.number in origins.places:
            places[new.number] = origins.places[old.number]
        if new.op == "input":
            names[new] = cotangents.get(old) or origins.names.get(old) or f"saved %{old.number}"
        elif old in origins.names:
            names[new] = origins.names[old]
    return Provenance(places, names, origins.labels)


def result_uses(entry: CacheEntry, origins: Provenance) -> dict[Value, list[str]]:
    """What becomes of a program's results, as formats of lines that take a result's name."""
    trace = entry.trace
    targets = entry.program.schedule.targets
    found: dict[Value, list[str]] = {}
    for target in targets:
        if target.overwrites is not None:
            found.setdefault(target.value, []).append(
                f"{origins.names.get(target.overwrites) or repr(target.overwrites)} = {{}}")
    new = [target.value for target in targets if target.overwrites is None]
    for held, shown in trace.grad_updates:
        if shown is not None and shown.array >= 0:
            label = origins.labels.get(trace.identity(held))
            found.setdefault(new[shown.array], []).append(
                f"{'a gradient' if label is None else f'{label}.grad'} = {{}}")
    for result in trace.outputs:
        if result[0] == "new":
            found.setdefault(new[result[1].array], []).append("return {}")
    for value in new[len(new) - (0 if entry.backward is None else len(entry.backward.saved)):]:
        found.setdefault(value, []).append("keep {} for backward")
    return {value: list(dict.fromkeys(told)) for value, told in found.items()}


def backward_result_uses(backward: BackwardGraph, origins: Provenance) -> dict[Value, list[str]]:
    """The same of a backward program, whose results are gradients."""
    joint = backward.joint
    wanted = [label for label, v in zip(joint.labels, joint.gradients, strict=True) if v is not None]
    found: dict[Value, list[str]] = {}
    for target, of in zip(backward.program.schedule.targets, wanted, strict=True):
        label = origins.labels.get(of)
        found.setdefault(target.value, []).append(f"gradient {'' if label is None else f'of {label} '}= {{}}")
    return found


__all__ = ["backward_provenance", "backward_result_uses", "result_uses"]
