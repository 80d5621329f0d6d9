from tests.codegen.gpu.on_device import kernels_run_on_the_gpu

__all__ = ["kernels_run_on_the_gpu"]
