"""Functions of PyTorch's test machinery that are taken from the installed PyTorch's source file when tests run.

They are the generators and decorators of sparse tests, plain functions of `torch`. Their source is read and executed
with the names of the stubs, so that they run on flambeau. Without an installed PyTorch their use skips the test.
"""

from __future__ import annotations

import ast
import functools
import importlib.metadata
import inspect
import itertools
import math
import operator
import random
import unittest
import warnings
from pathlib import Path
from typing import Any

import torch

from ..placeholder import Placeholder

_FILE = "torch/testing/_internal/common_utils.py"


@functools.cache
def _tree() -> ast.Module | None:
    """The syntax tree of PyTorch's module; None where PyTorch is not installed."""
    try:
        files = importlib.metadata.files("torch") or []
    except importlib.metadata.PackageNotFoundError:
        return None
    path = next((Path(str(f.locate())) for f in files if str(f) == _FILE), None)
    return None if path is None else ast.parse(path.read_text(encoding="utf-8"))


def _namespace() -> dict[str, Any]:
    from torch.testing import make_tensor

    return {"torch": torch, "wraps": functools.wraps, "partial": functools.partial, "functools": functools,
            "itertools": itertools, "math": math, "operator": operator, "random": random, "warnings": warnings,
            "unittest": unittest, "inspect": inspect, "make_tensor": make_tensor, "Any": Any, "T": Any,
            "List": list, "Tuple": tuple, "Iterable": Any}


def take(name: str, of_class: str | None = None) -> Any:
    """A function or class of PyTorch's module, or a method of one of its classes."""
    tree = _tree()
    body: list[ast.stmt] = [] if tree is None else tree.body
    if of_class is not None:
        body = next((node.body for node in body if isinstance(node, ast.ClassDef) and node.name == of_class), [])
    for node in body:
        if isinstance(node, (ast.FunctionDef, ast.ClassDef)) and node.name == name:
            static = isinstance(node, ast.FunctionDef) and any(
                isinstance(d, ast.Name) and d.id == "staticmethod" for d in node.decorator_list)
            node.decorator_list = []
            scope = _namespace()
            future = ast.ImportFrom("__future__", [ast.alias("annotations")], 0)
            exec(compile(ast.fix_missing_locations(ast.Module([future, node], [])), _FILE, "exec"), scope)
            return staticmethod(scope[name]) if static else scope[name]
    return Placeholder(f"torch.testing._internal.common_utils.{name}", internal=True)


#: the methods of PyTorch's base class of tests that make sparse tensors
METHODS = frozenset(("genSparseTensor", "genSparseCompressedTensor", "genSparseCSRTensor", "genSparseCSCTensor",
                     "genSparseBSRTensor", "genSparseBSCTensor", "generate_simple_inputs", "safeToDense",
                     "_make_crow_indices"))
#: functions of the module, mostly decorators
FUNCTIONS = frozenset(("coalescedonoff", "is_coalesced_indices", "suppress_warnings", "do_test_dtypes", "first_sample",
                       "DeterministicGuard"))

__all__ = ["FUNCTIONS", "METHODS", "take"]
