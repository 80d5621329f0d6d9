"""`python -m torch.distributed.launch`, the launcher before `torchrun`: it also passes the rank as an argument."""

from __future__ import annotations

import warnings
from collections.abc import Sequence

from .run import get_args_parser, run

__all__ = ["main"]


def main(args: Sequence[str] | None = None) -> None:
    """Run the command.

    Args:
        args: the words of the command line; those of this process if None.
    """
    warnings.warn("The module torch.distributed.launch is deprecated\nand will be removed in future. Use "
                  "torchrun.\nNote "
                  "that --use-env is set by default in torchrun.", FutureWarning, stacklevel=2)
    parser = get_args_parser()
    parser.add_argument("--use-env", "--use_env", action="store_true", help="Do not pass --local-rank to the program.")
    options = parser.parse_args(args)
    options.passes_local_rank = not options.use_env
    run(options)


if __name__ == "__main__":
    main()
