"""Models of their published sizes in every form that a program is saved as: `python -m tests.export.full_size`."""
