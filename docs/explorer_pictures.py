"""Take the explorer's pictures for the manual: `python docs/explorer_pictures.py`.

Needs Playwright and a Chromium; everything else in the manual is drawn without a browser.
"""

from __future__ import annotations

import contextlib
import io
import shutil
import tempfile
from pathlib import Path

from PIL import Image
from playwright.sync_api import Page, sync_playwright

import flambeau as torch
from flambeau import nn, viz

PICTURES = Path(__file__).resolve().parent / "pictures"


class Reader(nn.Module):
    """Reads a sequence as long as it happens to be."""

    def __init__(self):
        super().__init__()
        self.embed = nn.Linear(3, 8)
        self.cell = nn.Linear(16, 8)
        self.head = nn.Sequential(nn.Linear(8, 6), nn.ReLU(), nn.Linear(6, 1))

    def forward(self, words):
        h = torch.zeros(words.shape[1], 8)
        for x in words:
            e = torch.tanh(self.embed(x))
            h = torch.tanh(self.cell(torch.cat([e, h], 1)))
        return self.head(h)


def train() -> viz.watching:
    """Twelve steps on sequences of different lengths."""
    torch.manual_seed(6)
    model = Reader()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with viz.watching(model) as watch:
        for _ in range(12):
            words = torch.randn(int(torch.randint(1, 5, ())), 5, 3)
            loss = nn.functional.mse_loss(model(words), words.sum((0, 2)).unsqueeze(1))
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    return watch


def chain() -> viz.watching:
    """A loop of 2,500 turns: over 10,000 nodes."""
    x = torch.linspace(-1, 1, 4).requires_grad_()
    w = torch.full((4,), 1.02, requires_grad=True)
    with viz.watching() as watch:
        y = skip = x
        for i in range(2500):
            z = torch.sin(y * w)
            y = z + 0.01 * y
            if i % 7 == 0:
                y, skip = y + 0.1 * skip, z
        y.sum().backward()
    return watch


def changes(page: Page) -> None:
    """A step that reads three words more than the one before."""
    page.keyboard.press("]")


def backward(page: Page) -> None:
    """In the middle of the backward pass, seen near."""
    page.keyboard.press("]")
    page.keyboard.press("1")
    page.wait_for_timeout(400)
    page.evaluate("flambeau.player.go(flambeau.step.turning + 17)")
    page.wait_for_timeout(400)
    page.evaluate("flambeau.zoom(1.7, 340, 480)")


def many(page: Page) -> None:
    """Ten thousand nodes at once, a third of the backward pass done."""
    page.keyboard.press("1")
    page.wait_for_timeout(3000)
    page.evaluate("flambeau.player.go(flambeau.step.turning + 6000)")
    page.evaluate("flambeau.fit(true)")


def fewer_colours(shot: Image.Image) -> Image.Image:
    """The 256 commonest colours exactly, bright ones first; others as the nearest of them."""
    weighed = [(count * (1 + max(colour) - min(colour)), colour) for count, colour in shot.getcolors(1 << 24)]
    commonest = sorted(weighed, reverse=True)[:256]
    palette = Image.new("P", (1, 1))
    palette.putpalette([channel for _, colour in commonest for channel in colour])
    return shot.quantize(palette=palette, dither=Image.Dither.NONE)


def main() -> None:
    """Write `pictures/explorer-*.png`."""
    shots = [("changes", train, changes, "light"), ("backward", train, backward, "dark"),
             ("many", chain, many, "light")]
    with contextlib.chdir(PICTURES.parent), tempfile.TemporaryDirectory() as folder, sync_playwright() as runner:
        browser = runner.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        for name, program, act, scheme in shots:
            file = viz.explore(program(), path=Path(folder) / f"{name}.html", open_browser=False)
            page = browser.new_page(viewport={"width": 1320, "height": 800}, color_scheme=scheme)
            page.goto(file.as_uri())
            page.wait_for_selector("html[data-ready=true]")
            act(page)
            page.wait_for_timeout(700)
            shot = Image.open(io.BytesIO(page.screenshot())).convert("RGB")
            fewer_colours(shot).save(PICTURES / f"explorer-{name}.png", optimize=True)
        browser.close()


if __name__ == "__main__":
    main()
