"""WebAssembly modules beside onnxruntime-web in Node: `python -m benchmarks.shipping_web FOLDER`.

The folder has onnxruntime-web (`npm install onnxruntime-web`). Models are those of `benchmarks.shipping`; the columns
are the model with its batch, microseconds of processor time of both, their ratio, and the largest difference.
"""

from __future__ import annotations

import argparse
import json
import shutil
import subprocess
from pathlib import Path

import flambeau as torch
from flambeau.export import export

from .shipping import BATCHES
from .shipping_models import models

SCRIPT = Path(__file__).with_suffix(".mjs")


def main() -> None:
    """Build the modules and print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path, help="where onnxruntime-web is installed")
    parser.add_argument("--seconds", type=float, default=3.0)
    options = parser.parse_args()
    shapes = {}
    for make in models(torch).values():
        for batch in BATCHES:
            torch.manual_seed(0)
            model, shape = make()
            name = f"{make.__name__}{batch}"
            program = export(model.eval(), (torch.randn(batch, *shape),))
            program.save(options.folder / f"{name}.wasm")
            program.save(options.folder / f"{name}.onnx")
            shapes[name] = [batch, *shape]
    (options.folder / "models.json").write_text(json.dumps(shapes))
    shutil.copy(SCRIPT, options.folder)
    print("| model | compiled | onnxruntime-web | ratio | difference |")
    print("| --- | ---: | ---: | ---: | ---: |", flush=True)
    subprocess.run(["node", SCRIPT.name, str(options.seconds)], cwd=options.folder, check=True)


if __name__ == "__main__":
    main()
