"""`torch.cuda.jiterator`: kernels written in CUDA C++, which can be declared and need a GPU to run."""

from __future__ import annotations

import re
from typing import Any, NoReturn

_KERNEL = re.compile(r"\s*template\s*<[^>]*>\s*(?P<returns>\w+)\s+(?P<name>\w+)\s*\(.*\)\s*\{.*\}\s*", re.DOTALL)


class _JittedFunction:
    """A declared kernel; a call raises AssertionError."""

    is_cuda_available = False

    def __init__(self, code_string: str, return_by_ref: bool, num_outputs: int, **kwargs: Any) -> None:
        kernel = _KERNEL.fullmatch(code_string)
        if kernel is None:
            raise Exception(f"Couldn't parse code, please check correctness:\n {code_string}")  # PyTorch's class
        self.code_string, self.return_by_ref, self.num_outputs = code_string, return_by_ref, num_outputs
        self.kernel_name, self.kwargs_dict = kernel["name"], kwargs

    def __call__(self, *tensors: Any, **kwargs: Any) -> NoReturn:
        raise AssertionError("Jiterator is only supported on CUDA and ROCm GPUs, none are available.")


def _create_jit_fn(code_string: str, **kwargs: Any) -> _JittedFunction:
    """Declare a kernel with one result."""
    return _JittedFunction(code_string, False, 1, **kwargs)


def _create_multi_output_jit_fn(code_string: str, num_outputs: int, **kwargs: Any) -> _JittedFunction:
    """Declare a kernel that writes its results to references."""
    return _JittedFunction(code_string, True, num_outputs, **kwargs)
