"""Programs for GPUs: the same graphs, fusion groups and schedules as on the CPU, with the kernels of `codegen.gpu`."""
