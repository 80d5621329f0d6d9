"""Provenance of a cache entry: names in its backward program, and the uses of its programs' results."""

from __future__ import annotations

from ...ir.graph.value import Value
from ..tracing.provenance import Place, Provenance
from .backward_graph import BackwardGraph
from .cache_entry import CacheEntry


def program_provenance(provenance: Provenance, entry: CacheEntry) -> Provenance:
    """Return the provenance of the values of a cache entry's program, from that of its trace."""
    copies = entry.copies
    if copies is None:
        return provenance
    places = {new.number: provenance.places[old.number] for old, new in copies.items()
              if old.number in provenance.places}
    names = {new: provenance.names[old] for old, new in copies.items() if old in provenance.names}
    return Provenance(places, names, provenance.labels)


def backward_provenance(provenance: Provenance, backward: BackwardGraph) -> Provenance:
    """Return the provenance of the values of the backward program.

    Args:
        provenance: that of the joint graph.
        backward: the backward graph.
    """
    names: dict[Value, str] = {}
    places: dict[int, Place] = {}
    backward.program  # noqa: B018
    cotangents = {v: f"grad_output{f'[{i}]' * (len(backward.joint.cotangents) > 1)}"
                  for i, v in enumerate(backward.joint.cotangents)}
    for old, new in backward.rebuilt.items():
        if old.number in provenance.places:
            places[new.number] = provenance.places[old.number]
        if new.op == "input":
            names[new] = cotangents.get(old) or provenance.names.get(old) or f"saved %{old.number}"
        elif old in provenance.names:
            names[new] = provenance.names[old]
    return Provenance(places, names, provenance.labels)


def result_uses(entry: CacheEntry, provenance: Provenance) -> dict[Value, list[str]]:
    """Return, by IR value of a result, its uses, as format strings that take the value's name."""
    trace = entry.trace
    targets = entry.program.schedule.targets
    uses: dict[Value, list[str]] = {}
    for target in targets:
        if target.overwrites is not None:
            uses.setdefault(target.value, []).append(
                f"{provenance.names.get(target.overwrites) or repr(target.overwrites)} = {{}}")
    new = [target.value for target in targets if target.overwrites is None]
    for ref, layout in trace.grad_updates:
        if layout is not None and layout.array >= 0:
            label = provenance.labels.get(trace.identity(ref))
            uses.setdefault(new[layout.array], []).append(
                f"{'a gradient' if label is None else f'{label}.grad'} = {{}}")
    for result in trace.outputs:
        if result[0] == "new":
            uses.setdefault(new[result[1].array], []).append("return {}")
    for value in new[len(new) - (0 if entry.backward is None else len(entry.backward.saved)):]:
        uses.setdefault(value, []).append("save {} for backward")
    return {value: list(dict.fromkeys(lines)) for value, lines in uses.items()}


def backward_result_uses(backward: BackwardGraph, provenance: Provenance) -> dict[Value, list[str]]:
    """Return the uses of a backward program's results, which are gradients."""
    joint = backward.joint
    identities = [label for label, v in zip(joint.labels, joint.gradients, strict=True) if v is not None]
    uses: dict[Value, list[str]] = {}
    for target, identity in zip(backward.program.schedule.targets, identities, strict=True):
        label = provenance.labels.get(identity)
        uses.setdefault(target.value, []).append(f"gradient {'' if label is None else f'of {label} '}= {{}}")
    return uses


__all__ = ["backward_provenance", "backward_result_uses", "program_provenance", "result_uses"]
