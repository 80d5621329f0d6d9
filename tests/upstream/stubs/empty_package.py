"""A package with nothing in it but what the finder puts below it."""
