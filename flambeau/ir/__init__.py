"""The compiler's IR: graphs of array values, their lowering, fusion into kernels, scheduling and execution.

A `Graph` (`graph/value.py`) holds interned `Value`s: elementwise operations, reductions, matmuls, views and extern
kernels. `lowering` traces operator declarations into values, `fusion` groups values into kernels, `schedule` orders
the kernels and assigns memory, and `schedule/program.py` runs the result. Nothing here depends on tensors or gradients.
"""
