"""Guards: the conditions under which a compiled program may be replayed."""
