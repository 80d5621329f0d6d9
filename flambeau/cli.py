"""The `flambeau` command: `cache`, `demo`, `run script.py args...`, `graph script.py args...`, `version`.

Each subcommand imports what it needs when it runs.
"""

from __future__ import annotations

import argparse
import io
import sys
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path
from types import ModuleType, TracebackType

from .runtime import cache_store
from .version import __version__


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line; the exit status comes back."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):  # v̇₁ on a terminal that cannot show it is v?1, no crash
            stream.reconfigure(errors="replace")
    parser = argparse.ArgumentParser(
        prog="flambeau", description="PyTorch's define-by-run autograd in pure Python.")
    parser.add_argument("--version", action="version", version=f"flambeau {__version__}")
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

    graph = commands.add_parser(
        "graph", help="run a script and explore the graphs that it made, in a browser",
        description="Run an unchanged PyTorch script as `run` does, then write one HTML page of every graph that "
                    "backward() went through, or that is alive at the end; each is a step to scrub through.")
    graph.add_argument("--out", type=Path, metavar="FILE", help="the page to write (default: SCRIPT-graph.html)")
    graph.add_argument("--no-open", action="store_true", help="do not open the page in a browser")
    graph.add_argument("script", help="the script's file")
    graph.add_argument("args", nargs=argparse.REMAINDER,
                       help="what the script finds in sys.argv[1:]; --out and --no-open at the end are this command's")

    caches = commands.add_parser(
        "cache", help="list or clear the persistent cache of compiled code, plans and measurements",
        description="List the persistent cache: entries, bytes and times of last use of each kind. `clear` deletes "
                    "them; later processes compile and measure again. FLAMBEAU_CACHE_DIR sets the folder, "
                    "FLAMBEAU_CACHE_LIMIT the size, such as 500M or 2G (0: nothing is written).")
    actions = caches.add_subparsers(dest="action", metavar="action")
    clearing = actions.add_parser("clear", help="delete the entries of one kind, or all", description="Delete entries.")
    clearing.add_argument("kind", nargs="?", choices=list(cache_store.CACHES), help="one of %(choices)s (default: all)")

    commands.add_parser("version", help="print the version")

    options = parser.parse_args(argv)
    if options.command == "version":
        print(__version__)
        return 0
    if options.command == "cache":
        return clear_cache(options.kind) if options.action == "clear" else list_cache()
    if options.command == "run":
        return run_script(options.script, options.args)
    if options.command == "graph":
        return graph_script(options.script, options.args, options.out, not options.no_open)
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


def list_cache() -> int:
    """Print what the persistent cache holds: kind, entries, bytes, and times of last use."""
    def moment(seconds: float | None) -> str:
        return "-" if seconds is None else datetime.fromtimestamp(seconds).strftime("%Y-%m-%d %H:%M")

    found = cache_store.summaries()
    rows = [("kind", "entries", "bytes", "oldest", "newest")]
    rows += [(each.name, f"{each.entries:,}", f"{each.size:,}", moment(each.oldest), moment(each.newest))
             for each in found]
    rows.append(("total", f"{sum(each.entries for each in found):,}", f"{sum(each.size for each in found):,}", "", ""))
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for kind, *cells in rows:
        print(kind.ljust(widths[0]), *map(str.rjust, cells, widths[1:]), sep="  ")
    print(f"\ndirectory  {cache_store.root()}\nlimit      {cache_store.limit():,} bytes")
    return 0


def clear_cache(kind: str | None) -> int:
    """Delete the persistent cache's entries of one kind, or all."""
    count = cache_store.clear(kind)
    print(f"deleted {count:,} entr{'y' if count == 1 else 'ies'} of {kind or 'all kinds'} in {cache_store.root()}")
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


def graph_script(script: str, args: Sequence[str], out: Path | None, open_browser: bool) -> int:
    """Run a script as `flambeau run` does and write the explorer's page of its graphs.

    `--out FILE` and `--no-open` may also stand behind the script's own arguments; after `--`, all are the script's.

    Returns:
        The script's exit status; 1 if it made no graph.
    """
    own = list(args)
    if "--" in own:
        own.remove("--")
    else:
        while own:
            if own[-1] == "--no-open":
                own.pop()
                open_browser = False
            elif len(own) > 1 and own[-2] == "--out":
                out = Path(own[-1])
                del own[-2:]
            elif own[-1].startswith("--out="):
                out = Path(own.pop().removeprefix("--out="))
            else:
                break
    if not Path(script).is_file():
        print(f"flambeau graph: there is no file {script!r}", file=sys.stderr)
        return 2
    from .viz.explorer.script import explore_script

    return explore_script(lambda: run_script(script, own), script, out, open_browser)


def report(error: BaseException, script: str) -> None:
    """Show an uncaught exception through `sys.excepthook`, without the frames above the script's."""
    traceback: TracebackType | None = error.__traceback__
    while traceback is not None and traceback.tb_frame.f_code.co_filename != script:
        traceback = traceback.tb_next
    error.__traceback__ = traceback
    sys.stdout.flush()
    sys.excepthook(type(error), error, traceback)
