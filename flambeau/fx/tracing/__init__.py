"""Parts of tracers: arguments, replaced functions, placeholders."""
