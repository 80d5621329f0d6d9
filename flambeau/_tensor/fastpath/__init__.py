"""Fast paths: specializations of dispatch for common calls."""
