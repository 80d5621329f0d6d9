"""Specialised derivative rules: inlined, compiled, deferred and fused ones."""
