"""Graphs of array operations, and what is made of them: kernels that are few, and run without the interpreter.

A `Graph` holds `Value`s, each made once (equal operations are one value): elementwise operations, reductions,
products, views, and whatever else is computed as a whole. `namespace` writes operators' declarations as such values;
`clusters` groups them into kernels; `planning` orders the kernels and gives every array its memory; `program` runs
the result. Nothing here knows of tensors or gradients.
"""
