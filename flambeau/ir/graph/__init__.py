"""The graph: values, views, inputs, extern kernels, and rewrites of them."""
