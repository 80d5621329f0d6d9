"""A runner of PyTorch's own, unmodified test files on flambeau, by the `torch` alias.

    python -m tests.upstream PATH_TO_TEST_FILE [-k PATTERN] [--list-failures]

The files are not part of this repository; fetch them from PyTorch's. PyTorch's test machinery is executed on flambeau
from the installed PyTorch's source files (`machinery`), tables of operators, modules and optimizers included; without
PyTorch, or with `--stubs`, `stubs` replaces the parts that most files import. Names that cannot exist here (C++
extensions, other devices) are objects whose use skips the test, so that each file loads. `not_applicable.txt` lists
excluded tests with reasons.
"""
