"""`CommDebugMode`: the collectives and operators of distributed tensors in a block, by module."""

from __future__ import annotations

import re
from collections import defaultdict
from typing import Any

from ....c10d.collective_counts import listeners
from ....ops.overloads import OpOverloadPacket, namespace_of
from ....utils._python_dispatch import TorchDispatchMode
from .._dtensor import DTensor
from ._module_tracker import CommModeModuleTracker
from ._tables import tracing_table, write_json

_COLORS = re.compile(r"\x1B\[[0-?]*[ -/]*[@-~]")


class CommDebugMode(TorchDispatchMode):
    """Count the collectives in a block, and note the operators of each module.

    Attributes:
        comm_counts: the number by operator: of `torch.ops.c10d_functional` for distributed tensors and functional
            collectives, of `torch.ops.c10d` for those that programs and data parallel wrappers start.
        comm_module_counts: such numbers by module and pass ("forward", "backward"), with those of its submodules.
        comm_module_operation_counts: the operators by module, in their order.
        advanced_module_tracker: what is known of the modules.

    >>> from flambeau.distributed.tensor.debug import CommDebugMode
    >>> with CommDebugMode() as mode:
    ...     pass
    >>> mode.get_total_counts(), dict(mode.get_comm_counts())
    (0, {})
    """

    supports_higher_order_operators = True

    def __init__(self) -> None:
        super().__init__()
        self.comm_counts: dict[OpOverloadPacket, int] = defaultdict(int)
        self.comm_module_counts: dict[str, dict[str, dict[OpOverloadPacket, int]]] = {}
        self.comm_module_operation_counts: dict[str, dict[str, list[dict[str, Any]]]] = {}
        self.advanced_module_tracker = CommModeModuleTracker()

    def __enter__(self) -> CommDebugMode:
        self.comm_counts.clear()
        self.comm_module_counts.clear()
        self.comm_module_operation_counts.clear()
        self.comm_module_counts["Global"] = {"forward": defaultdict(int), "backward": defaultdict(int)}
        super().__enter__()
        self.advanced_module_tracker.__enter__()
        listeners.append(self._count)
        return self

    def __exit__(self, *exception: object) -> None:
        listeners.remove(self._count)
        self.advanced_module_tracker.__exit__()
        super().__exit__(*exception)

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        distributed = any(kind is DTensor for kind in types)
        self._note(func, [x for x in args if isinstance(x, DTensor)] if distributed else [])
        return NotImplemented if distributed else func(*args, **(kwargs or {}))

    def _note(self, func: Any, inputs: list[DTensor]) -> None:
        """Add an operator to those of the module at the moment."""
        tracker = self.advanced_module_tracker
        found = self.comm_module_operation_counts.setdefault(tracker.name, {"operations_list": []})
        found["operations_list"].append({
            "name": func, "input_shape": [x.shape for x in inputs], "input_sharding": [x.placements for x in inputs],
            "device_mesh": str(inputs[-1].device_mesh) if inputs else "", "is_bw": tracker.is_bw,
            "is_activation_checkpointing": tracker.activation_checkpointing})

    def _count(self, namespace: str, name: str) -> None:
        """Count a collective for the module at the moment, and the modules around it."""
        if namespace == "c10d" and name not in _COUNTED:
            return
        tracker, packet = self.advanced_module_tracker, namespace_of(namespace).packet(name)
        self.comm_counts[packet] += 1
        for module in tracker.module_parents_dict.get(tracker.name, set()) | {tracker.name}:
            counts = self.comm_module_counts.setdefault(
                module, {"forward": defaultdict(int), "backward": defaultdict(int)})
            counts["backward" if tracker.is_bw else "forward"][packet] += 1
        self._note(f"{'_' if namespace == 'c10d_functional' else ''}{namespace}.{name}.default", [])

    def get_total_counts(self) -> int:
        """The number of collectives."""
        return sum(self.comm_counts.values())

    def get_comm_counts(self) -> dict[OpOverloadPacket, int]:
        """The number by operator; 0 for those that were not started."""
        return self.comm_counts

    def get_parameter_info(self) -> dict[str, dict[str, Any]]:
        """The parameters by module and name."""
        return self.advanced_module_tracker.module_parameters_dict

    def get_sharding_info(self) -> dict[str, Any]:
        """The placements of distributed parameters by name."""
        return self.advanced_module_tracker.sharding_dict

    def generate_comm_debug_tracing_table(self, noise_level: int = 3) -> str:
        """The modules with their collectives and operators, as text for a terminal with colors.

        Args:
            noise_level: 0: numbers of collectives; 1: also types and parameters of modules, and operators on
                distributed tensors; 2: also those on their parts; 3: also views and copies.
        """
        return tracing_table(self, noise_level)

    def log_comm_debug_tracing_table_to_file(self, file_name: str = "comm_mode_log.txt", noise_level: int = 3) -> None:
        """Write the table to a file, without colors.

        Args:
            file_name: where.
            noise_level: as for `generate_comm_debug_tracing_table`.
        """
        with open(file_name, "w", encoding="utf-8") as file:
            file.write(_COLORS.sub("", self.generate_comm_debug_tracing_table(noise_level)))

    def generate_json_dump(self, file_name: str = "comm_mode_log.json", noise_level: int = 3) -> None:
        """Write the modules as nested objects to a file, as PyTorch's browser of them reads it.

        Args:
            file_name: where.
            noise_level: as for `generate_comm_debug_tracing_table`.
        """
        write_json(self, file_name, noise_level)

    def __repr__(self) -> str:
        return f"CommDebugMode(get_total_counts()={self.get_total_counts()})"


#: the operators of process groups that count
_COUNTED = frozenset(("_allgather_base_", "_reduce_scatter_base_", "allgather_", "allgather_coalesced_",
                      "allgather_into_tensor_coalesced_", "allreduce_", "allreduce_coalesced_", "alltoall_",
                      "alltoall_base_", "broadcast_", "gather_", "scatter_", "reduce_", "reduce_scatter_",
                      "reduce_scatter_tensor_coalesced_"))
_FUNCTIONAL = ("all_gather_into_tensor", "all_gather_into_tensor_coalesced", "all_reduce", "all_reduce_coalesced",
               "all_to_all_single", "broadcast", "reduce_scatter_tensor", "reduce_scatter_tensor_coalesced")

for _name in _FUNCTIONAL:
    namespace_of("c10d_functional").packet(_name)
for _name in _COUNTED:
    namespace_of("c10d").packet(_name)

__all__ = ["CommDebugMode"]
