"""Operators on large arrays, one file per kernel family."""
