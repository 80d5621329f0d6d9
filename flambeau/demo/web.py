"""`flambeau demo --web`: a page that recognizes drawn digits, and learns from corrections, without a server.

The page is one HTML file. A training step of a small network, forward, backward and optimizer, is compiled to
WebAssembly and stands in the file with its parameters. With a learning rate of zero the step predicts.
"""

from __future__ import annotations

import base64
import json
import re
import tempfile
from pathlib import Path
from typing import Any

import flambeau as torch
from flambeau import nn
from flambeau.export import aot
from flambeau.viz import backward_picture
from flambeau.viz.drawing.svg import svg_of_picture

from .digits import BATCH, digits

EPOCHS = 12
_PAGE = Path(__file__).with_name("digits_page.html")


class Net(nn.Module):  # type: ignore[misc]
    """A convolutional network for images of 8x8 pixels."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = nn.Conv2d(1, 8, 3, padding=1), nn.Conv2d(8, 16, 3, padding=1)
        self.hidden, self.output = nn.Linear(64, 32), nn.Linear(32, 10)

    def forward(self, x: Any) -> tuple[Any, ...]:
        """The logits (N, 10), and the activations of the layers, the first ones first."""
        a = torch.relu(self.first(x))  # (N, 8, 8, 8)
        b = torch.relu(self.second(torch.max_pool2d(a, 2)))  # (N, 16, 4, 4)
        c = torch.relu(self.hidden(torch.max_pool2d(b, 2).flatten(1)))  # (N, 32)
        return self.output(c), a, b, c


def train(epochs: int = EPOCHS) -> tuple[Net, float]:
    """Train the network; return it and its accuracy on the test digits."""
    torch.manual_seed(0)
    images, labels, test_images, test_labels = digits()
    net = Net()
    optimizer = torch.optim.Adam(net.parameters(), lr=3e-3)
    for _ in range(epochs):
        for batch in torch.randperm(len(images)).split(BATCH):
            optimizer.zero_grad()
            nn.functional.cross_entropy(net(images[batch].reshape(-1, 1, 8, 8))[0], labels[batch]).backward()
            optimizer.step()
    with torch.no_grad():
        predicted = net(test_images.reshape(-1, 1, 8, 8))[0].argmax(1)
    return net, (predicted == test_labels).float().mean().item()


def compiled(net: Net, folder: Path) -> tuple[bytes, str]:
    """The training step as a WebAssembly module and its loader."""
    optimizer = torch.optim.SGD(net.parameters(), lr=0.05)

    def step(image: Any, label: Any) -> tuple[Any, ...]:
        optimizer.zero_grad()
        logits, *activations = net(image)
        nn.functional.cross_entropy(logits, label).backward()
        optimizer.step()
        return torch.softmax(logits.detach(), 1), *(each.detach() for each in activations)

    aot.compile(step, (torch.zeros(1, 1, 8, 8), torch.zeros(1, dtype=torch.int64)), folder / "digits.wasm")
    return (folder / "digits.wasm").read_bytes(), (folder / "digits.mjs").read_text(encoding="utf-8")


def drawing(net: Net) -> str:
    """The graph of the loss as SVG."""
    loss = nn.functional.cross_entropy(net(torch.zeros(1, 1, 8, 8))[0], torch.zeros(1, dtype=torch.int64))
    svg = svg_of_picture(backward_picture(loss, params=dict(net.named_parameters())))
    return svg[svg.index("<svg"):]


def write_page(path: Path, epochs: int = EPOCHS) -> float:
    """Train, compile and write the page.

    Args:
        path: of the page.
        epochs: of training.

    Returns:
        The accuracy on the test digits.
    """
    net, accuracy = train(epochs)
    with tempfile.TemporaryDirectory() as folder:
        code, loader = compiled(net, Path(folder))
    images, labels, _, _ = digits()
    samples = [images[(labels == digit).nonzero()[0, 0]].tolist() for digit in range(10)]
    page = _PAGE.read_text(encoding="utf-8")
    parts = {"LOADER": re.sub(r"^export (default load;\n|)", "", loader, flags=re.MULTILINE), "GRAPH": drawing(net),
             "CODE": base64.b64encode(code).decode(), "ACCURACY": f"{accuracy:.1%}", "BYTES": f"{len(code):,}",
             "SAMPLES": json.dumps(samples)}
    page = re.sub("|".join(f"@{key}@" for key in parts), lambda match: parts[match[0].strip("@")], page)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(page, encoding="utf-8")
    return accuracy


__all__ = ["Net", "compiled", "drawing", "train", "write_page"]
