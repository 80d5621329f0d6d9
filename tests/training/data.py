"""The data that programs would download, made here: images of blobs for MNIST, citations, text, photographs.

Each function writes into the folder in which a program runs. The data are the same on every run.
"""

from __future__ import annotations

import struct
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

Bytes = NDArray[np.uint8]


def digits(count: int, seed: int) -> tuple[Bytes, Bytes]:
    """Images of 28 x 28 pixels, two strokes each whose places tell the class, and their classes 0 to 9."""
    rng = np.random.default_rng(seed)
    labels = rng.integers(0, 10, count).astype(np.uint8)
    y, x = np.mgrid[:28, :28].astype(np.float64)
    angle = labels * (2 * np.pi / 10)
    rows, columns = 14 + 7 * np.sin(angle), 14 + 7 * np.cos(angle)
    rows, columns = rows + rng.normal(0, 0.7, count), columns + rng.normal(0, 0.7, count)
    width = rng.uniform(3, 9, count)[:, None, None]
    near = (y - rows[:, None, None]) ** 2 + (x - columns[:, None, None]) ** 2
    line = (y - 14 - (rows / 14 - 1)[:, None, None] * (x - 14)) ** 2
    images = np.exp(-near / width) + 0.5 * np.exp(-line / 4) + rng.uniform(0, 0.1, (count, 28, 28))
    return (np.clip(images, 0, 1) * 255).astype(np.uint8), labels


def mnist(folder: Path, train: int, test: int) -> None:
    """The files of torchvision's MNIST: `folder/MNIST/raw`."""
    raw = folder / "MNIST" / "raw"
    raw.mkdir(parents=True, exist_ok=True)
    for name, count, seed in (("train", train, 1), ("t10k", test, 2)):
        images, labels = digits(count, seed)
        (raw / f"{name}-images-idx3-ubyte").write_bytes(struct.pack(">4i", 2051, count, 28, 28) + images.tobytes())
        (raw / f"{name}-labels-idx1-ubyte").write_bytes(struct.pack(">2i", 2049, count) + labels.tobytes())


def cora(folder: Path, nodes: int = 2708, words: int = 300) -> None:
    """A graph of citations as the Cora data set's files: papers of 7 classes that rather cite their own class."""
    rng = np.random.default_rng(3)
    folder.mkdir(parents=True, exist_ok=True)
    classes = rng.integers(0, 7, nodes)
    usual = rng.uniform(0, 0.12, (7, words))
    has = rng.uniform(size=(nodes, words)) < usual[classes]
    has[:, 0] |= ~has.any(1)
    with (folder / "cora.content").open("w") as file:
        for i in range(nodes):
            file.write(f"{i}\t" + "\t".join("01"[bit] for bit in has[i].astype(int)) + f"\tclass_{classes[i]}\n")
    pairs = set()
    while len(pairs) < 2 * nodes:
        a, b = (int(i) for i in rng.integers(0, nodes, 2))
        if a != b and (classes[a] == classes[b] or rng.uniform() < 0.1):
            pairs.add((a, b))
    (folder / "cora.cites").write_text("".join(f"{a}\t{b}\n" for a, b in sorted(pairs)))


def text(words: int, seed: int, vocabulary: int = 500) -> str:
    """Sentences of made words, in which a word depends on the one before."""
    rng = np.random.default_rng(seed)
    names = ["".join(np.random.default_rng(i).choice(list("aeioutnshrdl"), 2 + i % 6)) + str(i % 7) for i in
             range(vocabulary)]
    word, found = 0, []
    for n in range(words):
        word = int((word * 17 + rng.integers(0, 12)) % vocabulary)
        found.append(names[word] + (" .\n" if n % 15 == 14 else ""))
    return " ".join(found).replace("\n ", "\n")


def wikitext(folder: Path) -> None:
    """`train.txt`, `valid.txt` and `test.txt`."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, words, seed in (("train", 40_000, 1), ("valid", 3_000, 2), ("test", 3_000, 3)):
        (folder / f"{name}.txt").write_text(text(words, seed), encoding="utf-8")


def characters(folder: Path) -> None:
    """nanoGPT's `train.bin`, `val.bin` and `meta.pkl` of a text by characters."""
    import pickle

    folder.mkdir(parents=True, exist_ok=True)
    written = text(30_000, 4)
    letters = sorted(set(written))
    numbers = {letter: i for i, letter in enumerate(letters)}
    ids = np.array([numbers[letter] for letter in written], dtype=np.uint16)
    cut = len(ids) * 9 // 10
    ids[:cut].tofile(folder / "train.bin")
    ids[cut:].tofile(folder / "val.bin")
    meta = {"vocab_size": len(letters), "itos": dict(enumerate(letters)), "stoi": numbers}
    (folder / "meta.pkl").write_bytes(pickle.dumps(meta))


def photographs(folder: Path, count: int, seed: int, size: int = 288) -> None:
    """Pictures of smooth random colours with a few edges, as PNG files."""
    from PIL import Image

    rng = np.random.default_rng(seed)
    folder.mkdir(parents=True, exist_ok=True)
    y, x = np.mgrid[:size, :size] / size
    for i in range(count):
        waves = [np.sin(rng.uniform(2, 30) * x + rng.uniform(2, 30) * y + rng.uniform(0, 6)) for _ in range(6)]
        picture = np.stack([waves[c] + waves[c + 3] + 2 * (x + y > rng.uniform(0.4, 1.6)) for c in range(3)], -1)
        picture = (picture - picture.min()) / (picture.max() - picture.min()) * 255
        Image.fromarray(picture.astype(np.uint8)).save(folder / f"{i:03}.png")


_VGG16 = (64, 64, 128, 128, 256, 256, 256, 512, 512, 512, 512, 512, 512)  # channels of its convolutions


def vgg16(folder: Path) -> None:
    """Random weights where torchvision looks for those of its VGG16: `folder/hub/checkpoints`."""
    import torch

    torch.manual_seed(0)
    weights, channels = {}, 3
    for place, width in zip((0, 2, 5, 7, 10, 12, 14, 17, 19, 21, 24, 26, 28), _VGG16, strict=True):
        weights[f"features.{place}.weight"] = torch.randn(width, channels, 3, 3) * (2 / (9 * channels)) ** 0.5
        weights[f"features.{place}.bias"] = torch.zeros(width)
        channels = width
    for place, rows, columns in ((0, 4096, 25088), (3, 4096, 4096), (6, 1000, 4096)):
        weights[f"classifier.{place}.weight"] = torch.zeros(()).expand(rows, columns)  # never used: one element on disk
        weights[f"classifier.{place}.bias"] = torch.zeros(rows)
    target = folder / "hub" / "checkpoints"
    target.mkdir(parents=True, exist_ok=True)
    torch.save(weights, target / "vgg16-397923af.pth")
