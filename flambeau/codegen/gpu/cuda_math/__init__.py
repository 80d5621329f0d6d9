"""The mathematical functions of CUDA's library, so that elements have the bits that other programs on a GPU compute."""
