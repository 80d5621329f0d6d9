"""PyTorch's own test files, run as they stand with `torch` meaning flambeau.

    python -m tests.upstream PATH_TO_TEST_FILE [-k PATTERN] [--list-failures]

The files are not part of this repository: fetch them from PyTorch's. What they import from PyTorch's own test
machinery is replaced by the small stand-ins in `standins`; what cannot exist in a package for the CPU in pure
Python (`torch._dynamo`, C++ extensions, other devices) by objects whose use skips the test, so that a file always
loads. `not_applicable.txt` lists the tests that can say nothing about flambeau, with the reason.
"""
