"""The signature of an exported graph: what each input and output stands for."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from enum import Enum, auto
from typing import Any

__all__ = ["ConstantArgument", "CustomObjArgument", "ExportBackwardSignature", "ExportGraphSignature", "InputKind",
           "InputSpec", "OutputKind", "OutputSpec", "SymBoolArgument", "SymFloatArgument", "SymIntArgument",
           "TensorArgument", "TokenArgument"]


@dataclasses.dataclass
class TensorArgument:
    """A tensor: the name of its node."""

    name: str


@dataclasses.dataclass
class TokenArgument:
    """A token of an effect: the name of its node."""

    name: str


@dataclasses.dataclass
class SymIntArgument:
    """A size that is known when the program runs: the name of its node."""

    name: str


@dataclasses.dataclass
class SymFloatArgument:
    """A float that is known when the program runs: the name of its node."""

    name: str


@dataclasses.dataclass
class SymBoolArgument:
    """A bool that is known when the program runs: the name of its node."""

    name: str


@dataclasses.dataclass
class CustomObjArgument:
    """An object of a class of TorchScript: the name of its node."""

    name: str
    class_fqn: str
    fake_val: Any = None


@dataclasses.dataclass
class ConstantArgument:
    """A value that does not change, with the name of its node."""

    name: str
    value: Any


class InputKind(Enum):
    """What an input stands for."""

    USER_INPUT = auto()
    PARAMETER = auto()
    BUFFER = auto()
    CONSTANT_TENSOR = auto()
    CUSTOM_OBJ = auto()
    TOKEN = auto()


@dataclasses.dataclass
class InputSpec:
    """An input.

    Attributes:
        kind: what it stands for.
        arg: its node.
        target: the name of the parameter, buffer or constant.
        persistent: of a buffer: whether it is in the state dict.
    """

    kind: InputKind
    arg: Any
    target: str | None
    persistent: bool | None = None

    def __post_init__(self) -> None:
        if self.kind == InputKind.BUFFER and self.persistent is None:
            raise AssertionError("Failed to specify persistent flag on BUFFER.")

    def __str__(self) -> str:
        target = "" if self.target is None else f" target='{self.target}'"
        persistent = "" if self.persistent is None else f" persistent={self.persistent}"
        return f"{self.arg.name}: {self.kind.name}{target}{persistent}"


class OutputKind(Enum):
    """What an output stands for."""

    USER_OUTPUT = auto()
    LOSS_OUTPUT = auto()
    BUFFER_MUTATION = auto()
    PARAMETER_MUTATION = auto()
    GRADIENT_TO_PARAMETER = auto()
    GRADIENT_TO_USER_INPUT = auto()
    USER_INPUT_MUTATION = auto()
    TOKEN = auto()


@dataclasses.dataclass
class OutputSpec:
    """An output.

    Attributes:
        kind: what it stands for.
        arg: its node, or a constant.
        target: the name of what is written.
    """

    kind: OutputKind
    arg: Any
    target: str | None

    def __str__(self) -> str:
        target = "" if self.target is None else f" target='{self.target}'"
        return f"{self.arg.name}: {self.kind.name}{target}"


@dataclasses.dataclass
class ExportBackwardSignature:
    """The outputs that are gradients.

    >>> from flambeau.export import ExportBackwardSignature
    >>> ExportBackwardSignature({"grad": "weight"}, {}, "loss").loss_output
    'loss'
    """

    gradients_to_parameters: dict[str, str]
    gradients_to_user_inputs: dict[str, str]
    loss_output: str


@dataclasses.dataclass
class ExportGraphSignature:
    """What the inputs and outputs of a graph stand for.

    >>> import flambeau as torch
    >>> signature = torch.export.export(torch.nn.Linear(2, 1), (torch.ones(3, 2),)).graph_signature
    >>> dict(signature.inputs_to_parameters), signature.user_outputs
    ({'p_weight': 'weight', 'p_bias': 'bias'}, ('linear',))

    Attributes:
        input_specs, output_specs: in the graph's order.
    """

    input_specs: list[InputSpec]
    output_specs: list[OutputSpec]

    def _targets(self, kind: InputKind) -> tuple[Any, ...]:
        return tuple(s.target for s in self.input_specs if s.kind == kind and isinstance(s.target, str))

    def _by_name(self, kind: InputKind) -> dict[str, str]:
        return {s.arg.name: s.target for s in self.input_specs if s.kind == kind and isinstance(s.target, str)}

    def _written(self, kind: OutputKind) -> dict[str, str]:
        return {s.arg.name: s.target for s in self.output_specs if s.kind == kind and isinstance(s.target, str)}

    @property
    def parameters(self) -> tuple[str, ...]:
        """The names of the parameters."""
        return self._targets(InputKind.PARAMETER)

    @property
    def buffers(self) -> tuple[str, ...]:
        """The names of the buffers."""
        return self._targets(InputKind.BUFFER)

    @property
    def non_persistent_buffers(self) -> tuple[str, ...]:
        """The names of the buffers that are not in the state dict."""
        return tuple(s.target for s in self.input_specs if s.kind == InputKind.BUFFER and not s.persistent and s.target)

    @property
    def lifted_tensor_constants(self) -> tuple[str, ...]:
        """The names of the constants."""
        return self._targets(InputKind.CONSTANT_TENSOR)

    @property
    def lifted_custom_objs(self) -> tuple[str, ...]:
        """The names of objects of TorchScript's classes: there are none."""
        return self._targets(InputKind.CUSTOM_OBJ)

    @property
    def user_inputs(self) -> tuple[Any, ...]:
        """The names of the program's inputs, or their values where these are constants."""
        return tuple(s.arg.value if isinstance(s.arg, ConstantArgument) else s.arg.name for s in self.input_specs
                     if s.kind == InputKind.USER_INPUT)

    @property
    def user_outputs(self) -> tuple[Any, ...]:
        """The names of the program's outputs, or their values where these are constants."""
        return tuple(s.arg.value if isinstance(s.arg, ConstantArgument) else s.arg.name for s in self.output_specs
                     if s.kind in (OutputKind.USER_OUTPUT, OutputKind.LOSS_OUTPUT))

    @property
    def inputs_to_parameters(self) -> Mapping[str, str]:
        """Name of an input -> name of the parameter."""
        return self._by_name(InputKind.PARAMETER)

    @property
    def inputs_to_buffers(self) -> Mapping[str, str]:
        """Name of an input -> name of the buffer."""
        return self._by_name(InputKind.BUFFER)

    @property
    def inputs_to_lifted_tensor_constants(self) -> Mapping[str, str]:
        """Name of an input -> name of the constant."""
        return self._by_name(InputKind.CONSTANT_TENSOR)

    @property
    def inputs_to_lifted_custom_objs(self) -> Mapping[str, str]:
        """Name of an input -> name of the object: there are none."""
        return self._by_name(InputKind.CUSTOM_OBJ)

    @property
    def buffers_to_mutate(self) -> Mapping[str, str]:
        """Name of an output -> name of the buffer that it is written to."""
        return self._written(OutputKind.BUFFER_MUTATION)

    @property
    def parameters_to_mutate(self) -> Mapping[str, str]:
        """Name of an output -> name of the parameter that it is written to."""
        return self._written(OutputKind.PARAMETER_MUTATION)

    @property
    def user_inputs_to_mutate(self) -> Mapping[str, str]:
        """Name of an output -> name of the input that it is written to."""
        return self._written(OutputKind.USER_INPUT_MUTATION)

    @property
    def backward_signature(self) -> ExportBackwardSignature | None:
        """The outputs that are gradients: None, since backward passes are not exported."""
        return None

    @property
    def assertion_dep_token(self) -> Mapping[int, str] | None:
        """Kept for callers: None."""
        return None

    @property
    def input_tokens(self) -> tuple[str, ...]:
        """The names of tokens: none."""
        return ()

    @property
    def output_tokens(self) -> tuple[str, ...]:
        """The names of tokens: none."""
        return ()

    def replace_all_uses(self, old: str, new: str) -> None:
        """Rename a node."""
        specs: list[Any] = [*self.output_specs, *self.input_specs]
        for spec in specs:
            if getattr(spec.arg, "name", None) == old and not isinstance(spec.arg, ConstantArgument):
                spec.arg.name = new

    def get_replace_hook(self, replace_inputs: bool = False) -> Any:
        """A hook of graph modules that renames nodes here where a pass replaces them."""
        def rename(old: Any, new: str, user: Any) -> None:
            if user.op == "output":
                self.replace_all_uses(old.name, new)

        return rename


    def __str__(self) -> str:
        inputs = "\n".join(map(str, self.input_specs))
        outputs = "\n".join(map(str, self.output_specs))
        return f"\n# inputs\n{inputs}\n\n# outputs\n{outputs}\n"
