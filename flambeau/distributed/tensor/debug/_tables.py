"""What `CommDebugMode` saw, as a table and as JSON, in PyTorch's layouts."""

from __future__ import annotations

import json
from typing import Any

#: operators that compute nothing
TRIVIAL = frozenset(("aten.detach.default", "aten.t.default", "aten.view.default", "aten._to_copy.default",
                     "aten.as_strided.default", "aten.transpose.int"))
_YELLOW, _RED, _END = "\033[1;33m", "\033[1;31m", "\033[0m\n"


def _operations(mode: Any, name: str) -> tuple[list[Any], list[Any], list[Any]]:
    """The operators of a module: in the forward pass, in the backward pass, computed again."""
    found = mode.comm_module_operation_counts.get(name, {"operations_list": []})["operations_list"]
    return ([op for op in found if not op["is_bw"]],
            [op for op in found if op["is_bw"] and not op["is_activation_checkpointing"]],
            [op for op in found if op["is_activation_checkpointing"]])


def _shown(op: dict[str, Any], noise_level: int) -> bool:
    """Whether a level shows an operator."""
    return noise_level > 2 or (noise_level > 0 and str(op["name"]) not in TRIVIAL and (
        noise_level > 1 or bool(op["input_shape"])))


def _collectives(mode: Any, name: str) -> tuple[dict[Any, int], dict[Any, int]]:
    """The numbers of collectives of a module in the two passes."""
    counts = mode.comm_module_counts.get(name)
    return ({}, {}) if counts is None else (counts["forward"], counts["backward"])


def tracing_table(mode: Any, noise_level: int) -> str:
    """The modules with their collectives and operators.

    Args:
        mode: the `CommDebugMode`.
        noise_level: from 0 to 3.
    """
    return "".join(_rows(mode, name, described, noise_level)
                   for name, described in mode.advanced_module_tracker.module_helper_dict.items())


def _rows(mode: Any, name: str, described: dict[str, Any], noise_level: int) -> str:
    """The rows of one module."""
    depth = 2 * described["depth"]
    indent, of_pass, of_collective, of_operation = ("  " * (depth + i) for i in range(4))
    rows = f"{indent}{name}\n"
    if noise_level > 0:
        if "module_type" in described:
            rows += f"{indent}*module type: {described['module_type']}\n"
        if "parameters" in described:
            rows += f"{indent}*Parameter List\n"
            rows += "".join(f"{indent} *{param}: {where}\n" for param, where in described["parameters"].items())
    titles = "FORWARD PASS", "BACKWARD PASS", "ACTIVATION CHECKPOINTING"
    for title, counts, operations in zip(titles, (*_collectives(mode, name), {}),
                                         _operations(mode, name), strict=True):
        if not counts and not (operations and noise_level > 0):
            continue
        rows += f"{of_pass}{title}\n"
        rows += "".join(f"{_YELLOW}{of_collective}*{each}: {count}{_END}" for each, count in counts.items())
        for op in operations:
            if not _shown(op, noise_level):
                continue
            rows += f"{_YELLOW}{of_collective}**{op['name']}{_END}"
            if op["input_shape"]:
                rows += (f"{_RED}{of_operation}shape: {op['input_shape']}{_END}"
                         f"{_RED}{of_operation}sharding: {op['input_sharding']}{_END}"
                         f"{_RED}{of_operation}device mesh: {op['device_mesh']}{_END}")
    return rows


def write_json(mode: Any, path: str, noise_level: int) -> None:
    """Write the modules as nested objects.

    Args:
        mode: the `CommDebugMode`.
        path: the file.
        noise_level: from 0 to 3.
    """
    tracker = mode.advanced_module_tracker

    def text(op: dict[str, Any]) -> dict[str, Any]:
        return {**op, "name": str(op["name"]), "input_shape": [str(each) for each in op["input_shape"]],
                "input_sharding": [str(each) for each in op["input_sharding"]]}

    def of_module(name: str) -> dict[str, Any]:
        described = tracker.module_helper_dict[name] if noise_level > 0 else {}
        collectives = [[(str(each), count) for each, count in counts.items()] for counts in _collectives(mode, name)]
        operations = [[text(op) for op in each if _shown(op, noise_level)] for each in _operations(mode, name)]
        return {"fqn": name, "module_type": described.get("module_type", ""),
                "parameters": list(described.get("parameters", {}).items()),
                "children": [of_module(each) for each in tracker.parent_dict.get(name, ())],
                "collectives_forward": collectives[0], "collectives_backward": collectives[1],
                "operations_forward": operations[0], "operations_backward": operations[1],
                "operations_checkpointing": operations[2]}

    with open(path, "w", encoding="utf-8") as file:
        json.dump(of_module("Global"), file, indent=4)


__all__ = ["TRIVIAL", "tracing_table", "write_json"]
