"""Decoders of files by their extension: text, numbers, JSON, pickles, tensors, images, MATLAB files."""

from __future__ import annotations

import io
import json
import os.path
import pickle
import tempfile
from collections.abc import Callable
from typing import Any

from .common import StreamWrapper

__all__ = ["Decoder", "ImageHandler", "MatHandler", "audiohandler", "basichandlers", "extension_extract_fn",
           "handle_extension", "imagehandler", "mathandler", "videohandler"]


def basichandlers(extension: str, data: bytes) -> Any:
    """Decode text, numbers, JSON, pickles and tensors; None for other extensions.

    >>> from flambeau.utils.data.datapipes.utils.decoder import basichandlers
    >>> basichandlers("json", b'[1, 2]')
    [1, 2]
    """
    if extension in "txt text transcript":
        return data.decode("utf-8")
    if extension in ("cls", "cls2", "class", "count", "index", "inx", "id"):
        try:
            return int(data)
        except ValueError:
            return None
    if extension in "json jsn":
        return json.loads(data)
    if extension in ("pyd", "pickle"):
        return pickle.loads(data)
    if extension == "pt":
        from .....serialization import load

        return load(io.BytesIO(data))
    return None


def handle_extension(extensions: str, f: Callable[[Any], Any]) -> Callable[[str, Any], Any]:
    """A decoder by a function, for one of several extensions.

    >>> from flambeau.utils.data.datapipes.utils.decoder import handle_extension
    >>> handle_extension("jpg jpeg", len)("file.jpg", b"123")
    3
    """
    targets = [target.split(".") for target in extensions.lower().split()]

    def decode(key: str, data: Any) -> Any:
        extension = key.lower().split(".")
        for target in targets:
            if len(target) <= len(extension):
                return f(data) if extension[-len(target):] == target else None
        return None

    return decode


# ----- images ------------------------------------------------------------------------------

#: specification -> type of the result, of its elements, and colours
imagespecs: dict[str, tuple[str, str | None, str]] = {
    **{f"{prefix}{mode}{suffix}": (kind, element, mode)
       for prefix, kind in (("", "numpy"), ("torch", "torch"))
       for suffix, element in (("8", "uint8"), ("", "float"))
       for mode in ("l", "rgb", "rgba")},
    "torch": ("torch", "float", "rgb"),
    "pill": ("pil", None, "l"),
    **dict.fromkeys(("pil", "pilrgb"), ("pil", None, "rgb")),
    "pilrgba": ("pil", None, "rgba"),
}


class ImageHandler:
    """A decoder of images.

    Args:
        imagespec: the type of the result, "pil", "torch" or nothing for NumPy, then the colours "l", "rgb" or "rgba",
            then "8" for bytes instead of numbers from 0 to 1.

    >>> from flambeau.utils.data.datapipes.utils.decoder import ImageHandler
    >>> ImageHandler("torchrgb").imagespec
    'torchrgb'
    """

    def __init__(self, imagespec: str) -> None:
        if imagespec not in imagespecs:
            raise AssertionError(f"unknown image specification: {imagespec}")
        self.imagespec = imagespec

    def __call__(self, extension: str, data: bytes) -> Any:
        if extension.lower() not in ("jpg", "jpeg", "png", "ppm", "pgm", "pbm", "pnm"):
            return None
        import numpy as np

        from ....._tensor.creation.from_data import tensor

        try:
            import PIL.Image
        except ModuleNotFoundError as error:
            raise ModuleNotFoundError("Package `PIL` is required to be installed for default image decoder.Please use "
                                      "`pip install Pillow` to install the package") from error
        kind, element, mode = imagespecs[self.imagespec]
        with io.BytesIO(data) as stream:
            image: Any = PIL.Image.open(stream)
            image.load()
        image = image.convert(mode.upper())
        if kind == "pil":
            return image
        array = np.asarray(image)
        if array.dtype != np.uint8:
            raise AssertionError(f"numpy image array should be type uint8, but got {array.dtype}")
        if kind == "numpy":
            return array if element == "uint8" else array.astype("f") / 255.0
        result = tensor(np.array(array.transpose(2, 0, 1)))
        return result if element == "uint8" else result / 255.0


def imagehandler(imagespec: str) -> ImageHandler:
    """A decoder of images (`ImageHandler`)."""
    return ImageHandler(imagespec)


# ----- other files -------------------------------------------------------------------------


def _decode_file(extension: str, data: bytes, read: Callable[[str], Any]) -> Any:
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, f"file.{extension}")
        with open(path, "wb") as stream:
            stream.write(data)
        return read(path)


def videohandler(extension: str, data: bytes) -> Any:
    """Decode a video, if `torchvision` is installed; None for other extensions."""
    if extension not in ("mp4", "ogv", "mjpeg", "avi", "mov", "h264", "mpg", "webm", "wmv"):
        return None
    try:
        import torchvision.io
    except ImportError as error:
        raise ModuleNotFoundError("Package `torchvision` is required to be installed for default video file loader."
                                  "Please use `pip install torchvision`to install the package") from error
    return _decode_file(extension, data, torchvision.io.read_video)


def audiohandler(extension: str, data: bytes) -> Any:
    """Decode sound, if `torchaudio` is installed; None for other extensions."""
    if extension not in ("flac", "mp3", "sox", "wav", "m4a", "ogg", "wma"):
        return None
    try:
        import torchaudio
    except ImportError as error:
        raise ModuleNotFoundError("Package `torchaudio` is required to be installed for default audio file loader."
                                  "Please use `pip install torchaudio`to install the package") from error
    return _decode_file(extension, data, torchaudio.load)


class MatHandler:
    """A decoder of MATLAB files, if `scipy` is installed."""

    def __init__(self, **loadmat_kwargs: Any) -> None:
        try:
            import scipy.io as sio
        except ImportError as error:
            raise ModuleNotFoundError("Package `scipy` is required to be installed for mat file.Please use `pip "
                                      "install scipy`to install the package") from error
        self.sio, self.loadmat_kwargs = sio, loadmat_kwargs

    def __call__(self, extension: str, data: bytes) -> Any:
        if extension != "mat":
            return None
        with io.BytesIO(data) as stream:
            return self.sio.loadmat(stream, **self.loadmat_kwargs)


def mathandler(**loadmat_kwargs: Any) -> MatHandler:
    """A decoder of MATLAB files (`MatHandler`)."""
    return MatHandler(**loadmat_kwargs)


# ----- all ---------------------------------------------------------------------------------


def extension_extract_fn(pathname: str) -> str:
    """The extension of a path, without the dot.

    >>> from flambeau.utils.data.datapipes.utils.decoder import extension_extract_fn
    >>> extension_extract_fn("a/b.txt")
    'txt'
    """
    return os.path.splitext(pathname)[1].removeprefix(".")


class Decoder:
    """Decodes pairs of path and data by the first of several decoders that returns something.

    Args:
        handler: functions of the extension and the data.
        key_fn: a function of the path that returns the extension.

    >>> from flambeau.utils.data.datapipes.utils.decoder import Decoder, basichandlers
    >>> Decoder(basichandlers)(("a.json", b"[1]"))
    {'a.json': [1]}
    """

    def __init__(self, *handler: Any, key_fn: Callable[[str], str] = extension_extract_fn) -> None:
        self.handlers, self.key_fn = list(handler), key_fn

    def add_handler(self, *handler: Any) -> None:
        """Add decoders before the others."""
        self.handlers = [*handler, *self.handlers]

    @staticmethod
    def _is_stream_handle(data: Any) -> bool:
        file = data.file_obj if isinstance(data, StreamWrapper) else data
        return isinstance(file, (io.BufferedIOBase, io.RawIOBase))

    def decode1(self, key: str, data: Any) -> Any:
        """The decoded data; the data itself if no decoder returns something."""
        if not data:
            return data
        if self._is_stream_handle(data):
            stream, data = data, b"".join(data)
            stream.close()
        for handler in self.handlers:
            result = handler(key, data)
            if result is not None:
                return result
        return data

    def decode(self, data: Any) -> dict[str, Any]:
        """Decode a pair, or several: path -> decoded data."""
        result = {}
        for key, value in [data] if isinstance(data, tuple) else data or ():
            if key[0] == "_" and isinstance(value, bytes):
                result[key] = value.decode("utf-8")
            else:
                result[key] = self.decode1(self.key_fn(key), value)
        return result

    def __call__(self, data: Any) -> dict[str, Any]:
        return self.decode(data)
