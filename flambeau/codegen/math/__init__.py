"""Mathematical functions as LLVM IR: polynomial approximations over scalars and vectors."""
