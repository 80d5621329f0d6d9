"""Random programs that must do under flambeau what they do under PyTorch, statement by statement.

A program is Python source text made from a seed (`writing`), run with `torch` bound to either
library (`running`); after its statements all that a user can see of every tensor is noted
(`looking`) and compared (`comparing`); what disagrees is reduced (`shrinking`) and printed.

    python -m tests.random_programs --programs 2000
    python -m tests.random_programs --replay 1234
"""
