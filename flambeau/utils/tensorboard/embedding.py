"""The files of TensorBoard's projector: vectors, their labels and pictures, and a list of what there is."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

import numpy as np
from tensorboard.plugins.projector.projector_config_pb2 import EmbeddingInfo

from ._convert_np import make_np


def write_vectors(vectors: np.ndarray, folder: str) -> None:
    """Write vectors, one a line."""
    with open(os.path.join(folder, "tensors.tsv"), "w", encoding="utf-8") as file:
        file.writelines("\t".join(str(each.item()) for each in row) + "\n" for row in vectors)


def write_labels(metadata: Sequence[Any], folder: str, header: Sequence[Any] | None) -> None:
    """Write labels, one a line, or with a header several columns.

    Raises:
        AssertionError: the header has not as many elements as a label.
    """
    if header and len(header) != len(metadata[0]):
        raise AssertionError("len of header must be equal to the number of columns in metadata")
    lines = ["\t".join(map(str, row)) for row in [header, *metadata]] if header else list(map(str, metadata))
    with open(os.path.join(folder, "metadata.tsv"), "w", encoding="utf-8") as file:
        file.write("\n".join(lines) + "\n")


def write_pictures(label_img: Any, folder: str) -> None:
    """Write pictures, (number, channels, height, width) from 0 to 1, side by side into one square of a PNG file."""
    from PIL import Image

    pictures = make_np(label_img)
    pictures = np.repeat(pictures, 3, 1) if pictures.shape[1] == 1 else pictures
    number, _, height, width = pictures.shape
    columns = min(number, int(np.ceil(number ** 0.5)))
    square = np.zeros((columns * width, columns * width, 3))
    for k, picture in enumerate(pictures):
        top, left = k // columns * height, k % columns * width
        square[top:top + height, left:left + width] = picture.transpose(1, 2, 0)[:max(len(square) - top, 0)]
    Image.fromarray(np.uint8((square * 255).clip(0, 255))).save(os.path.join(folder, "sprite.png"))


def info(metadata: Any, label_img: Any, subdir: str, global_step: int, tag: str) -> Any:
    """Where the files of an embedding are."""
    result = EmbeddingInfo(tensor_name=f"{tag}:{str(global_step).zfill(5)}",
                           tensor_path=os.path.join(subdir, "tensors.tsv"))
    if metadata is not None:
        result.metadata_path = os.path.join(subdir, "metadata.tsv")
    if label_img is not None:
        result.sprite.image_path = os.path.join(subdir, "sprite.png")
        result.sprite.single_image_dim.extend([label_img.shape[3], label_img.shape[2]])
    return result


__all__ = ["info", "write_labels", "write_pictures", "write_vectors"]
