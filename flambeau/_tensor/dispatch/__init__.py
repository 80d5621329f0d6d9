"""Dispatch: how an operator is bound, promoted, run, wrapped and recorded."""
