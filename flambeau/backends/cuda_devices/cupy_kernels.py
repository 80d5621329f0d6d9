"""Generated kernels on a GPU: PTX loaded as modules of CuPy, and launches with packed arguments."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import Any

import numpy as np

from ...codegen.gpu.kernel_ir import Kernel
from ...codegen.gpu.nvptx import ptx
from ...codegen.gpu.nvptx.occupancy import DEFAULT_SHARED
from ...codegen.gpu.statements import Buffer


class Kernels:
    """The kernels that a GPU has loaded.

    Args:
        cupy: the module `cupy`.
        architecture: for which code is generated.
    """

    def __init__(self, cupy: Any, architecture: str) -> None:
        self._cuda, self._architecture = cupy.cuda, architecture
        self._functions: dict[str, Any] = {}
        self._lock = threading.Lock()

    def load(self, kernels: Sequence[Kernel]) -> None:
        """Load kernels that are not loaded yet, as one module, on the current device."""
        with self._lock:
            missing = {kernel.name: kernel for kernel in kernels if kernel.name not in self._functions}
            if not missing:
                return
            module = self._cuda.Module()
            module.load(ptx.compile_kernels(list(missing.values()), self._architecture).encode())
            for name, kernel in missing.items():
                function = module.get_function(name)
                if kernel.shared > DEFAULT_SHARED:
                    driver = self._cuda.driver
                    driver.funcSetAttribute(function.ptr, driver.CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES,
                                            kernel.shared)
                self._functions[name] = function

    def start(self, kernel: Kernel, grid: tuple[int, int, int], addresses: Sequence[int], scalars: Sequence[Any]
              ) -> None:
        """Start a kernel on the current device and CuPy's current stream.

        Args:
            kernel, grid, scalars: as for `Runtime.run_kernel`.
            addresses: of its buffers.
        """
        function = self._functions.get(kernel.name)
        if function is None:
            self.load([kernel])
            function = self._functions[kernel.name]
        function(grid, (kernel.threads, 1, 1), packed(kernel, addresses, scalars), kernel.shared)

    def handle(self, kernel: Kernel) -> int:
        """The driver's function of a loaded kernel."""
        return int(self._functions[kernel.name].ptr)


def packed(kernel: Kernel, addresses: Sequence[int], scalars: Sequence[Any]) -> tuple[Any, ...]:
    """A kernel's arguments as NumPy numbers, which CuPy passes by value: 8 bytes for an address, else the dtype's."""
    left, numbers = iter(addresses), iter(scalars)
    return tuple([np.uint64(next(left)) if isinstance(each, Buffer) else each.dtype.type(next(numbers))
                  for each in kernel.parameters])


__all__ = ["Kernels", "packed"]
