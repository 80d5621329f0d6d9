"""Overriding: `__torch_function__` of tensor subclasses, foreign classes and modes.

`protocol` finds the arguments that override a function and calls their handlers. `entry_points` makes the public
functions and methods ask it, while a handler exists.
"""
