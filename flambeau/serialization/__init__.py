"""`torch.serialization`: `save` and `load`, in PyTorch's file formats.

A file is a zip archive (`archive`) of one pickle and the bytes of each storage. The pickle contains PyTorch's names of
functions and classes (`names`), whichever library wrote it. By default, `load` allows only a list of globals
(`safe_globals`, `weights_unpickler`). `legacy` reads the formats before zip archives, and writes the newer of them.
"""

from __future__ import annotations

from .legacy import SourceChangeWarning
from .loading import get_unsafe_globals_in_checkpoint, load
from .locations import (
    MAP_LOCATION,
    default_restore_location,
    location_tag,
    register_package,
    validate_cuda_device,
    validate_hpu_device,
)
from .module_versions import check_module_version_greater_or_equal
from .names import StorageType, _get_layout
from .old_names import mkdtemp, normalize_storage_type, storage_to_tensor_type
from .openers import _is_zipfile, _open_file_like, _open_zipfile_reader, _open_zipfile_writer
from .options import (
    LoadEndianness,
    get_crc32_options,
    get_default_load_endianness,
    get_default_mmap_options,
    set_crc32_options,
    set_default_load_endianness,
    set_default_mmap_options,
    skip_data,
)
from .pickling import DEFAULT_PROTOCOL
from .safe_globals import add_safe_globals, clear_safe_globals, get_safe_globals, safe_globals
from .saving import save

__all__ = ["DEFAULT_PROTOCOL", "MAP_LOCATION", "LoadEndianness", "SourceChangeWarning", "StorageType", "_get_layout",
           "_is_zipfile", "_open_file_like", "_open_zipfile_reader", "_open_zipfile_writer", "add_safe_globals",
           "check_module_version_greater_or_equal", "clear_safe_globals", "default_restore_location",
           "get_crc32_options", "get_default_load_endianness", "get_default_mmap_options", "get_safe_globals",
           "get_unsafe_globals_in_checkpoint", "load", "location_tag", "mkdtemp", "normalize_storage_type",
           "register_package", "safe_globals", "save", "set_crc32_options", "set_default_load_endianness",
           "set_default_mmap_options", "skip_data", "storage_to_tensor_type", "validate_cuda_device",
           "validate_hpu_device"]
