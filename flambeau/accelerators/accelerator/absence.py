"""The error of functions that need an accelerator."""

NONE = "Cannot access accelerator device when none is available."
