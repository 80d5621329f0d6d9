"""The `flambeau` command: `demo`, `run script.py args...`, `version`.

The command's own imports are those of the standard library; each subcommand brings
its own.
"""

from __future__ import annotations

import argparse
import io
import sys
from collections.abc import Sequence
from pathlib import Path
from types import ModuleType, TracebackType

from .version import __version__


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line; the exit status comes back."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):  # v̇₁ on a terminal that cannot show it is v?1, no crash
            stream.reconfigure(errors="replace")
    parser = argparse.ArgumentParser(
        prog="flambeau", description="PyTorch's define-by-run autograd in pure Python.")
    commands = parser.add_subparsers(dest="command", required=True, metavar="command")

    demo = commands.add_parser(
        "demo", help="trace, draw and train something, and say where the pictures are",
        description="Trace a function forward and backward, descend two functions, and train a "
                    "classifier on handwritten digits; every picture is written to a folder.")
    demo.add_argument("--out", type=Path, default=Path("flambeau-demo"), metavar="DIR",
                      help="where the pictures go (default: %(default)s)")

    run = commands.add_parser(
        "run", help="run a PyTorch script with torch meaning flambeau",
        description="Run an unchanged PyTorch script: `import torch` in it, and in all that it "
                    "imports, gives flambeau.")
    run.add_argument("script", help="the script's file")
    run.add_argument("args", nargs=argparse.REMAINDER, help="what the script finds in sys.argv[1:]")

    commands.add_parser("version", help="print the version")

    options = parser.parse_args(argv)
    if options.command == "version":
        print(__version__)
        return 0
    if options.command == "run":
        return run_script(options.script, options.args)
    try:
        from .demo import show
    except ModuleNotFoundError as missing:
        if missing.name is None or missing.name.partition(".")[0] == "flambeau":
            raise
        print(f"The demo needs {missing.name}, which is not installed: pip install flambeau[demo]",
              file=sys.stderr)
        return 1
    show(options.out)
    return 0


def run_script(script: str, args: Sequence[str]) -> int:
    """Run a script as `python script args...` would, with `torch` meaning flambeau.

    The script is `__main__`, its folder stands first on `sys.path`, and a traceback
    begins at the script.

    Returns:
        The exit status: 0, or 1 after an uncaught exception. SystemExit passes through.
    """
    path = Path(script)
    if not path.is_file():
        print(f"flambeau run: there is no file {script!r}", file=sys.stderr)
        return 2
    from . import alias

    alias.install()
    main_module = ModuleType("__main__")
    main_module.__file__ = script
    main_module.__dict__["__builtins__"] = __builtins__
    sys.modules["__main__"] = main_module
    sys.argv = [script, *args]
    sys.path[0] = str(path.parent.resolve())
    try:
        code = compile(path.read_bytes(), script, "exec", dont_inherit=True)
        exec(code, main_module.__dict__)
    except (SystemExit, KeyboardInterrupt):
        raise
    except BaseException as error:
        report(error, script)
        return 1
    return 0


def report(error: BaseException, script: str) -> None:
    """Show an uncaught exception through `sys.excepthook`, without the frames above the script's."""
    traceback: TracebackType | None = error.__traceback__
    while traceback is not None and traceback.tb_frame.f_code.co_filename != script:
        traceback = traceback.tb_next
    error.__traceback__ = traceback
    sys.stdout.flush()
    sys.excepthook(type(error), error, traceback)
