"""Runtime: object code compiled by LLVM, kept on disk, loaded, and launched on a thread pool."""
