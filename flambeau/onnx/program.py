"""`ONNXProgram`: an ONNX model, and the exported program that it was made of."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from typing import Any

import flambeau as torch

from ..export.graph_signature import ConstantArgument, InputKind, OutputKind
from ..utils._pytree import tree_flatten
from .errors import OnnxExporterError

__all__ = ["ONNXProgram"]


class ONNXProgram:
    """An ONNX model.

    Args:
        model: the model, an `onnx.ModelProto`.
        exported_program: what it was made of.

    Attributes:
        model: the model.
        exported_program: what it was made of.

    Source: https://docs.pytorch.org/docs/stable/onnx_export.html#torch.onnx.ONNXProgram

    >>> import flambeau as torch
    >>> program = torch.onnx.export(torch.nn.ReLU(), (torch.ones(2),))
    >>> [each.name for each in program.model_proto.graph.output]
    ['relu']
    """

    def __init__(self, model: Any, exported_program: Any = None) -> None:
        self.model, self.exported_program = model, exported_program
        #: the program of core operators that was translated, and the model's value of each of its nodes
        self._translated: tuple[Any, dict[str, str]] | None = None
        self._session: Any = None

    @property
    def model_proto(self) -> Any:
        """The model as `onnx.ModelProto`."""
        return self.model

    def __repr__(self) -> str:
        import onnx

        return f"ONNXProgram(\n    model=\n{onnx.printer.to_text(self.model)}\n)"

    def optimize(self) -> None:
        """Fold constants, merge equal nodes, cancel pairs of transpositions and reshapes: by `onnxscript.optimizer`.

        Small weights that only constants are combined with are folded too: `apply_weights` finds them no more.

        Raises:
            OnnxExporterError: the package `onnxscript` is missing.

        >>> import flambeau as torch
        >>> class Twice(torch.nn.Module):
        ...     def forward(self, x):
        ...         return x.sin() + x.sin() * (torch.ones(2) * 3)
        >>> program = torch.onnx.export(Twice(), (torch.ones(2),))
        >>> [node.op_type for node in program.model.graph.node]
        ['Sin', 'Sin', 'Expand', 'Mul', 'Mul', 'Add']
        >>> program.optimize()
        >>> [node.op_type for node in program.model.graph.node]
        ['Sin', 'Mul', 'Add']
        """
        import onnx

        try:
            from onnxscript import optimizer
        except ImportError as error:
            raise OnnxExporterError("optimize() needs the package `onnxscript`: pip install flambeau[onnx]") from error
        model = optimizer.optimize(self.model)
        onnx.checker.check_model(model, full_check=model.ByteSize() < 1 << 30)
        self.model, self._session = model, None

    def save(self, destination: str | os.PathLike[str], *, include_initializers: bool = True,
             keep_initializers_as_inputs: bool = False, external_data: bool | None = None) -> None:
        """Write the model to a file.

        Args:
            destination: its path.
            include_initializers: whether weights are in it.
            keep_initializers_as_inputs: whether weights are inputs too.
            external_data: whether weights are in a file beside it, `destination + ".data"`; default: where the model is
                larger than a protobuf may be (2 GB).
        """
        import onnx

        model = onnx.ModelProto()
        model.CopyFrom(self.model)
        if keep_initializers_as_inputs:
            known = {each.name for each in model.graph.input}
            model.graph.input.extend(onnx.helper.make_tensor_value_info(t.name, t.data_type, list(t.dims))
                                     for t in model.graph.initializer if t.name not in known)
        if not include_initializers:
            known = {each.name for each in model.graph.input}
            model.graph.input.extend(onnx.helper.make_tensor_value_info(t.name, t.data_type, list(t.dims))
                                     for t in model.graph.initializer if t.name not in known)
            del model.graph.initializer[:]
        path = os.fspath(destination)
        if external_data is None:
            external_data = model.ByteSize() > 1_900_000_000
        if external_data:
            data = os.path.basename(path) + ".data"
            if os.path.exists(os.path.join(os.path.dirname(path), data)):
                os.remove(os.path.join(os.path.dirname(path), data))
            onnx.save_model(model, path, save_as_external_data=True, all_tensors_to_one_file=True, location=data,
                            size_threshold=1024)
        else:
            onnx.save_model(model, path)

    def apply_weights(self, state_dict: dict[str, Any]) -> None:
        """Replace weights by those of a state dict; names that the model does not have are ignored."""
        import onnx

        for tensor in self.model.graph.initializer:
            if tensor.name in state_dict:
                value = state_dict[tensor.name].detach().contiguous().numpy()
                tensor.CopyFrom(onnx.numpy_helper.from_array(value, tensor.name))
        self._session = None

    def initialize_inference_session(self, initializer: Any = None) -> None:
        """Make the session of onnxruntime that calls use.

        Args:
            initializer: a function of the model's path or bytes that returns a session.
        """
        import onnxruntime  # type: ignore[import-untyped]

        if initializer is not None:
            self._session = initializer(self.model.SerializeToString())
            return
        options = onnxruntime.SessionOptions()
        options.log_severity_level = 3
        self._session = onnxruntime.InferenceSession(self.model.SerializeToString(), options,
                                                     providers=["CPUExecutionProvider"])

    def release(self) -> None:
        """Free the session."""
        self._session = None

    def __call__(self, *args: Any, **kwargs: Any) -> list[Any]:
        """The outputs, computed by onnxruntime.

        Args:
            args, kwargs: the arguments of the exported module.

        Returns:
            tensors, in the order of the model's outputs; other results of the module are put between them.
        """
        if self._session is None:
            self.initialize_inference_session()
        given = self._fed([each.name for each in self._session.get_inputs()], args, kwargs)
        results = iter(self._session.run(None, given))
        if self.exported_program is None:
            return [torch.from_numpy(each) for each in results]
        found: list[Any] = []
        for spec in self.exported_program.graph_signature.output_specs:
            if spec.kind != OutputKind.USER_OUTPUT:
                continue
            if isinstance(spec.arg, ConstantArgument):
                found.append(spec.arg.value)
            else:
                found.append(torch.tensor(next(results)))
        return found

    def call_reference(self, *args: Any, **kwargs: Any) -> tuple[Any, ...]:
        """The model's outputs, computed by the reference implementation of the package `onnx`, in NumPy.

        Args:
            args, kwargs: the arguments of the exported module.
        """
        from onnx.reference import ReferenceEvaluator

        evaluator = ReferenceEvaluator(self.model)
        return tuple(torch.tensor(each) for each in evaluator.run(None, self._fed(evaluator.input_names, args, kwargs)))

    def compute_values(self, value_names: Sequence[str], args: Any = (), kwargs: Any = None) -> list[Any]:
        """Values inside the model, computed by onnxruntime.

        Args:
            value_names: their names.
            args, kwargs: the arguments of the exported module.

        Raises:
            ValueError: the model has no value of that name.
        """
        import onnx

        model = onnx.ModelProto()
        model.CopyFrom(self.model)
        graph = model.graph
        known = {each.name for each in (*graph.input, *graph.initializer)}
        known.update(name for node in graph.node for name in node.output)
        for name in value_names:
            if name not in known:
                raise ValueError(f"Value '{name}' not found in the model. Please provide a valid value name.")
        del graph.output[:]
        graph.output.extend(onnx.helper.make_empty_tensor_value_info(name) for name in value_names)
        inner = ONNXProgram(model)
        inner.initialize_inference_session()
        fed = self._fed([each.name for each in inner._session.get_inputs()], args, kwargs or {})
        return [torch.tensor(each) for each in inner._session.run(None, fed)]

    def rename_axes(self, rename_mapping: Mapping[str, str]) -> None:
        """Rename dynamic dimensions, everywhere in the model.

        Args:
            rename_mapping: name -> new name; a formula of names, `2*n`, is that of the new ones.

        >>> import flambeau as torch
        >>> shapes = ({0: torch.export.Dim("n")},)
        >>> program = torch.onnx.export(torch.nn.ReLU(), (torch.ones(2),), dynamic_shapes=shapes)
        >>> program.rename_axes({"n": "batch"})
        >>> program.model.graph.output[0].type.tensor_type.shape.dim[0].dim_param
        'batch'
        """
        graph = self.model.graph
        for info in (*graph.input, *graph.output, *graph.value_info):
            for dim in info.type.tensor_type.shape.dim:
                if dim.dim_param:
                    dim.dim_param = re.sub(r"[A-Za-z_]\w*", lambda found: rename_mapping.get(found[0], found[0]),
                                           dim.dim_param)
        self._session = None

    def _fed(self, names: Sequence[str], args: Any, kwargs: Any) -> dict[str, Any]:
        """Name of an input -> its array."""
        values = self._inputs(args, kwargs)
        return {name: value.detach().contiguous().numpy() for name, value in zip(names, values, strict=False)}

    def _flat_arguments(self, args: Any, kwargs: Any) -> list[Any]:
        """The leaves of the arguments, in the exported program's order."""
        names = list(self.exported_program.call_spec.in_spec.children()[1].context or ())
        return tree_flatten((args, {key: kwargs[key] for key in names if key in kwargs}))[0]

    def _inputs(self, args: Any, kwargs: Any) -> list[Any]:
        """The tensors that are the model's inputs."""
        leaves = tree_flatten((args, kwargs))[0]
        if self.exported_program is None:
            return [x for x in leaves if isinstance(x, torch.Tensor)]
        leaves = self._flat_arguments(args, kwargs)
        specs = [spec for spec in self.exported_program.graph_signature.input_specs
                 if spec.kind == InputKind.USER_INPUT]
        return [x for x, spec in zip(leaves, specs, strict=True) if not isinstance(spec.arg, ConstantArgument)]
