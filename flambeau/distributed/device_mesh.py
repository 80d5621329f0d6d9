"""`DeviceMesh`: the processes as an array, with a group for each row of each dimension."""

from __future__ import annotations

import copyreg
import math
import threading
from collections.abc import Sequence
from typing import Any

import numpy as np

from .._tensor import Tensor
from .._tensor.tensor import wrap
from ..c10d.process_group import ProcessGroup
from ..c10d.world import world
from ._mesh_layout import _MeshLayout
from .groups.making import init_process_group, new_group
from .groups.queries import (
    _get_process_group_name,
    _resolve_process_group,
    get_process_group_ranks,
    get_rank,
    get_world_size,
    is_initialized,
)

__all__ = ["DeviceMesh", "init_device_mesh"]


class _Resources(threading.local):
    """The meshes that `with` blocks of this thread are in."""

    def __init__(self) -> None:
        self.mesh_stack: list[DeviceMesh] = []

    def get_current_mesh(self) -> DeviceMesh:
        """The innermost one."""
        if not self.mesh_stack:
            raise RuntimeError("No device mesh is currently active!")
        return self.mesh_stack[-1]


_mesh_resources = _Resources()


class DeviceMesh:
    """The processes as an array; each dimension has groups of the processes that differ in that coordinate alone.

    All processes make it, with the same arguments.

    Args:
        device_type: "cpu".
        mesh: the global ranks, as a tensor or nested lists.
        mesh_dim_names: the names of its dimensions.
        backend_override: without effect.

    Raises:
        RuntimeError: there are more ranks in it than processes (PyTorch's text).

    >>> import flambeau as torch
    >>> dist = torch.distributed
    >>> dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
    >>> mesh = dist.init_device_mesh("cpu", (1, 1), mesh_dim_names=("dp", "tp"))
    >>> mesh.shape, mesh["tp"].size(), mesh.get_coordinate()
    ((1, 1), 1, [0, 0])
    >>> dist.destroy_process_group()
    """

    def __init__(self, device_type: str, mesh: Any = None, *, mesh_dim_names: tuple[str, ...] | None = None,
                 backend_override: Any = None, _init_backend: bool = True, _groups: list[Any] | None = None,
                 _root: DeviceMesh | None = None) -> None:
        self._device_type = device_type
        array = mesh._array if isinstance(mesh, Tensor) else np.array(mesh)
        self._ranks: np.ndarray = array.astype(np.int32)
        self._names = None if mesh_dim_names is None else tuple(mesh_dim_names)
        self._root = _root
        if _init_backend and not is_initialized():
            init_process_group()
        if self._ranks.size > get_world_size():
            raise RuntimeError(f"Mesh should not be bigger than default world size {get_world_size()}, but found "
                               f"{self._ranks.size} ranks!")
        where = np.argwhere(self._ranks == get_rank())
        self._coordinate = [int(each) for each in where[0]] if len(where) else None
        self._groups = self._make_groups() if _groups is None and _init_backend else list(_groups or ())

    def _make_groups(self) -> list[Any]:
        """The group of this process along each dimension."""
        ranks = self._ranks
        if ranks.ndim == 1 and ranks.size == get_world_size() and (ranks == np.arange(ranks.size)).all():
            return [world.default]
        groups = []
        for dim in range(ranks.ndim):
            own = None
            for row in np.moveaxis(ranks, dim, -1).reshape(-1, ranks.shape[dim]):
                name = self._names[dim] if self._names else f"{dim}"
                made = new_group([int(each) for each in row], group_desc=f"mesh_{name}", sort_ranks=False)
                if get_rank() in row:
                    own = made
            groups.append(own)
        return groups

    @property
    def device_type(self) -> str:
        """The type of its devices."""
        return self._device_type

    @property
    def mesh(self) -> Tensor:
        """The global ranks."""
        return wrap(self._ranks.copy())

    @property
    def mesh_dim_names(self) -> tuple[str, ...] | None:
        """The names of its dimensions."""
        return self._names

    @property
    def ndim(self) -> int:
        """The number of its dimensions."""
        return self._ranks.ndim

    @property
    def shape(self) -> tuple[int, ...]:
        """The numbers of processes along its dimensions."""
        return tuple(self._ranks.shape)

    def size(self, mesh_dim: int | None = None) -> int:
        """The number of processes, along one dimension or in all.

        Args:
            mesh_dim: the dimension.
        """
        return self._ranks.size if mesh_dim is None else int(self._ranks.shape[mesh_dim])

    def __repr__(self) -> str:
        shape = (str(self.shape) if self._names is None else
                 "(" + ", ".join(f"{name}={n}" for name, n in zip(self._names, self.shape, strict=True)) + ")")
        strides = tuple(math.prod(self.shape[i + 1:]) for i in range(self.ndim))
        return f"DeviceMesh({shape}, '{self._device_type}', stride={strides})"

    def __eq__(self, other: object) -> bool:
        return self is other or (isinstance(other, DeviceMesh) and self._ranks.shape == other._ranks.shape
                                 and bool((self._ranks == other._ranks).all()) and self._names == other._names
                                 and self._device_type == other._device_type)

    def __reduce__(self) -> Any:
        """PyTorch's form, so that each library reads the files of the other."""
        names = [None if each is None else _get_process_group_name(each) for each in self._groups]
        ranks = self._ranks
        strides = [int(np.prod(ranks.shape[i + 1:], dtype=np.int64)) for i in range(ranks.ndim)]
        return copyreg.__newobj__, (DeviceMesh,), {  # type: ignore[attr-defined]
            "_device_type": self._device_type, "_layout": _MeshLayout.from_sizes_strides(ranks.shape, strides),
            "_rank_map": wrap(np.ascontiguousarray(ranks).reshape(-1).copy()), "_mesh_dim_names": self._names,
            "_root_mesh": None if self._root is self else self._root,
            "_flatten_rank_map": tuple(ranks.reshape(-1).tolist()), "_thread_id": None, "_flatten_mapping": {},
            "_dim_group_names": names, "_rank": get_rank(),
            "_coordinate_on_dim": None if self._coordinate is None else tuple(self._coordinate), "_hash": None}

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Make the mesh of a file, with the groups of the names that there are."""
        axes = state["_layout"].axes
        sizes = [int(np.prod(axis.shape, dtype=np.int64)) for axis in axes]
        flat = state["_rank_map"]._array.reshape(-1)
        places = np.zeros(sizes, np.int64)
        for dim, axis in enumerate(axes):
            along = np.zeros((), np.int64)
            for size, stride in zip(axis.shape, axis.stride, strict=True):
                along = (along[..., None] + np.arange(size) * stride).reshape(-1)
            places = places + along.reshape(-1 if along.ndim else 1, *[1] * (len(sizes) - dim - 1))
        where = state.get("_coordinate_on_dim")
        own = np.flatnonzero(flat == state.get("_rank", -1))
        if where is not None and own.size:  # a part of a mesh: the one that this process is in
            places = places + (own[0] - places[tuple(where)])
        ranks = flat[places]
        DeviceMesh.__init__(self, state["_device_type"], ranks, mesh_dim_names=state["_mesh_dim_names"],
                            _init_backend=False, _groups=_known(state.get("_dim_group_names", ())),
                            _root=state.get("_root_mesh"))

    def __hash__(self) -> int:
        return hash((self._ranks.tobytes(), self.shape, self._names, self._device_type))

    def _dimension(self, mesh_dim: int | str | None) -> int:
        if mesh_dim is None:
            if self.ndim > 1:
                raise RuntimeError(
                    f"Found the DeviceMesh have {self.ndim} dimensions",
                    "Optional kwarg `mesh_dim` needs to be specified when device_mesh.ndim > 1.",
                    "If you want to get the list of all the ProcessGroups in the DeviceMesh,please use "
                    "`get_all_groups()` "
                    "instead.")
            return 0
        if isinstance(mesh_dim, str):
            if self._names is None or mesh_dim not in self._names:
                raise KeyError(f"Invalid mesh_dim_name {mesh_dim} specified.")
            return self._names.index(mesh_dim)
        return mesh_dim

    def get_group(self, mesh_dim: int | str | None = None) -> ProcessGroup:
        """The group of this process along a dimension.

        Args:
            mesh_dim: the dimension, or its name; not needed if there is one.

        Raises:
            RuntimeError: there are several dimensions, and none was chosen (PyTorch's text).
        """
        dim = self._dimension(mesh_dim)
        if not self._groups:
            raise RuntimeError("DeviceMesh process groups not initialized!")
        return self._groups[dim]

    def get_all_groups(self) -> list[ProcessGroup]:
        """The groups of this process, one for each dimension."""
        return [self.get_group(dim) for dim in range(self.ndim)]

    def get_rank(self) -> int:
        """This process's global rank."""
        return get_rank()

    def get_local_rank(self, mesh_dim: int | str | None = None) -> int:
        """This process's rank along a dimension.

        Args:
            mesh_dim: the dimension, or its name; not needed if there is one.
        """
        return get_rank(self.get_group(self._dimension(mesh_dim)))

    def get_coordinate(self) -> list[int] | None:
        """Where this process is in the mesh; None if it is not in it."""
        return self._coordinate

    def __getitem__(self, mesh_dim_names: str | tuple[str, ...]) -> DeviceMesh:
        """The mesh of some dimensions, with this process in it."""
        if self._names is None:
            raise RuntimeError("Cannot slice a DeviceMesh without mesh_dim_names!")
        names = (mesh_dim_names,) if isinstance(mesh_dim_names, str) else tuple(mesh_dim_names)
        if names == self._names:
            return self
        for name in names:
            if name not in self._names:
                raise KeyError(f"Invalid mesh_dim_names {names} specified. Valid mesh_dim_names are "
                               f"{list(self._names)}.")
        dims = [self._names.index(name) for name in names]
        assert self._coordinate is not None
        where = tuple(slice(None) if dim in dims else self._coordinate[dim] for dim in range(self.ndim))
        kept = sorted(dims)
        part = self._ranks[where].transpose([kept.index(dim) for dim in dims])
        return DeviceMesh(self._device_type, part, mesh_dim_names=names, _init_backend=False,
                          _groups=[self._groups[dim] for dim in dims], _root=self._get_root_mesh())

    def _get_root_mesh(self) -> DeviceMesh:
        return self._root or self

    def __enter__(self) -> DeviceMesh:
        _mesh_resources.mesh_stack.append(self)
        return self

    def __exit__(self, *args: object) -> None:
        _mesh_resources.mesh_stack.pop()

    @staticmethod
    def from_group(group: Any, device_type: str, mesh: Any = None, *,
                   mesh_dim_names: tuple[str, ...] | None = None) -> DeviceMesh:
        """A mesh of groups that there are.

        Args:
            group: the group, or one for each dimension.
            device_type: the type of its devices.
            mesh: the global ranks, with several groups.
            mesh_dim_names: the names of its dimensions.

        Raises:
            ValueError: the groups do not fit the mesh.
        """
        if isinstance(group, ProcessGroup):
            ranks = get_process_group_ranks(group)
            return DeviceMesh(device_type, ranks, mesh_dim_names=mesh_dim_names, _init_backend=False, _groups=[group])
        groups = list(group)
        if not groups:
            raise ValueError("Expects at least one ProcessGroup to be passed")
        if mesh is None:
            raise ValueError("Must pass mesh if passing multiple ProcessGroups")
        made = DeviceMesh(device_type, mesh, mesh_dim_names=mesh_dim_names, _init_backend=False, _groups=groups)
        if made.ndim != len(groups):
            raise ValueError("Expects mesh with ndim equal to number of ProcessGroups but got mesh "
                             f"{made._ranks.tolist()} and {len(groups)} ProcessGroups")
        return made


def _rebuild_mesh(device_type: str, ranks: list[Any], names: tuple[str, ...] | None, groups: tuple[str | None, ...],
                  root: DeviceMesh | None) -> DeviceMesh:
    """A mesh of a file of flambeau 0.1."""
    return DeviceMesh(device_type, ranks, mesh_dim_names=names, _init_backend=False, _groups=_known(groups),
                      _root=root)


def _known(names: Sequence[str | None]) -> list[Any]:
    """The groups of these names, if this process has them."""
    try:
        return [None if each in (None, "None") else _resolve_process_group(each) for each in names]
    except (KeyError, RuntimeError, ValueError):
        return []


def init_device_mesh(device_type: str, mesh_shape: tuple[int, ...], *, mesh_dim_names: tuple[str, ...] | None = None,
                     backend_override: Any = None) -> DeviceMesh:
    """Make a mesh of all processes, in the order of their ranks.

    Args:
        device_type: "cpu".
        mesh_shape: the numbers of processes along its dimensions.
        mesh_dim_names: the names of its dimensions.
        backend_override: without effect.

    Raises:
        RuntimeError: names that are not unique, or not as many as dimensions (PyTorch's texts).
    """
    if mesh_dim_names is not None:
        if len(set(mesh_dim_names)) != len(mesh_dim_names):
            raise RuntimeError("Each mesh_dim_name must be unique.",
                               f"Found repeated mesh_dim_name in mesh_dim_names {mesh_dim_names}")
        if len(mesh_shape) != len(mesh_dim_names):
            raise RuntimeError("mesh_shape and mesh_dim_names should have same length!",
                               f"Found len(mesh_dim_names): {len(mesh_dim_names)} and "
                               f"len(mesh_shape):{len(mesh_shape)}.")
    if device_type and not device_type.isalpha():
        raise RuntimeError(f"Device type with index is not supported but got {device_type}. ",
                           "If you maintained a 'torch.device' object, it's recommended to pass in 'device.type'.")
    ranks = np.arange(math.prod(mesh_shape)).reshape(mesh_shape)
    return DeviceMesh(device_type, ranks, mesh_dim_names=mesh_dim_names)
