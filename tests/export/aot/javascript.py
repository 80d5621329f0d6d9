"""Scripts that use WebAssembly modules, in Node and in pages of a browser."""

from __future__ import annotations

import http.server
import json
import shutil
import subprocess
import threading
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

#: the command of Node, or nothing where it is not installed
NODE = [path for path in [shutil.which("node")] if path]
#: seconds that a script may take
_LIMIT = 60
#: headers of a page that may share memory with workers
ISOLATED = {"Cross-Origin-Opener-Policy": "same-origin", "Cross-Origin-Embedder-Policy": "require-corp"}


def literal(array: np.ndarray) -> str:
    """A typed array in JavaScript."""
    kind = {"f4": "Float32Array", "f8": "Float64Array", "i8": "BigInt64Array"}[array.dtype.str[1:]]
    suffix = "n" if kind.startswith("Big") else ""
    return f"new {kind}([{', '.join(repr(each) + suffix for each in array.reshape(-1).tolist())}])"


def node(folder: Path, script: str) -> Any:
    """The result of a script, JSON on its standard output."""
    (folder / "script.mjs").write_text(script)
    command = [*NODE, "script.mjs"]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False, timeout=_LIMIT)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def page(browser: Any, folder: Path, script: str, headers: dict[str, str] | None = None) -> Any:
    """The value that a page's script gives as `result`.

    Args:
        browser: Playwright's.
        folder: what is served.
        script: a module's text.
        headers: of all responses.
    """
    (folder / "index.html").write_text(f"""<!doctype html><body><script type="module">
      let result;
      {script}
      document.body.textContent = JSON.stringify(result);
      document.body.dataset.ready = "yes";
    </script></body>""")
    handler = partial(_Handler, headers or {}, directory=str(folder))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        opened = browser.new_page()
        faults: list[str] = []
        opened.on("pageerror", lambda error: faults.append(str(error)))
        try:
            opened.goto(f"http://127.0.0.1:{server.server_port}/index.html")
            opened.wait_for_function("document.body.dataset.ready")
            got = json.loads(opened.text_content("body"))
        finally:
            opened.close()
            server.shutdown()
            thread.join()
    assert not faults
    return got


class _Handler(http.server.SimpleHTTPRequestHandler):
    def __init__(self, sent: dict[str, str], *args: Any, **options: Any) -> None:
        self.sent = sent
        super().__init__(*args, **options)

    def end_headers(self) -> None:
        for each in self.sent.items():
            self.send_header(*each)
        super().end_headers()

    def log_message(self, format: str, *args: Any) -> None:
        """Nothing."""
