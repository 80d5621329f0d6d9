"""Generated code: names, statements, functions made of source."""
