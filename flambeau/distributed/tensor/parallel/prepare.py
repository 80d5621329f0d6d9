"""Styles that place the inputs and outputs of a module whose parameters stay as they are."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ....nn.modules.module import Module
from ...device_mesh import DeviceMesh
from ...placement_types import Placement
from .._dtensor import DTensor
from .linear_styles import ParallelStyle

Layouts = Placement | Sequence[Placement | None] | None


def _listed(layouts: Any) -> tuple[Placement | None, ...]:
    return () if layouts is None else (layouts,) if isinstance(layouts, Placement) else tuple(layouts)


class PrepareModuleInput(ParallelStyle):
    """Make distributed tensors of the inputs of a module, and redistribute them.

    Args:
        input_layouts: how each positional input is placed; None: it stays as it is.
        desired_input_layouts: how each is to be placed.
        input_kwarg_layouts: how inputs by name are placed.
        desired_input_kwarg_layouts: how they are to be placed.
        use_local_output: pass the parts, not `DTensor`s.

    Raises:
        AssertionError: there are not as many wanted layouts as layouts.
    """

    def __init__(self, *, input_layouts: Layouts = None, desired_input_layouts: Layouts = None,
                 input_kwarg_layouts: dict[str, Placement] | None = None,
                 desired_input_kwarg_layouts: dict[str, Placement] | None = None,
                 use_local_output: bool = False) -> None:
        self.input_layouts = None if input_layouts is None else _listed(input_layouts)
        self.desired_input_layouts = None if desired_input_layouts is None else _listed(desired_input_layouts)
        self.use_local_output = use_local_output
        if self.input_layouts is not None:
            if self.desired_input_layouts is None:
                raise AssertionError("desired module inputs should not be None!")
            if len(self.input_layouts) != len(self.desired_input_layouts):
                raise AssertionError("input_layouts and desired_input_layouts should have same length!")
        self.with_kwargs = input_kwarg_layouts is not None
        self.input_kwarg_layouts = input_kwarg_layouts or {}
        self.desired_input_kwarg_layouts = desired_input_kwarg_layouts or {}
        if self.with_kwargs and len(self.input_kwarg_layouts) != len(self.desired_input_kwarg_layouts):
            raise AssertionError("input_kwarg_layouts and desired_input_kwarg_layouts should have same length!")

    def _one(self, x: Any, mesh: DeviceMesh, given: Placement | None, wanted: Placement | None) -> Any:
        if given is None:
            return x
        if not isinstance(x, DTensor):
            if not hasattr(x, "_array"):
                raise AssertionError("expecting input to be a torch.Tensor!")
            x = DTensor.from_local(x, mesh, (given,), run_check=False)
        if wanted is not None and given != wanted:
            x = x.redistribute(placements=(wanted,))
        return x.to_local() if self.use_local_output else x

    def _positional(self, inputs: Any, mesh: DeviceMesh) -> Any:
        if self.input_layouts is None:
            return inputs
        inputs = inputs if isinstance(inputs, tuple) else (inputs,)
        if len(inputs) != len(self.input_layouts):
            raise ValueError("module inputs and input_layouts should have same length!")
        assert self.desired_input_layouts is not None
        return tuple(self._one(x, mesh, given, wanted) for x, given, wanted in zip(
            inputs, self.input_layouts, self.desired_input_layouts, strict=True))

    def _named(self, inputs: Any, kwargs: dict[str, Any], mesh: DeviceMesh) -> tuple[Any, dict[str, Any]]:
        named = {name: self._one(x, mesh, self.input_kwarg_layouts.get(name),
                                 self.desired_input_kwarg_layouts.get(name)) for name, x in kwargs.items()}
        return self._positional(inputs, mesh), named

    def _apply(self, module: Module, device_mesh: DeviceMesh) -> Module:
        if self.with_kwargs:
            module.register_forward_pre_hook(lambda _, inputs, kwargs: self._named(inputs, kwargs, device_mesh),
                                             with_kwargs=True)
        else:
            module.register_forward_pre_hook(lambda _, inputs: self._positional(inputs, device_mesh))
        return module

    def __repr__(self) -> str:
        return (f"PrepareModuleInput(input_layouts={self.input_layouts}, "
                f"desired_input_layouts={self.desired_input_layouts}, "
                f"input_kwarg_layouts={self.input_kwarg_layouts}, "
                f"desired_input_kwarg_layouts={self.desired_input_kwarg_layouts}, "
                f"use_local_output={self.use_local_output})")


class PrepareModuleOutput(ParallelStyle):
    """Make distributed tensors of the outputs of a module, and redistribute them.

    Args:
        output_layouts: how each output is placed; None: it stays as it is.
        desired_output_layouts: how each is to be placed.
        use_local_output: return the parts, not `DTensor`s.

    Raises:
        AssertionError: there are not as many wanted layouts as layouts.
    """

    def __init__(self, *, output_layouts: Layouts, desired_output_layouts: Layouts,
                 use_local_output: bool = True) -> None:
        self.output_layouts, self.desired_output_layouts = _listed(output_layouts), _listed(desired_output_layouts)
        self.use_local_output = use_local_output
        if len(self.output_layouts) != len(self.desired_output_layouts):
            raise AssertionError("output_layouts and desired_output_layouts should have same length!")

    def _prepared(self, outputs: Any, mesh: DeviceMesh) -> Any:
        every = outputs if isinstance(outputs, tuple) else (outputs,)
        if len(every) != len(self.output_layouts):
            raise ValueError("module outputs and output_layouts should have same length!")
        result = []
        for x, given, wanted in zip(every, self.output_layouts, self.desired_output_layouts, strict=True):
            if given is not None:
                if not isinstance(x, DTensor):
                    x = DTensor.from_local(x, mesh, (given,), run_check=False)
                if given != wanted and wanted is not None:
                    x = x.redistribute(placements=(wanted,))
                x = x.to_local() if self.use_local_output else x
            result.append(x)
        return result[0] if len(result) == 1 else tuple(result)

    def _apply(self, module: Module, device_mesh: DeviceMesh) -> Module:
        module.register_forward_hook(lambda _, inputs, outputs: self._prepared(outputs, device_mesh))
        return module

    def __repr__(self) -> str:
        return (f"PrepareModuleOutput(output_layouts={self.output_layouts}, "
                f"desired_output_layouts={self.desired_output_layouts}, use_local_output={self.use_local_output})")


class PrepareModuleInputOutput(ParallelStyle):
    """`PrepareModuleInput` and `PrepareModuleOutput` of one module.

    Args:
        input_layouts: as of `PrepareModuleInput`.
        desired_input_layouts: as of `PrepareModuleInput`.
        input_kwarg_layouts: as of `PrepareModuleInput`.
        desired_input_kwarg_layouts: as of `PrepareModuleInput`.
        use_local_input: `use_local_output` of `PrepareModuleInput`.
        output_layouts: as of `PrepareModuleOutput`.
        desired_output_layouts: as of `PrepareModuleOutput`.
        use_local_output: as of `PrepareModuleOutput`.
    """

    def __init__(self, *, input_layouts: Layouts = None, desired_input_layouts: Layouts = None,
                 input_kwarg_layouts: dict[str, Placement] | None = None,
                 desired_input_kwarg_layouts: dict[str, Placement] | None = None, use_local_input: bool = False,
                 output_layouts: Layouts = None, desired_output_layouts: Layouts = None,
                 use_local_output: bool = True) -> None:
        self.prepare_module_input = PrepareModuleInput(
            input_layouts=input_layouts, desired_input_layouts=desired_input_layouts,
            input_kwarg_layouts=input_kwarg_layouts, desired_input_kwarg_layouts=desired_input_kwarg_layouts,
            use_local_output=use_local_input)
        self.prepare_module_output = PrepareModuleOutput(
            output_layouts=output_layouts, desired_output_layouts=desired_output_layouts,
            use_local_output=use_local_output)

    def _apply(self, module: Module, device_mesh: DeviceMesh) -> Module:
        self.prepare_module_input._apply(module, device_mesh)
        self.prepare_module_output._apply(module, device_mesh)
        return module

    def __repr__(self) -> str:
        return (f"PrepareModuleInputOutput(prepare_module_input={self.prepare_module_input}, "
                f"prepare_module_output={self.prepare_module_output})")


__all__ = ["PrepareModuleInput", "PrepareModuleInputOutput", "PrepareModuleOutput"]
