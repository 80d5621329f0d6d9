"""Runtime: object code is compiled by LLVM, cached on disk, loaded, and launched on a thread pool."""
