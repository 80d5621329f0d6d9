"""The `flambeau` command: `alias`, `cache`, `demo`, `export`, `run`, `graph`, `torchrun` with a script, `version`.

Each subcommand imports its modules when it runs.
"""

from __future__ import annotations

import argparse
import io
import os
import sys
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path
from types import ModuleType, TracebackType

from .runtime import cache_store
from .version import __version__


def main(argv: Sequence[str] | None = None) -> int:
    """Parse the command line, run the subcommand, and return the exit status."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):  # a terminal without Unicode shows v?1 for v̇₁
            stream.reconfigure(errors="replace")
    parser = argparse.ArgumentParser(
        prog="flambeau", description="PyTorch's define-by-run autograd in pure Python.")
    parser.add_argument("--version", action="version", version=f"flambeau {__version__}")
    commands = parser.add_subparsers(dest="command", required=True, metavar="command")

    demo = commands.add_parser(
        "demo", help="trace, draw and train examples, and write pictures of them",
        description="Trace a function forward and backward, minimize two functions, and train a "
                    "classifier of handwritten digits. All pictures are written to one directory.")
    demo.add_argument("--out", type=Path, default=Path("flambeau-demo"), metavar="DIR",
                      help="the directory of the pictures (default: %(default)s)")
    demo.add_argument("--web", action="store_true",
                      help="write digits.html instead, a page that recognizes drawn digits and learns from "
                           "corrections; it needs flambeau[export]")

    run = commands.add_parser(
        "run", help="run a PyTorch script on flambeau",
        description="Run an unchanged PyTorch script: `import torch`, in the script and in every "
                    "module that it imports, imports flambeau.")
    run.add_argument("script", help="the script's file")
    run.add_argument("args", nargs=argparse.REMAINDER, help="the script's arguments, sys.argv[1:]")

    graph = commands.add_parser(
        "graph", help="run a script and open an explorer of its graphs in a browser",
        description="Run an unchanged PyTorch script as `run` does, then write one HTML page with every graph that "
                    "backward() traversed or that is alive at the end. A slider selects the graph.")
    graph.add_argument("--out", type=Path, metavar="FILE", help="the page to write (default: SCRIPT-graph.html)")
    graph.add_argument("--no-open", action="store_true", help="do not open the page in a browser")
    graph.add_argument("script", help="the script's file")
    graph.add_argument("args", nargs=argparse.REMAINDER,
                       help="the script's arguments, sys.argv[1:]; --out and --no-open at the end are this command's")

    caches = commands.add_parser(
        "cache", help="list or clear the persistent cache of compiled code, plans and measurements",
        description="List the persistent cache: entries, bytes and times of last use of each kind. `clear` deletes "
                    "them; later processes compile and measure again. FLAMBEAU_CACHE_DIR sets the directory, "
                    "FLAMBEAU_CACHE_LIMIT the size, such as 500M or 2G (0: nothing is written).")
    actions = caches.add_subparsers(dest="action", metavar="action")
    clear = actions.add_parser("clear", help="delete the entries of one kind, or all", description="Delete entries.")
    clear.add_argument("kind", nargs="?", choices=list(cache_store.CACHES), help="one of %(choices)s (default: all)")

    alias = commands.add_parser(
        "alias", help="make `import torch` mean flambeau in this environment",
        description="Install, remove or describe the distribution `torch` that stands for flambeau: with it, "
                    "`import torch` imports flambeau in every Python process of this environment, and packages that "
                    "require torch find it installed. PyTorch itself is never replaced.")
    alias.add_argument("action", choices=["install", "remove", "status"],
                       help="status: say what `import torch` means; exit with 0 if that is flambeau")

    commands.add_parser(
        "torchrun", add_help=False, help="start a PyTorch script in several processes on flambeau",
        description="PyTorch's torchrun: see flambeau torchrun --help.")

    export = commands.add_parser(
        "export", help="compile a model of a script to a shared library or a WebAssembly module",
        description="Import a script, in which `import torch` imports flambeau, and compile one of its modules, or a "
                    "function such as a training step, to files that need no Python.")
    export.add_argument("source", metavar="FILE.py:NAME", help="the script, and the name of the module or function")
    export.add_argument("--example", action="append", default=[], metavar="ARGUMENT",
                        help="an example of an argument, in order: a dtype and extents, such as 'float32[1,3,28,28]', "
                             "or 'float32[batch=1:32,784]' with a dynamic size; or a name in the script")
    export.add_argument("-o", "--output", action="append", required=True, type=Path, metavar="FILE",
                        help="the file to write: .so, .o, .wasm, .onnx or .pt2; may be given several times")
    export.add_argument("--target", help="native, x86-64, x86-64-v2, -v3, -v4, aarch64 or wasm32 (default: by the file "
                                         "and this machine)")
    export.add_argument("--name", help="the prefix of the C functions (default: the file's name)")
    export.add_argument("--weights", type=Path, metavar="FILE", help="a checkpoint that is loaded into the module")
    export.add_argument("--weights-beside", action="store_true", help="write weights to a safetensors file beside")
    export.add_argument("--weight-dtype", choices=["bfloat16", "int8"], help="store large weights in fewer bits")
    export.add_argument("--threads", type=int, default=1, help="how many threads a run is planned for (default: 1)")
    export.add_argument("--train", action="store_true", help="export a module in training mode, not in evaluation mode")

    commands.add_parser("version", help="print the version")

    arguments = list(sys.argv[1:] if argv is None else argv)
    if arguments[:1] == ["torchrun"]:  # its options are its own
        return torchrun(arguments[1:])

    options = parser.parse_args(argv)
    if options.command == "version":
        print(__version__)
        return 0
    if options.command == "cache":
        return clear_cache(options.kind) if options.action == "clear" else list_cache()
    if options.command == "alias":
        return alias_command(options.action)
    if options.command == "run":
        return run_script(options.script, options.args)
    if options.command == "export":
        from .export.aot.command import export_command

        return export_command(options.source, options.example, options.output, options.target, options.name,
                              options.weights, options.train, options.weights_beside, options.weight_dtype,
                              options.threads)
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
    if options.web:
        return demo_page(options.out / "digits.html")
    show(options.out)
    return 0


def demo_page(path: Path) -> int:
    """Write the page of `flambeau demo --web`."""
    from .demo.web import write_page
    from .export.aot import ExportError

    try:
        accuracy = write_page(path)
    except ExportError as error:
        print(f"flambeau demo --web: {error}", file=sys.stderr)
        return 1
    print(f"{path}: {accuracy:.1%} of the test digits are recognized; open it in a browser")
    return 0


def torchrun(arguments: Sequence[str]) -> int:
    """Start a script in several processes.

    Returns:
        The exit status: 0, or that of the process that failed first.
    """
    from .distributed.elastic.multiprocessing import ChildFailedError, SignalException
    from .distributed.run import main as launch

    try:
        launch(arguments)
    except ChildFailedError as error:
        print(error, file=sys.stderr)
        code = error.get_first_failure()[1].exitcode
        return code if code > 0 else 128 - code
    except SignalException as error:
        print(error, file=sys.stderr)
        return 128 + error.sigval
    return 0


def list_cache() -> int:
    """Print the persistent cache's entries, bytes and times of last use by kind."""
    def moment(seconds: float | None) -> str:
        return "-" if seconds is None else datetime.fromtimestamp(seconds).strftime("%Y-%m-%d %H:%M")

    summaries = cache_store.summaries()
    rows = [("kind", "entries", "bytes", "oldest", "newest")]
    rows += [(each.name, f"{each.entries:,}", f"{each.size:,}", moment(each.oldest), moment(each.newest))
             for each in summaries]
    rows.append(("total", f"{sum(each.entries for each in summaries):,}", f"{sum(each.size for each in summaries):,}",
                 "", ""))
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


def alias_command(action: str) -> int:
    """Install, remove or describe the distribution `torch` of the current environment."""
    from .alias import distribution

    try:
        if action == "install":
            print(f"import torch now means flambeau: torch {distribution.VERSION} in "
                  f"{distribution.install()}")
        elif action == "remove":
            print(f"removed torch {distribution.VERSION} from {distribution.remove()}")
        else:
            aliased, sentence = distribution.status()
            print(sentence)
            return 0 if aliased else 1
    except distribution.AliasError as error:
        print(f"flambeau alias {action}: {error}", file=sys.stderr)
        return 1
    return 0


def run_script(script: str, args: Sequence[str]) -> int:
    """Run a script as `python script args...` does, with the `torch` alias installed.

    The script is `__main__`, its directory is first on `sys.path`, and tracebacks begin at the script.

    Returns:
        The exit status: 0, or 1 after an uncaught exception. SystemExit propagates.
    """
    path = Path(script)
    if not path.is_file():
        print(f"flambeau run: there is no file {script!r}", file=sys.stderr)
        return 2
    from . import alias

    alias.install()
    main_module = ModuleType("__main__")
    file = main_module.__file__ = os.path.abspath(script)  # as Python makes it
    main_module.__dict__["__builtins__"] = __builtins__
    sys.modules["__main__"] = main_module
    sys.argv = [script, *args]
    sys.path[0] = str(path.parent.resolve())
    try:
        code = compile(path.read_bytes(), file, "exec", dont_inherit=True)
        exec(code, main_module.__dict__)
    except (SystemExit, KeyboardInterrupt):
        raise
    except BaseException as error:
        report(error, file)
        return 1
    return 0


def graph_script(script: str, args: Sequence[str], out: Path | None, open_browser: bool) -> int:
    """Run a script as `flambeau run` does and write the explorer page of its graphs.

    `--out FILE` and `--no-open` are also accepted after the script's arguments. Arguments after
    `--` are the script's.

    Returns:
        The script's exit status; 1 if it made no graph.
    """
    script_args = list(args)
    if "--" in script_args:
        script_args.remove("--")
    else:
        while script_args:
            if script_args[-1] == "--no-open":
                script_args.pop()
                open_browser = False
            elif len(script_args) > 1 and script_args[-2] == "--out":
                out = Path(script_args[-1])
                del script_args[-2:]
            elif script_args[-1].startswith("--out="):
                out = Path(script_args.pop().removeprefix("--out="))
            else:
                break
    if not Path(script).is_file():
        print(f"flambeau graph: there is no file {script!r}", file=sys.stderr)
        return 2
    from .viz.explorer.script import explore_script

    return explore_script(lambda: run_script(script, script_args), script, out, open_browser)


def report(error: BaseException, file: str) -> None:
    """Pass an uncaught exception to `sys.excepthook`, without the frames above the script's."""
    traceback: TracebackType | None = error.__traceback__
    while traceback is not None and traceback.tb_frame.f_code.co_filename != file:
        traceback = traceback.tb_next
    error.__traceback__ = traceback
    sys.stdout.flush()
    sys.excepthook(type(error), error, traceback)
