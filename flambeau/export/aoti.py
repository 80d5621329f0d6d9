"""`torch._inductor.aoti_compile_and_package`: an exported program as a file, and the compiled function of such a file.

The file is the exported program, which every machine reads; its kernels come from LLVM, or from the persistent cache,
when a loaded model is first called. `export.aot` writes shared libraries for programs without Python.
"""

from __future__ import annotations

import io
import json
import os
import platform
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import IO, Any

import flambeau as torch

from ..compiler import compile
from ..compiler.inductor import check_options
from .exported_program import ExportedProgram
from .saving import load, save

_METADATA = "aoti_metadata.json"


class AOTICompiledModel:
    """The compiled function of a file; its results have no gradients.

    Args:
        program: the program that the file holds.
        metadata: what `get_metadata` returns.
    """

    def __init__(self, program: ExportedProgram, metadata: dict[str, str]) -> None:
        self._program, self._metadata = program, metadata
        self._module = program.module()
        self._function = compile(self._module)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        with torch.no_grad():
            return self._function(*args, **kwargs)

    def get_metadata(self) -> dict[str, str]:
        """The device and the machine for which the file was written."""
        return dict(self._metadata)

    def get_constant_fqns(self) -> list[str]:
        """The names of the parameters, buffers and constants."""
        return [*self._program.state_dict, *(name for name, value in self._program.constants.items()
                                             if isinstance(value, torch.Tensor) and name not in
                                             self._program.state_dict)]

    def load_constants(self, constants_map: Mapping[str, torch.Tensor], *, check_full_update: bool,
                       user_managed: bool = False) -> None:
        """Write the values of constants.

        Args:
            constants_map: name -> value.
            check_full_update: whether all constants must be there.
            user_managed: whether the tensors themselves are used, so that later writes to them are seen.

        Raises:
            RuntimeError: a name is unknown, or one is missing with `check_full_update`.
        """
        known = self.get_constant_fqns()
        if unknown := [name for name in constants_map if name not in known]:
            raise RuntimeError(f"Unexpected constants: {', '.join(unknown)}")
        if check_full_update and (missing := [name for name in known if name not in constants_map]):
            raise RuntimeError(f"Missing constants: {', '.join(missing)}")
        for name, value in constants_map.items():
            path, _, last = name.rpartition(".")
            held = getattr(self._module.get_submodule(path), last)
            if user_managed:
                held.data = value
            else:
                with torch.no_grad():
                    held.copy_(value)

    def __deepcopy__(self, memo: dict[int, Any] | None) -> AOTICompiledModel:
        return self  # what is compiled is shared, as in PyTorch


def aoti_compile_and_package(exported_program: ExportedProgram, _deprecated_unused_args: Any = None,
                             _deprecated_unused_kwargs: Any = None, *,
                             package_path: str | os.PathLike[str] | IO[bytes] | None = None,
                             inductor_configs: dict[str, Any] | None = None) -> Any:
    """Write an exported program to a file that `aoti_load_package` reads.

    Args:
        exported_program: what `torch.export.export` returned.
        package_path: a path that ends in `.pt2`, or a buffer; None: a file of a temporary folder.
        inductor_configs: settings of PyTorch's compiler, which are checked only.

    Returns:
        The path, or the buffer.

    Raises:
        ValueError: another program.
        AssertionError: another ending.
        RuntimeError: a setting does not exist.

    >>> import io
    >>> import flambeau as torch
    >>> program = torch.export.export(torch.nn.ReLU(), (torch.ones(2),))
    >>> buffer = torch._inductor.aoti_compile_and_package(program, package_path=io.BytesIO())
    >>> torch._inductor.aoti_load_package(buffer)(torch.tensor([-1.0, 1.0]))
    tensor([0., 1.])
    """
    if not isinstance(exported_program, ExportedProgram):
        raise ValueError("Only ExportedProgram is supported")
    check_options(inductor_configs or {})
    is_path = isinstance(package_path, (str, os.PathLike))
    if package_path is not None and not isinstance(package_path, io.IOBase) and not (
            is_path and str(package_path).endswith(".pt2")):
        raise AssertionError("Expect package path to be a file ending in .pt2, is None, or is a buffer. "
                             f"Instead got {package_path}")
    target: Any = package_path
    if target is None:
        target = str(Path(tempfile.mkdtemp()) / "model.pt2")
    metadata = {"AOTI_DEVICE_KEY": "cpu", "AOTI_PLATFORM": platform.system().lower(),
                "AOTI_MACHINE": platform.machine()}
    save(exported_program, target, extra_files={_METADATA: json.dumps(metadata)})
    if isinstance(target, io.IOBase):
        target.seek(0)
    return target


def aoti_load_package(path: str | os.PathLike[str] | IO[bytes], run_single_threaded: bool = False,
                      device_index: int = -1) -> AOTICompiledModel:
    """The compiled function of a file that `aoti_compile_and_package` has written.

    Args:
        path: its path or a buffer.
        run_single_threaded, device_index: without effect: `torch.set_num_threads` says how many threads compute.

    Raises:
        RuntimeError: the file cannot be read, or holds something else.
    """
    extra: dict[str, Any] = {_METADATA: ""}
    program = load(path, extra_files=extra)
    if not extra[_METADATA]:
        raise RuntimeError(f"{path} was not written by aoti_compile_and_package")
    return AOTICompiledModel(program, json.loads(extra[_METADATA]))


__all__ = ["AOTICompiledModel", "aoti_compile_and_package", "aoti_load_package"]
