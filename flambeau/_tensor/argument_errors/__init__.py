"""What is said when the arguments of a call fit no signature of its function."""
