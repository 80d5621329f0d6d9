"""A runner of PyTorch's own, unmodified test files on flambeau, by the `torch` alias.

    python -m tests.upstream PATH_TO_TEST_FILE [-k PATTERN] [--list-failures]

The files are not part of this repository; fetch them from PyTorch's. `stubs` replaces the parts of PyTorch's test
machinery that they import. Names that cannot exist here (C++ extensions, other devices) are objects whose use skips the
test, so that each file loads. `not_applicable.txt` lists excluded tests with reasons.
"""
