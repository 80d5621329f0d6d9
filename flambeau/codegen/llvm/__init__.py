"""LLVM IR generation: vectors, loop nests, reducers, and the lowering of scalar IR."""
