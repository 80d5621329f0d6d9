"""Save models of their published sizes in every form, run them, and compare with eager results.

    python -m tests.export.full_size [names] [--forms so wasm browser onnx arm]

A line for each model: its parameters, and for each form the largest difference of a result, by the result's scale. `so`
is called from a C program, `wasm` runs in Node, `browser` is the same module in headless Chromium, `onnx` runs in
onnxruntime, and `arm` under qemu-aarch64, statically linked.
"""

from __future__ import annotations

import argparse
import http.server
import shutil
import subprocess
import sys
import tempfile
import threading
import time
import warnings
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

import flambeau as torch
from flambeau.export import export
from flambeau.export.aot.linking import zig
from tests.export.aot.c_program import emulator, run
from tests.export.aot.results import eager
from tests.export.full_size import sequences, vision  # noqa: F401 (they fill the catalogue)
from tests.export.full_size.catalogue import MODELS

Arrays = Sequence[np.ndarray]
#: the greatest difference that counts as equal
TOLERANCE = 2e-4
#: how long a page may take
BROWSER_SECONDS = 120

_SCRIPT = """
import { readFileSync, writeFileSync } from "node:fs";
import { load } from "./MODEL.mjs";
const kinds = { f4: Float32Array, i8: BigInt64Array };
const model = await load(readFileSync("./MODEL.wasm"));
const inputs = JSON.parse(readFileSync("inputs.json")).map(([kind, file]) => {
  const data = readFileSync(file);
  return new kinds[kind](data.buffer.slice(data.byteOffset, data.byteOffset + data.length));
});
let results = model(...inputs);
if (ArrayBuffer.isView(results)) results = [results];
Object.values(results).forEach((each, i) => writeFileSync(`output${i}`, new Uint8Array(each.buffer, each.byteOffset,
  each.byteLength)));
"""
_PAGE = """<!doctype html><body><script type="module">
const kinds = { f4: Float32Array, i8: BigInt64Array };
const send = (path, body) => fetch(path, { method: "POST", body });
try {
  const { load } = await import("./MODEL.mjs");
  const model = await load();
  const inputs = [];
  for (const [kind, file] of await (await fetch("inputs.json")).json()) {
    inputs.push(new kinds[kind](await (await fetch(file)).arrayBuffer()));
  }
  let results = model(...inputs);
  if (ArrayBuffer.isView(results)) results = [results];
  let i = 0;
  for (const each of Object.values(results)) await send(`output${i++}`, each);
  await send("done", "");
} catch (error) {
  await send("done", `${error}`);
}
</script></body>"""
_MAIN = """
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include "MODEL.h"
static void *reserve(size_t n) { return aligned_alloc(64, (n + 63) / 64 * 64 + 64); }
int main(void) {
  static const size_t bytes[] = { BYTES };
  void *a[COUNT];
  for (int i = 0; i < COUNT; i++) {
    a[i] = reserve(bytes[i]);
    if (i < INPUTS && fread(a[i], 1, bytes[i], stdin) != bytes[i]) return 250;
  }
  size_t arena = MODEL_arena_size();
  int status = MODEL_run(ARGUMENTS, reserve(arena), arena);
  for (int i = INPUTS; i < COUNT; i++) fwrite(a[i], 1, bytes[i], stdout);
  return status;
}
"""


def in_c(program: Any, name: str, args: Arrays, expected: Arrays, folder: Path) -> Arrays:
    """The results of a shared library in a C program."""
    path = folder / f"{name}.so"
    program.save(path, target="native")
    return run(path, args, expected)[0]


def _write_inputs(args: Arrays, folder: Path) -> None:
    lines = []
    for i, a in enumerate(args):
        (folder / f"input{i}").write_bytes(np.ascontiguousarray(a).tobytes())
        lines.append(f'["{a.dtype.str[1:]}", "input{i}"]')
    (folder / "inputs.json").write_text(f"[{', '.join(lines)}]")


class _Receiver(http.server.SimpleHTTPRequestHandler):
    """Serves a folder, and writes what the page sends to it."""

    def do_POST(self) -> None:
        data = self.rfile.read(int(self.headers["Content-Length"] or 0))
        Path(self.translate_path(self.path)).write_bytes(data)
        self.send_response(200)
        self.end_headers()

    def log_message(self, format: str, *args: Any) -> None:
        """Nothing."""


def in_browser(program: Any, name: str, args: Arrays, expected: Arrays, folder: Path) -> Arrays:
    """The results of a WebAssembly module in headless Chromium."""
    browser = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))))
    program.save(folder / f"{name}.wasm")
    _write_inputs(args, folder)
    (folder / "index.html").write_text(_PAGE.replace("MODEL", name))
    handler = partial(_Receiver, directory=str(folder))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        url = f"http://127.0.0.1:{server.server_port}/index.html"
        options = ["--headless=new", "--no-sandbox", "--disable-gpu", f"--user-data-dir={folder / 'profile'}"]
        with subprocess.Popen([browser, *options, url], stderr=subprocess.DEVNULL) as process:
            end = time.monotonic() + BROWSER_SECONDS
            while not (folder / "done").exists() and process.poll() is None and time.monotonic() < end:
                time.sleep(0.1)
            process.terminate()
        server.shutdown()
    if not (folder / "done").exists() or (folder / "done").read_text():
        raise RuntimeError((folder / "done").read_text() if (folder / "done").exists() else "the page does not answer")
    return [np.fromfile(folder / f"output{i}", y.dtype).reshape(y.shape) for i, y in enumerate(expected)]


def in_node(program: Any, name: str, args: Arrays, expected: Arrays, folder: Path) -> Arrays:
    """The results of a WebAssembly module in Node."""
    program.save(folder / f"{name}.wasm")
    _write_inputs(args, folder)
    (folder / "script.mjs").write_text(_SCRIPT.replace("MODEL", name))
    subprocess.run(["node", "script.mjs"], cwd=folder, check=True)
    return [np.fromfile(folder / f"output{i}", y.dtype).reshape(y.shape) for i, y in enumerate(expected)]


def in_onnxruntime(program: Any, name: str, args: Arrays, expected: Arrays, folder: Path) -> Arrays:
    """The results of an ONNX model."""
    import onnxruntime

    path = folder / f"{name}.onnx"
    program.save(path)
    settings = onnxruntime.SessionOptions()
    settings.intra_op_num_threads = 1
    session = onnxruntime.InferenceSession(str(path), settings, providers=["CPUExecutionProvider"])
    return session.run(None, {each.name: a for each, a in zip(session.get_inputs(), args, strict=True)})


def on_arm(program: Any, name: str, args: Arrays, expected: Arrays, folder: Path) -> Arrays:
    """The results of an object file for aarch64 in a static program, under an emulator."""
    program.save(folder / f"{name}.o", target="aarch64")
    operands = [*args, *expected]
    kinds = {"f4": "float", "i8": "int64_t"}
    arguments = ", ".join(f"({kinds[a.dtype.str[1:]]} *)a[{i}]" for i, a in enumerate(operands))
    text = _MAIN.replace("ARGUMENTS", arguments).replace("MODEL", name).replace("COUNT", str(len(operands)))
    text = text.replace("INPUTS", str(len(args))).replace("BYTES", ", ".join(str(a.nbytes) for a in operands))
    (folder / "main.c").write_text(text)
    compiler = [*zig(), "cc", "-target", "aarch64-linux-musl", "-static", "-O1"]
    subprocess.run([*compiler, "-o", "program", "main.c", f"{name}.o"], cwd=folder, check=True)
    data = b"".join(np.ascontiguousarray(a).tobytes() for a in args)
    done = subprocess.run([*emulator(), "./program"], cwd=folder, input=data, capture_output=True, check=True)
    results, at = [], 0
    for a in expected:
        results.append(np.frombuffer(done.stdout, a.dtype, a.size, at).reshape(a.shape))
        at += a.nbytes
    return results


FORMS: dict[str, Callable[..., Arrays]] = {
    "so": in_c, "wasm": in_node, "browser": in_browser, "onnx": in_onnxruntime, "arm": on_arm,
}  # fmt: skip


def difference(got: Arrays, expected: Arrays) -> float:
    """The largest difference of a result, by the result's scale."""
    return max(float(np.abs(x.astype(np.float64) - y).max() / max(1e-30, np.abs(y).max()))
               for x, y in zip(got, expected, strict=True))  # fmt: skip


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", default=list(MODELS))
    parser.add_argument("--forms", nargs="+", choices=FORMS, default=list(FORMS))
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    wrong = 0
    print(f"| model | parameters | {' | '.join(options.forms)} | seconds |")
    print("| --- | ---: |" + " ---: |" * (len(options.forms) + 1), flush=True)
    for name in options.names:
        start = time.monotonic()
        torch.manual_seed(0)
        model, args = MODELS[name]()
        model.eval()
        count = sum(p.numel() for p in model.parameters())
        expected = eager(model, args)
        program = export(model, args)
        cells = []
        for form in options.forms:
            folder = Path(tempfile.mkdtemp(prefix="flambeau-full-size-"))
            try:
                got = FORMS[form](program, name, [x.numpy() for x in args], expected, folder)
                error = difference(got, expected)
                wrong += not error < TOLERANCE
                cells.append(f"{error:.1e}")
            except Exception as failure:
                wrong += 1
                cells.append(f"{type(failure).__name__}: {str(failure).splitlines()[0][:90]}")
            finally:
                shutil.rmtree(folder)
        print(f"| {name} | {count:,} | {' | '.join(cells)} | {time.monotonic() - start:.0f} |", flush=True)
    sys.exit(bool(wrong))


if __name__ == "__main__":
    main()
