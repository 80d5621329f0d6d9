"""WebAssembly modules beside onnxruntime-web: `python -m benchmarks.shipping_web FOLDER [--threads N] [--page]`.

The folder has onnxruntime-web (`npm install onnxruntime-web`). Models are those of `benchmarks.shipping`. The columns
are the model with its batch, microseconds of both, their ratio, and the largest difference. On one thread in Node the
times are medians of processor time. With `--threads`, where ours is timed on one thread, too, and with `--page`, in
headless Chromium, they are the shortest elapsed times. All are taken by turns.
"""

from __future__ import annotations

import argparse
import http.server
import json
import shutil
import subprocess
import threading
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

import flambeau as torch
from flambeau.export import export

from .shipping import BATCHES
from .shipping_models import NAMES, models

SCRIPT = Path(__file__).with_suffix(".mjs")
ROWS = SCRIPT.with_name("shipping_web_rows.mjs")
#: what a page must be sent with, so that its memory may be shared
HEADERS = {"Cross-Origin-Opener-Policy": "same-origin", "Cross-Origin-Embedder-Policy": "require-corp"}
_PAGE = """<!doctype html><body><script type="module">
import * as ort from "./node_modules/onnxruntime-web/dist/ort.wasm.min.mjs";
import { timeModels } from "./shipping_web_rows.mjs";
ort.env.wasm.numThreads = THREADS;
const fetchBytes = async (path) => new Uint8Array(await (await fetch(path)).arrayBuffer());
try {
  await timeModels(ort, await (await fetch("models.json")).json(), {
    seconds: SECONDS, threads: THREADS, fetchBytes, importLoader: (name) => import(`./${name}.mjs`),
  }, (row) => fetch("row", { method: "POST", body: row }));
  await fetch("end", { method: "POST", body: "" });
} catch (error) {
  await fetch("end", { method: "POST", body: `${error}` });
}
</script></body>"""


class _Handler(http.server.SimpleHTTPRequestHandler):
    """Serves the folder with the headers, prints rows, and keeps the text with which the page ends."""

    def __init__(self, ended: threading.Event, texts: list[str], *args: Any, **options: Any) -> None:
        self.ended, self.texts = ended, texts
        super().__init__(*args, **options)

    def do_POST(self) -> None:
        text = self.rfile.read(int(self.headers["Content-Length"] or 0)).decode()
        self.send_response(200)
        self.end_headers()
        if self.path == "/end":
            self.texts.append(text)
            self.ended.set()
        else:
            print(text, flush=True)

    def end_headers(self) -> None:
        for each in HEADERS.items():
            self.send_header(*each)
        super().end_headers()

    def log_message(self, format: str, *args: Any) -> None:
        """Nothing."""


def build(folder: Path, names: Sequence[str], threads: int) -> None:
    """Write the models, and a list of them."""
    shapes = {}
    for make in models(torch).values():
        for batch in BATCHES if make.__name__ in names else ():
            torch.manual_seed(0)
            model, shape = make()
            name = f"{make.__name__}{batch}"
            program = export(model.eval(), (torch.randn(batch, *shape),))
            program.save(folder / f"{name}.wasm", threads=threads)
            program.save(folder / f"{name}.onnx")
            shapes[name] = [batch, *shape]
    (folder / "models.json").write_text(json.dumps(shapes))
    shutil.copy(SCRIPT, folder)
    shutil.copy(ROWS, folder)


def in_node(folder: Path, seconds: float, threads: int) -> None:
    """Print the rows of the models in Node."""
    subprocess.run(["node", SCRIPT.name, str(seconds), str(threads)], cwd=folder, check=True)


def in_a_page(folder: Path, seconds: float, threads: int) -> None:
    """Print the rows of the models in a page of headless Chromium."""
    text = _PAGE.replace("SECONDS", str(seconds)).replace("THREADS", str(threads))
    (folder / "index.html").write_text(text)
    ended, texts = threading.Event(), list[str]()
    handler = partial(_Handler, ended, texts, directory=str(folder))
    program = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))))
    options = ["--headless=new", "--no-sandbox", "--disable-gpu", f"--user-data-dir={folder / 'profile'}"]
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        url = f"http://127.0.0.1:{server.server_port}/index.html"
        with subprocess.Popen([program, *options, url], stderr=subprocess.DEVNULL) as process:
            while process.poll() is None and not ended.wait(0.5):
                pass
            process.terminate()
        server.shutdown()
    if texts != [""]:
        raise RuntimeError("".join(texts) or "the page has not ended")


def main() -> None:
    """Build the modules and print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path, help="where onnxruntime-web is installed")
    parser.add_argument("--seconds", type=float, default=3.0)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--page", action="store_true", help="in headless Chromium, not in Node")
    parser.add_argument("--models", nargs="+", choices=NAMES, default=NAMES)
    options = parser.parse_args()
    build(options.folder, options.models, options.threads)
    several = f" compiled on {options.threads} |" if options.threads > 1 else ""
    print(f"| model | compiled |{several} onnxruntime-web | ratio | difference |")
    print("| --- | ---: |" + " ---: |" * bool(several) + " ---: | ---: | ---: |", flush=True)
    (in_a_page if options.page else in_node)(options.folder, options.seconds, options.threads)


if __name__ == "__main__":
    main()
