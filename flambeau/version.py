"""The version, read by packaging, `flambeau.__version__` and the changelog's test."""

__version__ = "0.1.0"

#: names of `torch.version`: a release for the CPU
debug = False
cuda: str | None = None
git_version = ""
hip: str | None = None
rocm: str | None = None
xpu: str | None = None
