"""Nested tensors of the jagged layout: the tensor, its sizes and its operators."""
