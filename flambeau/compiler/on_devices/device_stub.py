"""Call stubs of compiled functions on devices: guards as on the CPU, then the program's launches."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..._tensor import Tensor
from ...backends.cuda_devices import current_runtime
from ...backends.cuda_devices.array import DeviceArray
from ...modes import dispatch_in_use
from ...trees import is_container
from ..execution.call_stub import StubSource, emit_checks, emit_results

#: nothing but the device is in use
_ONLY_THE_DEVICE = "special[0] == 1 and dispatch_in_use[0] == 1"


def device_stub(entry: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Callable[..., Any] | None:
    """A function that replays an entry for calls with arguments like these; None where there is none.

    It returns `GUARDS_FAILED` for other calls. The program must not have data guards.
    """
    program = entry.program
    if kwargs or any(is_container(x) for x in args) or program.device_program.guards or current_runtime().count > 1:
        return None
    if any(source[0] in ("memory of", "computed") for source in entry.trace.sources.values()):
        return None
    stub = StubSource()
    stub.names |= {"dispatch_in_use": dispatch_in_use, "current_runtime": current_runtime, "run": program.run_again,
                   "DeviceArray": DeviceArray}
    tensors = emit_checks(stub, entry, list(args), _ONLY_THE_DEVICE)
    if tensors is None:
        return None
    kinds = [f"x{i}.__class__ is {stub.name(x._array.__class__, 'kind_')}"
             for i, x in enumerate(args) if isinstance(x, Tensor)]
    stub.add_guard(1, f"current_runtime() is {stub.name(current_runtime(), 'runtime')}", *kinds)
    inputs = []
    for number in program.inputs:
        source = entry.trace.sources[number]
        if source[0] == "argument":
            inputs.append(f"x{tensors[source[1]]}")
        elif source[0] == "gradient of":
            inputs.append(f"g{number}")
        elif source[0] == "number":
            inputs.append(stub.name(entry.scalar_arrays[number], "number"))
            stub.add(1, f"{inputs[-1]}[()] = n{number}")
        else:
            inputs.append(stub.name(source[2], "array"))
    stub.add(1, f"new = run([{', '.join(inputs)}])")
    count = len(program.output_specs)
    if count:
        stub.add(1, f"{', '.join(f'o{k}' for k in range(count))}, = new")
    emit_results(stub, entry, tensors)
    entry.stub_source = "\n".join(stub.lines) + "\n"
    exec(compile(entry.stub_source, "<compiled call>", "exec"), stub.names)
    found: Callable[..., Any] = stub.names["call_compiled"]
    return found


__all__ = ["device_stub"]
