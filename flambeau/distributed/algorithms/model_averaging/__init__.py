"""Averages of models that processes train apart from each other."""
