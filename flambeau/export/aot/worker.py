"""The process that compiles for another machine: a pickled job on standard input, compiled code on standard output."""

from __future__ import annotations

import os
import pickle
import sys

from .errors import ExportError
from .jobs import VariantCode


def main() -> None:
    """Compile one job."""
    output = os.dup(1)
    os.dup2(2, 1)  # what is printed must not get between the bytes of the result
    if "alias" in sys.argv:
        from ... import alias

        alias.install()
    from .variant_code import compile_variant

    result: VariantCode | ExportError
    try:
        result = compile_variant(pickle.load(sys.stdin.buffer))
    except ExportError as error:
        result = error
    with os.fdopen(output, "wb") as file:
        file.write(pickle.dumps(result))


if __name__ == "__main__":
    main()
