"""Arrays in, arrays out: what NumPy lacks or does too slowly."""
