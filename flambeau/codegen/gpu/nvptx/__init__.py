"""PTX: code generation by LLVM, NVIDIA's assembler, and what its report means."""
