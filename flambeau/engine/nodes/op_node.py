"""OpNode: the graph node of a declared operator, with the values that it saved for backward."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from operator import and_
from typing import Any

import numpy as np

from ... import dtypes
from ...backends.bit_views import resolve
from ...backends.compiled.narrow_kernels import PRODUCT_RULES, multiplies_bfloat16
from ...backends.compiled.thresholds import LARGE_SEEN
from ...backends.sparse_array import SparseAccess, as_array
from ...errstate import run_in_quiet
from ...ops.backward_plan import NOTHING, ONE_INPUT, ONE_OUTPUT, SEVERAL, TWO_INPUTS, BackwardPlan
from ...ops.declare import Op
from ..grad_mode import grad_mode
from ..saved.modified_in_place import modified_input_message, modified_output_message
from ..saved.saved_tensors import HAS_HOOKS, IS_FREED, IS_NONE, Hooks, Packed
from ..saved.version_counters import WRITES
from ..tensor_interface import layer
from .fused_backward import FUSED, with_history
from .node import FREED_MESSAGE, Node, NodeType, check_gradient_shape


class _Freed:
    """The class of `FREED`."""


#: what `saved0` holds once the saved values were freed
FREED = _Freed()


class OpNode(Node):
    """The node of a declared operator: its backward plan determines the saved values and the rules to run.

    Inside the engine it is an OpNode for every operator: CPython's attribute access is fastest where all objects
    at a position have one class. When it is returned to the user it takes the class of PyTorch's name, `MulBackward0`
    (`public`).
    """

    __slots__ = ("consts", "fix", "plan", "saved0", "saved1", "versions")
    # The saved values in the layout `plan.layout`: nothing, one input, two inputs, an output and its version
    # counter, or a tuple. `saved0` is FREED once they were freed.
    saved0: Any
    saved1: Any
    versions: tuple[int, ...] | None  # the versions at which they were saved; None where all were 0
    consts: tuple[Any, ...]
    plan: BackwardPlan
    fix: tuple[Any, ...] | None  # (shapes, dtypes, conjugate, widen): the post-processing of gradients, if any

    @property
    def op(self) -> Op:
        """The operator that was applied."""
        return self.plan.op

    @property
    def takes_undefined(self) -> bool:  # type: ignore[override]
        return self.plan.op.undefined_gradients

    def name(self) -> str:
        name = self.plan.op.node
        return f"torch::autograd::{name}" if name in _NAMESPACED else name

    @property
    def saved(self) -> tuple[Any, ...] | None:
        """Tensors, then (array, counter) of outputs; None once freed."""
        first = self.saved0
        if first is FREED:
            return None
        layout = self.plan.layout
        if layout == NOTHING:
            return ()
        if layout == ONE_INPUT:
            return (first,)
        if layout == TWO_INPUTS:
            return (first, self.saved1)
        return ((first, self.saved1),) if layout == ONE_OUTPUT else first

    @saved.setter
    def saved(self, saved: tuple[Any, ...]) -> None:
        layout = self.plan.layout
        self.saved0 = self.saved1 = None
        if layout == ONE_INPUT:
            self.saved0, = saved
        elif layout == TWO_INPUTS:
            self.saved0, self.saved1 = saved
        elif layout == ONE_OUTPUT:
            (self.saved0, self.saved1), = saved
        elif layout == SEVERAL:
            self.saved0 = saved

    def check_saved(self) -> None:
        if self.plan.saves_tensors:
            self.unpack(False)

    def release_variables(self) -> None:
        plan = self.plan
        if plan.layout:
            self.saved0 = FREED
            self.saved1 = None
            if plan.saved_list is not None and (saved := self.consts[plan.saved_list]):
                saved.clear()

    def public(self) -> Node:
        if type(self) is OpNode:
            name = self.plan.op.node
            cls = _classes.get(name)
            if cls is None:
                cls = _classes[name] = NodeType(name, (OpNode,), {"__slots__": ()})
            self.__class__ = cls
        return self

    def visible_edges(self) -> Sequence[int | None] | None:
        op = self.op
        if op.node == "ClampBackward0" and len(self.edges) == 2:  # of one bound, which has the name of its operator
            return (0, 1, None) if op.inputs[1] == "min" else (0, None, 1)
        if op.node == "torch::autograd::NotImplemented":  # it has edges to what requires grad
            return [i for i, edge in enumerate(self.edges) if edge is not None] or [0]
        if not op.nondifferentiable_inputs:
            return None
        without = op.nondifferentiable_inputs
        star = len(op.inputs) - 1 if op.variadic and op.inputs[-1] in without else len(self.edges)
        last = len(op.inputs) - 1
        return [i for i in range(len(self.edges)) if i < star and op.inputs[min(i, last)] not in without]

    def unpack(self, tensors: bool) -> list[Any]:
        """The saved values, after a check of their versions.

        Raises:
            RuntimeError: they were freed, or modified in position.
        """
        values: list[Any]
        saved = self.saved
        if saved is None:
            raise RuntimeError(FREED_MESSAGE)
        versions = self.versions
        if versions is None and not tensors:  # most often all are as they were when they were saved
            try:
                values = []
                for entry in saved:
                    if entry.__class__ is tuple:
                        array, counter = entry
                        if counter is None or counter[0]:
                            break
                        values.append(array)
                    elif entry is None:
                        values.append(None)
                    else:
                        counter = entry._counter
                        if counter is not None and counter[0]:
                            break
                        values.append(entry._array)
                else:
                    return values
            except AttributeError:  # of numbers, and of what hooks have packed
                pass
        values = []
        n_tensors = len(saved) - len(self.plan.saved_outputs)
        unpacked: dict[int, Any] | None = None
        for i, entry in enumerate(saved):
            expected = 0 if versions is None else versions[i]
            if i < n_tensors:
                if entry is None or entry.__class__ in dtypes.PYTHON_CATEGORY:
                    values.append(entry)
                    continue
                if entry.__class__ is Packed:
                    if unpacked is None:
                        unpacked = self._unpack_in_order(saved, n_tensors, tensors)
                    values.append(unpacked[i])
                    continue
                counter = entry._counter
                if counter is not None and counter[0] != expected:
                    raise RuntimeError(self._first_modified(saved, versions))
                values.append(entry if tensors else entry._array)
            else:
                array, counter = entry
                if counter is None:
                    if unpacked is None:
                        unpacked = self._unpack_in_order(saved, n_tensors, tensors)
                    values.append(unpacked[i])
                    continue
                number = self.plan.saved_outputs[i - n_tensors]
                if counter[0] != expected:
                    raise RuntimeError(self._first_modified_output(saved[n_tensors:], versions, n_tensors))
                values.append(self._output_tensor(array, number, counter) if tensors else array)
        return values

    def _unpack_in_order(self, saved: Sequence[Any], n_inputs: int, tensors: bool) -> dict[int, Any]:
        """The packed values by position, unpacked as they were packed: inputs, then outputs, by PyTorch's names."""
        from .saved_attributes import names_of_saved_tensors

        names = names_of_saved_tensors(self)
        entries = [entry if i < n_inputs else entry[0] for i, entry in enumerate(saved)]
        packed = [i for i, entry in enumerate(entries) if entry.__class__ is Packed]
        return {i: self._unpacked(entries[i], tensors) for i in sorted(packed, key=lambda i: (i >= n_inputs, names[i]))}

    def _first_modified_output(self, saved: Sequence[Any], versions: tuple[int, ...] | None, start: int) -> str:
        """`_first_modified` for saved outputs."""
        from .saved_attributes import names_of_saved_tensors

        names = names_of_saved_tensors(self)[start:]
        for _, i in sorted(zip(names, range(len(saved)), strict=True)):
            array, counter = saved[i]
            expected = 0 if versions is None else versions[start + i]
            if counter is not None and counter[0] != expected:
                return modified_output_message(self, array, self.plan.saved_outputs[i], counter[0], expected)
        raise AssertionError("no saved output was modified")

    def _first_modified(self, saved: tuple[Any, ...], versions: tuple[int, ...] | None) -> str:
        """The error message for saved inputs that were modified: that of the first by name, as in PyTorch."""
        from .saved_attributes import names_of_saved_tensors

        found = []
        for i, name in enumerate(names_of_saved_tensors(self)[: len(saved) - len(self.plan.saved_outputs)]):
            counter = getattr(saved[i], "_counter", None)
            expected = 0 if versions is None else versions[i]
            if counter is not None and counter[0] != expected:
                found.append((name, i, expected))
        _, i, expected = min(found)
        return modified_input_message(saved[i], saved[i]._counter[0], expected)

    def _unpacked(self, packed: Packed, tensors: bool) -> Any:
        value = packed.unpack(self)
        if packed.as_scalar:
            return value
        if packed.is_output and self.extra is not None and self.extra.tangents:
            value._tangents = self.extra.tangents.get(packed.number)
        return value if tensors else resolve(value._array)

    def _output_tensor(self, array: np.ndarray, number: int, counter: list[int]) -> Any:
        """A saved output as a tensor with this node as its history, and its tangent."""
        tensor = layer.wrap_output(array, self, number, counter)
        if self.extra is not None and self.extra.tangents and number in self.extra.tangents:
            tensor._tangents = self.extra.tangents[number]
        return tensor

    def vjp(self, cotangents: Any, tensors: bool, wanted: Sequence[bool] | None = None,
            unpacked: list[Any] | None = None) -> Any:
        """The cotangents of the inputs.

        Args:
            cotangents: of the output; a list where there are several outputs.
            tensors: whether cotangents are tensors, whose operators are recorded; else arrays.
            wanted: the inputs whose cotangents are computed; None for all that the plan has.
            unpacked: the saved values, if they were unpacked before.
        """
        plan = self.plan
        needs = plan.needs if wanted is None else tuple(map(and_, plan.needs, wanted))
        fix = self.fix
        gs = tuple(cotangents) if self.op.n_outputs > 1 else (cotangents,)
        if unpacked is None:
            unpacked = self.unpack(tensors) if plan.saves_tensors else []
        try:
            products: list[Any] | None = None
            if fix is not None:
                if not tensors and fix[3]:
                    if LARGE_SEEN[0] and fix[0] is None and not fix[2]:
                        from ...ir.decompositions.gradient_rules import narrow_gradients  # with the first large array

                        programs = narrow_gradients(plan, gs, needs, unpacked, self.consts, fix[1])
                        if programs is not None:
                            return self._post_process(programs, False)
                    products = self._narrow_products(gs[0], unpacked, needs)
                    if products is not None:
                        needs = tuple([need and product is None for need, product in zip(needs, products, strict=True)])
                    if products is None or any(needs):
                        gs = tuple(None if g is None else dtypes.widen(g) for g in gs)
                    if products is None:
                        unpacked = [dtypes.widen(v) if v.__class__ is np.ndarray else v for v in unpacked]
                if fix[2]:
                    conj = layer.functions.conj if tensors else np.conjugate
                    gs = tuple(None if g is None else conj(g) for g in gs)
            if self.op.tensor_list:
                gs = (list(gs),)
            values = (*gs, layer.functions if tensors else layer.arrays, needs, *unpacked, *self.consts)
            if plan.joint is not None:
                if self.op.variadic:
                    values = self._gather_variadic(values)
                function, pick = plan.joint
                arguments = pick(values)
                result = list(run_in_quiet(function, arguments) if LARGE_SEEN[0] and not tensors else
                              function(*arguments))
                result += [None] * (len(self.edges) - len(result))
                for i, need in enumerate(needs):
                    if not need:
                        result[i] = None
            else:
                result = [None] * len(self.edges)
                for i, function, pick in plan.steps:
                    if not needs[i]:
                        continue
                    arguments = pick(values)
                    result[i] = run_in_quiet(function, arguments) if LARGE_SEEN[0] and not tensors else (
                        function(*arguments))
                if products is not None:
                    result = [x if product is None else product for x, product in zip(result, products, strict=True)]
            if fix is not None:
                result = self._post_process(result, tensors)
            if tensors and self.op.node in FUSED:
                with_history(self, self.op.node, result)
            return result
        except SparseAccess:
            if tensors:
                raise
            return self._vjp_over_tensors(cotangents)
        except (ValueError, IndexError):  # NumPy's error for what a hook unpacked: operators of tensors raise PyTorch's
            if tensors or not plan.saves_tensors or not any(x.__class__ is Packed for x in self._entries()):
                raise
            return self._vjp_over_tensors(cotangents, [
                layer.wrap(x) if isinstance(x, np.ndarray) else x for x in unpacked])

    def _entries(self) -> list[Any]:
        """The saved values as they are stored, those of outputs without their versions."""
        return [x[0] if x.__class__ is tuple else x for x in self.saved or ()]

    def _narrow_products(self, g: Any, saved: Sequence[Any], needs: Sequence[bool]) -> list[Any] | None:
        """The cotangents of bfloat16 that are products, without widening; by input, None for others.

        None where there is no kernel, or factors are not 1.
        """
        first = PRODUCT_RULES.get(self.op.name)
        if first is None or g is None or any(value.__class__ is not tuple and value != 1 for value in self.consts):
            return None
        if not all(x.__class__ is np.ndarray and x.dtype == dtypes.BFLOAT16 for x in (g, *saved)) or (
                not multiplies_bfloat16(g.size)):
            return None
        values = (g, layer.arrays, needs, *saved, *self.consts)
        result: list[Any] = [None] * len(self.edges)
        for i, function, pick in self.plan.steps:
            if i >= first and needs[i]:
                result[i] = run_in_quiet(function, pick(values))
        return result

    def _vjp_over_tensors(self, cotangents: Any, unpacked: list[Any] | None = None) -> list[Any]:
        """`vjp` of arrays, computed by operators of tensors: some of the arrays are sparse, or not of its shapes."""
        several = self.op.n_outputs > 1
        gs = [None if g is None else layer.wrap(as_array(g))
              for g in (cotangents if several else [cotangents])]
        token = grad_mode.set(False)
        try:
            result = self.vjp(gs if several else gs[0], True, None, unpacked)
        finally:
            grad_mode.reset(token)
        return [None if g is None else resolve(g._array) for g in result]

    def _gather_variadic(self, values: tuple[Any, ...]) -> tuple[Any, ...]:
        plan = self.plan
        if plan.saved_inputs:
            op = plan.op
            count = self.n_edges - len(op.inputs) + 1
            start = op.n_outputs + 2 + len(plan.saved_inputs) - count
            return (*values, list(values[start: start + count]))
        return values

    def _post_process(self, result: list[Any], tensors: bool) -> list[Any]:
        """Post-process gradients: sum over broadcast dimensions, undo conjugation, cast to the inputs' dtypes."""
        assert self.fix is not None
        shapes, types, conjugate, _ = self.fix
        xp = layer.functions if tensors else layer.arrays
        for i, g in enumerate(result):
            if g is None:
                continue
            if conjugate:
                g = xp.conj(g) if tensors else np.conjugate(g)
            if shapes is not None and (shape := (g._array if tensors else g).shape) != shapes[i]:
                check_gradient_shape(self, i, shape, shapes[i])
                g = xp.sum_to_size(g, shapes[i])
            if types is not None:
                array_type = g._array.dtype if tensors else g.dtype
                expected = types[i]
                if array_type != expected:
                    if array_type.kind == "c" and not dtypes.is_complex(expected):
                        g = xp.real(g)
                    g = xp.to(g, dtypes.of(expected))
            result[i] = g
        return result

    # ----- saved values under PyTorch's names -----

    def __getattr__(self, name: str) -> Any:
        if name.startswith(("_saved_", "_raw_saved_")):
            from .saved_attributes import saved_attribute  # which only readers of attributes need

            return saved_attribute(self, name)
        raise AttributeError(f"'{type(self).__name__}' object has no attribute '{name}'")

    def _entry_at(self, position: int) -> tuple[Any, list[int] | None, int | None]:
        """A saved value, its version counter, and its output number (None for an input)."""
        saved = self.saved
        if saved is None:
            raise RuntimeError(FREED_MESSAGE)
        at = position - len(saved) + len(self.plan.saved_outputs)
        if at >= 0:
            return *saved[position], self.plan.saved_outputs[at]
        return saved[position], getattr(saved[position], "_counter", None), None

    def tensor_at(self, position: int) -> Any:
        """The saved value at a position as a tensor.

        Raises:
            RuntimeError: it was freed, or modified in place since.
        """
        entry, counter, number = self._entry_at(position)
        if entry.__class__ is Packed:
            entry = self._unpacked(entry, True)
        elif counter is not None and WRITES & (counter[0] ^ (
                expected := 0 if self.versions is None else self.versions[position])):
            text = modified_input_message(entry, counter[0], expected) if number is None else (
                modified_output_message(self, entry, number, counter[0], expected))
            raise RuntimeError(text)
        elif number is not None:
            return self._output_tensor(entry, number, counter or [0])
        return layer.wrap(np.asarray(entry)) if entry.__class__ in dtypes.PYTHON_CATEGORY else entry

    def _raw_data(self, position: int) -> Any:
        entry, _, number = self._entry_at(position)
        if entry.__class__ is Packed:
            return entry.data
        if number is None:
            return layer.wrap(np.asarray(entry)) if entry.__class__ in dtypes.PYTHON_CATEGORY else entry
        return layer.wrap(entry)

    def _unpack_hook_of(self, position: int) -> Any:
        entry = self._entry_at(position)[0]
        return entry.unpack_hook if entry.__class__ is Packed else None

    def _pack_saved(self, position: int, hooks: Hooks) -> None:
        if self.saved is None:
            raise RuntimeError(IS_FREED)
        entry, counter, number = self._entry_at(position)
        if entry.__class__ is Packed:
            raise RuntimeError(HAS_HOOKS)
        if entry is None:
            raise RuntimeError(IS_NONE)
        if number is not None:
            plain = layer.wrap(entry)
            plain._counter = counter
            packed = Packed(self._output_tensor(entry, number, counter or [0]), hooks, is_output=True, hook_input=plain)
        elif entry.__class__ in dtypes.PYTHON_CATEGORY:
            packed = Packed(layer.functions.tensor(entry), hooks, as_scalar=True)
        else:
            packed = Packed(entry, hooks, hook_input=entry.detach())
        self.replace_saved({position: packed})

    def replace_saved(self, packed: dict[int, Packed]) -> None:
        """Replace saved tensors, given by their positions, by packed values."""
        saved = list(self.saved or ())
        first_output = len(saved) - len(self.plan.saved_outputs)
        for position, value in packed.items():
            saved[position] = value if position < first_output else (value, None)
        self.saved = tuple(saved)
        self.run = None  # specialised rules read arrays

    def __dir__(self) -> list[str]:
        from .saved_attributes import saved_attribute_names

        return sorted([*object.__dir__(self), *saved_attribute_names(self)])

    @property
    def saved_tensors(self) -> Iterator[Any]:
        raise AttributeError(f"'{type(self).__name__}' object has no attribute 'saved_tensors'")


#: nodes whose names have a namespace in PyTorch, where they are written by hand
_NAMESPACED = frozenset(("CopyBackwards",))


_classes: dict[str, type] = {}


def public_node(node: Node | None) -> Node | None:
    """A node as users see it: with the class of its name."""
    return None if node is None else node.public()


__all__ = ["FREED", "OpNode", "public_node"]
