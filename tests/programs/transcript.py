"""A program's transcript: what it printed, then its warnings, with what differs from run to run masked."""

from __future__ import annotations

import re
from pathlib import Path

HERE = Path(__file__).parent
EXPECTED = HERE / "expected"
#: every program: a file of this folder that begins with a docstring and `import`s torch as a user would
PROGRAMS = sorted(path for path in HERE.glob("*.py")
                  if path.stem not in ("__init__", "oracle", "transcript") and not path.stem.startswith("test_"))

_ADDRESS = re.compile(r"0x[0-9a-f]{6,}")
_TRIGGERED = re.compile(r" ?\(Triggered internally at [^)]*\)\.?")
_IN_LIBRARY = re.compile(r"^(?!PROGRAM)\S*[/\\](?:torch|flambeau)[/\\]\S*?\.py:\d+: (.*)\n(  .*\n)?", re.MULTILINE)


def transcript(program: Path, out: str, err: str, status: int) -> str:
    """Output and, where there are any, warnings: one text to compare to the character.

    A warning is told with the program's line it points to; where it points into the library,
    neither file nor line is a matter of behaviour, and it is told as the library's.
    """
    err = err.replace(str(program), "PROGRAM")
    err = _TRIGGERED.sub("", err)
    err = _IN_LIBRARY.sub(r"LIBRARY: \1\n", err)
    text = out
    if err:
        text += "--- stderr\n" + err
    if status:
        text += f"--- exit status {status}\n"
    return _ADDRESS.sub("0xADDRESS", text)
