"""`torch.hub`: models of local repositories, and downloads of weights."""

from __future__ import annotations

import hashlib
import importlib.util
import os
import re
import shutil
import sys
import tempfile
import uuid
import warnings
import zipfile
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any
from urllib.parse import urlparse
from urllib.request import Request, urlopen

from ..serialization import load as _load_file

HASH_REGEX = re.compile(r"-([a-f0-9]*)\.")
READ_DATA_CHUNK = 128 * 1024
ENV_TORCH_HOME, ENV_XDG_CACHE_HOME, DEFAULT_CACHE_DIR = "TORCH_HOME", "XDG_CACHE_HOME", "~/.cache"
MODULE_HUBCONF, VAR_DEPENDENCY = "hubconf.py", "dependencies"
_hub_dir: list[str] = []


def _get_torch_home() -> str:
    cache = os.getenv(ENV_XDG_CACHE_HOME, DEFAULT_CACHE_DIR)
    return os.path.expanduser(os.getenv(ENV_TORCH_HOME, os.path.join(cache, "torch")))


def get_dir() -> str:
    """The directory of downloads: `$TORCH_HOME/hub`, by default `~/.cache/torch/hub`.

    >>> import flambeau as torch
    >>> torch.hub.get_dir().endswith("hub")
    True
    """
    if os.getenv("TORCH_HUB"):
        warnings.warn("TORCH_HUB is deprecated, please use env TORCH_HOME instead", stacklevel=2)
    return _hub_dir[-1] if _hub_dir else os.path.join(_get_torch_home(), "hub")


def set_dir(d: str | os.PathLike[str]) -> None:
    """Set the directory of downloads.

    >>> import flambeau as torch
    >>> before = torch.hub.get_dir()
    >>> torch.hub.set_dir("models")
    >>> torch.hub.get_dir()
    'models'
    >>> torch.hub.set_dir(before)
    """
    _hub_dir.append(os.path.expanduser(d))


def _repository(repo_or_dir: str, source: str) -> str:
    """The directory of a repository.

    Raises:
        ValueError: an unknown source.
        NotImplementedError: a repository of GitHub.
    """
    if source.lower() not in ("github", "local"):
        raise ValueError(f'Unknown source: "{source}". Allowed values: "github" | "local".')
    if source.lower() == "github":
        raise NotImplementedError(f"torch.hub runs local repositories only: clone {repo_or_dir} and pass its directory "
                                  'with source="local"')
    return repo_or_dir


def _hubconf(directory: str) -> ModuleType:
    """The module `hubconf.py` of a repository, run with the repository on the path.

    Raises:
        RuntimeError: a package that it names in `dependencies` is missing.
    """
    path = os.path.join(directory, MODULE_HUBCONF)
    sys.path.insert(0, directory)
    try:
        spec = importlib.util.spec_from_file_location("hubconf", path)
        assert spec is not None
        assert spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
    finally:
        sys.path.remove(directory)
    missing = [name for name in getattr(module, VAR_DEPENDENCY, None) or () if importlib.util.find_spec(name) is None]
    if missing:
        raise RuntimeError(f"Missing dependencies: {', '.join(missing)}")
    return module


def _entry(module: ModuleType, model: str) -> Callable[..., Any]:
    if not isinstance(model, str):
        raise ValueError("Invalid input: model should be a string of function name")
    function = getattr(module, model, None)
    if function is None or not callable(function):
        raise RuntimeError(f"Cannot find callable {model} in hubconf")
    return function


def list(github: str, force_reload: bool = False, skip_validation: bool = False, trust_repo: Any = None,
         verbose: bool = True, *, source: str = "local") -> Any:
    """The names of the models that a local repository offers: the functions of its `hubconf.py`.

    >>> import pathlib, tempfile
    >>> import flambeau as torch
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = pathlib.Path(folder, "hubconf.py").write_text("def model():\\n    'A model.'\\n    return 1\\n")
    ...     print(torch.hub.list(folder, source="local"))
    ['model']
    """
    module = _hubconf(_repository(github, source))
    return [name for name in dir(module) if callable(getattr(module, name)) and not name.startswith("_")]


def help(github: str, model: str, force_reload: bool = False, skip_validation: bool = False, trust_repo: Any = None,
         *, source: str = "local") -> str | None:
    """The docstring of a model's function in a local repository.

    >>> import pathlib, tempfile
    >>> import flambeau as torch
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = pathlib.Path(folder, "hubconf.py").write_text("def model():\\n    'A model.'\\n    return 1\\n")
    ...     print(torch.hub.help(folder, "model", source="local"))
    A model.
    """
    return _entry(_hubconf(_repository(github, source)), model).__doc__


def load(repo_or_dir: str, model: str, *args: Any, source: str = "github", trust_repo: Any = None,
         force_reload: bool = False, verbose: bool = True, skip_validation: bool = False, **kwargs: Any) -> Any:
    """Call a function of the `hubconf.py` of a local repository.

    Args:
        repo_or_dir: the directory.
        model: the name of the function, called with the further arguments.
        source: "local".

    Raises:
        NotImplementedError: source="github".
        RuntimeError: there is no such function, or one of the repository's dependencies is missing.

    >>> import pathlib, tempfile
    >>> import flambeau as torch
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = pathlib.Path(folder, "hubconf.py").write_text("def model():\\n    return 1\\n")
    ...     print(torch.hub.load(folder, "model", source="local"))
    1
    """
    directory = _repository(repo_or_dir, source)
    sys.path.insert(0, directory)
    try:
        return _entry(_hubconf(directory), model)(*args, **kwargs)
    finally:
        sys.path.remove(directory)


def _load_local(hubconf_dir: str, model: str, *args: Any, **kwargs: Any) -> Any:
    return load(hubconf_dir, model, *args, source="local", **kwargs)


class tqdm:
    """A progress bar that prints nothing."""

    def __init__(self, iterable: Any = None, *args: Any, **kwargs: Any) -> None:
        self._iterable = iterable

    def __iter__(self) -> Any:
        return iter(self._iterable or ())

    def __enter__(self) -> tqdm:
        return self

    def __exit__(self, *exception: object) -> None:
        return None

    def update(self, n: float = 1) -> None:
        """Advance by n."""

    def set_description(self, *args: Any, **kwargs: Any) -> None:
        """Set the text of the bar."""

    def close(self) -> None:
        """End the bar."""


def download_url_to_file(url: str, dst: str, hash_prefix: str | None = None, progress: bool = True) -> None:
    """Download a file.

    Args:
        url: its address.
        dst: the path to write; it appears once the file is complete.
        hash_prefix: the first digits of its SHA256 digest.
        progress: ignored.

    Raises:
        RuntimeError: the digest begins differently.

    >>> import pathlib, tempfile
    >>> import flambeau as torch
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     source = pathlib.Path(folder, "weights")
    ...     _ = source.write_bytes(b"abc")
    ...     torch.hub.download_url_to_file(source.as_uri(), f"{folder}/copy", progress=False)
    ...     print(pathlib.Path(folder, "copy").read_bytes())
    b'abc'
    """
    dst = os.path.expanduser(dst)
    temporary = f"{dst}.{uuid.uuid4().hex}.partial"
    digest = hashlib.sha256()
    try:
        with urlopen(Request(url, headers={"User-Agent": "torch.hub"})) as source, open(temporary, "wb") as file:
            while chunk := source.read(READ_DATA_CHUNK):
                file.write(chunk)
                digest.update(chunk)
        if hash_prefix is not None and not digest.hexdigest().startswith(hash_prefix):
            raise RuntimeError(f'invalid hash value (expected "{hash_prefix}", got "{digest.hexdigest()}")')
        shutil.move(temporary, dst)
    finally:
        if os.path.exists(temporary):
            os.remove(temporary)


def _read(path: str, folder: str, map_location: Any, weights_only: bool) -> Any:
    """Load a file; of a zip archive that holds one, that file."""
    if zipfile.is_zipfile(path):
        with zipfile.ZipFile(path) as archive:
            members = archive.infolist()
            if len(members) == 1 and not members[0].is_dir():
                warnings.warn("Falling back to the old format < 1.6. This support will be deprecated in favor of "
                              "default zipfile format introduced in 1.6. Please redo torch.save() to save it in the "
                              "new zipfile format.", DeprecationWarning, stacklevel=3)
                with tempfile.TemporaryDirectory(dir=folder) as place:
                    return _load_file(archive.extract(members[0], place), map_location=map_location,
                                      weights_only=weights_only)
    return _load_file(path, map_location=map_location, weights_only=weights_only)


def load_state_dict_from_url(url: str, model_dir: str | None = None, map_location: Any = None, progress: bool = True,
                             check_hash: bool = False, file_name: str | None = None,
                             weights_only: bool = False) -> Any:
    """Load a file of weights from an address, or from the directory of downloads if it is there.

    Args:
        url: the address.
        model_dir: the directory of downloads (default: `checkpoints` in `get_dir()`).
        map_location, weights_only: as for `torch.load`.
        progress: ignored.
        check_hash: whether the file's name contains the first digits of its SHA256 digest, `-1234abcd.`, to be checked.
        file_name: the name in the directory (default: the address's).

    >>> import pathlib, tempfile
    >>> import flambeau as torch
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     torch.save({"w": torch.ones(2)}, f"{folder}/weights.pt")
    ...     url = pathlib.Path(folder, "weights.pt").as_uri()
    ...     print(torch.hub.load_state_dict_from_url(url, model_dir=f"{folder}/cache", progress=False))
    {'w': tensor([1., 1.])}
    """
    folder = os.path.join(get_dir(), "checkpoints") if model_dir is None else model_dir
    Path(folder).mkdir(parents=True, exist_ok=True)
    name = os.path.basename(urlparse(url).path) if file_name is None else file_name
    path = os.path.join(folder, name)
    if not os.path.exists(path):
        sys.stdout.flush()
        print(f'Downloading: "{url}" to {path}', file=sys.stderr)
        match = HASH_REGEX.search(name) if check_hash else None
        download_url_to_file(url, path, match.group(1) if match else None, progress=progress)
    return _read(path, folder, map_location, weights_only)


__all__ = ["download_url_to_file", "get_dir", "help", "list", "load", "load_state_dict_from_url", "set_dir"]
