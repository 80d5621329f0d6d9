"""Graph breaks: a function that cannot be one program is split into parts that are, with Python between them."""
