"""Differential tests: PyTorch's own operator samples, run on PyTorch and on flambeau, must give the same results.

`python -m tests.parity --help` is the command line; `test_opdb.py` is the same run under pytest.
The oracle is `torch.testing._internal`'s table of operators (`op_db`); nothing of it is copied here.
"""
