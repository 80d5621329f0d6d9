"""Sixty architectures in small, as their users write them: a training step, or generation, of each."""
