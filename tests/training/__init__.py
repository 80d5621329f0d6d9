"""Training programs whose losses under flambeau and under PyTorch are compared, step by step.

A program is a script that says `import torch`. It runs once with either library, unchanged and with the same seed;
`recorder` notes the loss of each call of backward. The programs are those of this package (`programs/`), of
pytorch/examples and of nanoGPT; what they would download is made here (`data`).

    python -m tests.training                                    # all, in virtual environments of their own
    python -m tests.training vae gan --steps 10 --here          # with this interpreter: no packages beside PyTorch
    python -m tests.training --sources FOLDER                   # where examples/ and nanoGPT/ are already
"""
