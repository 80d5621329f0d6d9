"""The parts of `Module`: calls and hooks, saving and loading, conversion of dtype and device."""
