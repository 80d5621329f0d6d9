"""Lowering: operator declarations traced into graphs of values."""
