"""Code generation for functions of containers: arguments are flattened, the result is put together again."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from ...utils import _pytree as pytree
from .codegen import CodeGen, _described_items


class _PyTreeInfo(NamedTuple):
    """The parameters of a function of containers, and the structures of its arguments and of its result."""

    orig_args: list[str]
    in_spec: Any
    out_spec: Any


class _PyTreeCodeGen(CodeGen):
    """Code of a function of containers."""

    def __init__(self, pytree_info: _PyTreeInfo) -> None:
        super().__init__()
        self.pytree_info = pytree_info

    def process_inputs(self, *inputs: Any) -> Any:
        return pytree.arg_tree_leaves(*inputs)

    def process_outputs(self, out: Any) -> Any:
        if self.pytree_info is None or self.pytree_info.out_spec is None:
            return out
        return pytree.tree_unflatten(out if isinstance(out, (list, tuple)) else [out], self.pytree_info.out_spec)

    def gen_fn_def(self, free_vars: list[str], maybe_return_annotation: str, *, expanded_def: bool = False) -> str:
        if self.pytree_info is None:
            return super().gen_fn_def(free_vars, maybe_return_annotation, expanded_def=expanded_def)
        names = self.pytree_info.orig_args
        if names and names[0] == "self":
            free_vars.insert(0, "self")
        definition = super().gen_fn_def(names[:], maybe_return_annotation, expanded_def=expanded_def)
        return definition + self.gen_var_bindings(names, free_vars, expanded_def) if free_vars else definition

    def gen_var_bindings(self, fn_args: list[str], free_vars: list[str], expanded_def: bool) -> str:
        """The statements that bind the placeholders to the leaves of the arguments."""
        spec = self.pytree_info.in_spec
        if (spec.type is tuple and spec.num_children == 2 and spec.child(0).type is tuple
                and spec.child(1).type is dict):
            count = spec.child(0).num_children
            named = zip(spec.child(1).context, self.pytree_info.orig_args[count:], strict=False)
            keywords = ", ".join(f"'{key}':{value}" for key, value in named)
            flattened = f"([{', '.join(self.pytree_info.orig_args[:count])}], {{{keywords}}}), self._in_spec"
        else:
            flattened = f"[{', '.join(fn_args)}], self._in_spec"
        annotated = [variable for variable in free_vars if ":" in variable]
        annotations = ""
        if annotated and expanded_def:
            annotations = "\n    " + "\n    ".join(annotated)
        elif annotated:
            annotations = "\n    " + "".join(f"{variable}; " for variable in annotated) + "\n"
        plain = ", ".join(variable.split(":")[0].split("#")[0] for variable in free_vars)
        return f"{annotations}\n    {plain}, = fx_pytree.tree_flatten_spec({flattened})"

    def generate_output(self, output_args: Any, *, descs: Sequence[str] | None = None,
                        repr_fn: Callable[[Any], str] | None = None) -> str:
        show = repr_fn or repr
        if not (self.pytree_info and self.pytree_info.out_spec):
            return super().generate_output(output_args, descs=descs, repr_fn=show)
        if descs is not None and isinstance(output_args, (list, tuple)):
            return _described_items(output_args, descs, "return pytree.tree_unflatten(", show) + ", self._out_spec)"
        return f"return pytree.tree_unflatten({show(output_args)}, self._out_spec)"


class _BoxedCodeGen(CodeGen):
    """Code of a function of one list of arguments, which it clears so that they are freed early."""

    def gen_fn_def(self, free_vars: list[str], maybe_return_annotation: str, *, expanded_def: bool = False) -> str:
        definition = f"def {self._func_name}(self, args_list){maybe_return_annotation}:"
        names = [name.split(":")[0].split("=")[0].strip() for name in free_vars if name != "self"]
        if names:
            bindings = "".join(f"\n    {name} = next(args_iter)" for name in names)
            definition += f"\n    args_iter = iter(args_list){bindings}\n    args_list.clear()"
        return definition


__all__: list[str] = []
