"""`torch.profiler`: profiles of training steps that follow a schedule."""

from __future__ import annotations

import importlib
import json
import os
import warnings
from collections.abc import Callable, Iterable
from enum import Enum, IntEnum
from typing import Any

from ..autograd import profiler as autograd_profiler
from ..autograd.profiler import kineto_available, record_function
from ..autograd.profiler_util import DeviceType, EventList
from ..devices import current_cuda
from . import itt


class ProfilerAction(Enum):
    """The action of a profiler in a step.

    >>> import flambeau as torch
    >>> torch.profiler.ProfilerAction.RECORD.value
    2
    """

    NONE = 0
    WARMUP = 1
    RECORD = 2
    RECORD_AND_SAVE = 3
    DEVICE_STOPPED = 4


class ProfilerActivity(IntEnum):
    """The devices that may be profiled; only the CPU is supported.

    >>> import flambeau as torch
    >>> torch.profiler.ProfilerActivity.CPU
    <ProfilerActivity.CPU: 0>
    """

    CPU = 0
    XPU = 1
    MTIA = 2
    CUDA = 3
    HPU = 4
    PrivateUse1 = 5

    def __repr__(self) -> str:
        return f"<ProfilerActivity.{self.name}: {self.value}>"

    def __str__(self) -> str:
        return f"ProfilerActivity.{self.name}"


def supported_activities() -> set[ProfilerActivity]:
    """The activities that can be profiled: the CPU's, and those of GPUs where there are any.

    >>> import flambeau as torch
    >>> torch.profiler.supported_activities()
    {<ProfilerActivity.CPU: 0>}
    """
    return {ProfilerActivity.CPU} if current_cuda() is None else {ProfilerActivity.CPU, ProfilerActivity.CUDA}


_RECORDING = (ProfilerAction.RECORD, ProfilerAction.RECORD_AND_SAVE)


def schedule(*, wait: int, warmup: int, active: int, repeat: int = 0, skip_first: int = 0,
             skip_first_wait: int = 0) -> Callable[[int], ProfilerAction]:
    """A schedule for `profile`: after `skip_first` steps, cycles of waiting, warming up and recording.

    See https://docs.pytorch.org/docs/stable/profiler.html

    Args:
        wait, warmup, active: the numbers of steps of a cycle; the last active step ends a trace.
        repeat: the number of cycles; 0 for no limit.
        skip_first: steps before the first cycle.
        skip_first_wait: if not 0, the first cycle does not wait.

    Raises:
        AssertionError: a number is negative, or `active` is 0.

    >>> import flambeau as torch
    >>> plan = torch.profiler.schedule(wait=1, warmup=1, active=2)
    >>> [plan(step).name for step in range(5)]
    ['NONE', 'WARMUP', 'RECORD', 'RECORD_AND_SAVE', 'NONE']
    """
    if wait < 0 or warmup < 0 or active <= 0 or repeat < 0 or skip_first < 0:
        raise AssertionError(f"Invalid profiler schedule arguments. Got wait={wait} (need >= 0), warmup={warmup} "
                             f"(need >= 0), active={active} (need > 0), repeat={repeat} (need >= 0), "
                             f"skip_first={skip_first} (need >= 0).")
    if warmup == 0:
        warnings.warn("Profiler won't be using warmup, this can skew profiler results", UserWarning, stacklevel=2)
    cycle = wait + warmup + active

    def action(step: int) -> ProfilerAction:
        if step < 0:
            raise AssertionError(f"Step must be non-negative. Got {step}.")
        step -= skip_first
        if step < 0:
            return ProfilerAction.NONE
        if skip_first_wait:
            step += wait
        if repeat and step >= repeat * cycle:
            return ProfilerAction.NONE
        position = step % cycle
        if position < wait:
            return ProfilerAction.NONE
        if position < wait + warmup:
            return ProfilerAction.WARMUP
        return ProfilerAction.RECORD if position < cycle - 1 else ProfilerAction.RECORD_AND_SAVE

    return action


def tensorboard_trace_handler(dir_name: str, worker_name: str | None = None, use_gzip: bool = False,
                              use_python_export: bool = False) -> Callable[[profile], None]:
    """A handler for `on_trace_ready` that writes each trace to a new file of a directory.

    Args:
        dir_name: the directory; it is created if missing.
        worker_name: the prefix of file names. Default: host name and process id.
        use_gzip: compress the files.

    Raises:
        RuntimeError: in the handler: the directory cannot be created.

    >>> import os, tempfile
    >>> import flambeau as torch
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     handler = torch.profiler.tensorboard_trace_handler(folder, "worker")
    ...     with torch.profiler.profile(on_trace_ready=handler):
    ...         _ = torch.ones(2) + 1
    ...     [name.split(".")[0] for name in os.listdir(folder)]
    ['worker']
    """

    def write(prof: profile) -> None:
        import socket
        import time

        try:
            os.makedirs(dir_name, exist_ok=True)
        except OSError as error:
            raise RuntimeError(f"Can't create directory: {dir_name}") from error
        worker = worker_name or f"{socket.gethostname()}_{os.getpid()}"
        name = f"{worker}.{time.time_ns()}.pt.trace.json" + (".gz" if use_gzip else "")
        prof.export_chrome_trace(os.path.join(dir_name, name))

    return write


class profile:
    """A profiler of training steps; `on_trace_ready` is called when a trace is complete.

    See https://docs.pytorch.org/docs/stable/profiler.html

    Args:
        activities: what to profile: `ProfilerActivity.CPU`.
        schedule: step number -> action. Default: record until the end of the block.
        on_trace_ready: called with this profiler when a trace is complete.
        record_shapes: record the shapes of operators' inputs.
        profile_memory: count the bytes that are allocated and freed.
        with_stack: record call stacks.

    The other arguments are accepted for compatibility and ignored.

    Raises:
        AssertionError: no activities.

    >>> import flambeau as torch
    >>> from flambeau.profiler import ProfilerActivity, profile, schedule
    >>> with profile(activities=[ProfilerActivity.CPU], schedule=schedule(wait=0, warmup=1, active=2, repeat=1),
    ...              on_trace_ready=lambda p: print(p.step_num, p.key_averages()[1].key)) as prof:
    ...     for _ in range(4):
    ...         _ = torch.tensor(1.).sin()
    ...         prof.step()
    3 aten::sin
    """

    def __init__(self, *, activities: Iterable[Any] | None = None,
                 schedule: Callable[[int], ProfilerAction] | None = None,
                 on_trace_ready: Callable[..., Any] | None = None, record_shapes: bool = False,
                 profile_memory: bool = False, with_stack: bool = False, with_flops: bool = False,
                 with_modules: bool = False, experimental_config: Any = None, execution_trace_observer: Any = None,
                 acc_events: bool = False, use_cuda: bool | None = None, custom_trace_id_callback: Any = None,
                 post_processing_timeout_s: float | None = None) -> None:
        self.activities = supported_activities() if activities is None else set(activities)
        if not self.activities:
            raise AssertionError("No valid profiler activities found")
        if ProfilerActivity.CUDA in self.activities and current_cuda() is None:
            warnings.warn("CUDA is not available, disabling CUDA profiling", UserWarning, stacklevel=2)
        self.schedule = schedule
        self.on_trace_ready = on_trace_ready
        self.record_shapes = record_shapes
        self.profile_memory = profile_memory
        self.with_stack = with_stack
        self.with_flops = with_flops
        self.step_num = 0
        self.current_action = self._scheduled_action()
        self.profiler: autograd_profiler.profile | None = None
        self._active_trace: autograd_profiler.profile | None = None
        self._step: record_function | None = None
        self._metadata: dict[str, Any] = {}
        self.custom_trace_id_callback = custom_trace_id_callback

    def _scheduled_action(self) -> ProfilerAction:
        return ProfilerAction.RECORD if self.schedule is None else self.schedule(self.step_num)

    def __enter__(self) -> profile:
        self.start()
        return self

    def __exit__(self, *exception: object) -> None:
        self.stop()

    def start(self) -> None:
        """Start the first step.

        Raises:
            AssertionError: the CPU is not among the activities.
        """
        if ProfilerActivity.CPU not in self.activities:
            raise AssertionError("No activities specified for the profiler")
        if self.current_action in _RECORDING:
            self.start_trace()
        self._begin_step()

    def stop(self) -> None:
        """End the last step, and the trace if one is active."""
        self._end_step()
        if self._active_trace is not None:
            self.stop_trace()
            self._ready()

    def step(self) -> None:
        """End a step and start the next."""
        self._end_step()
        before = self.current_action
        self.step_num += 1
        after = self.current_action = self._scheduled_action()
        if before is ProfilerAction.RECORD_AND_SAVE:
            self.stop_trace()
            self._ready()
        elif before is ProfilerAction.RECORD and after not in _RECORDING:
            warnings.warn(f"Incorrect schedule: RECORD followed by {after.name}", UserWarning, stacklevel=2)
            self.stop_trace()
        if after in _RECORDING and self._active_trace is None:
            self.start_trace()
        self._begin_step()

    def _begin_step(self) -> None:
        if self.schedule is not None:
            self._step = record_function(f"ProfilerStep#{self.step_num}").__enter__()

    def _end_step(self) -> None:
        if self._step is not None:
            self._step.__exit__()
            self._step = None

    def _ready(self) -> None:
        if self.on_trace_ready is not None:
            self.on_trace_ready(self)

    def prepare_trace(self) -> None:
        """Make ready for a trace."""
        self.profiler = autograd_profiler.profile(
            record_shapes=self.record_shapes, profile_memory=self.profile_memory, with_stack=self.with_stack,
            with_flops=self.with_flops, custom_trace_id_callback=self.custom_trace_id_callback)

    def start_trace(self) -> None:
        """Start a trace."""
        self.prepare_trace()
        self._active_trace = self.profiler
        self._recorded("starting trace").__enter__()

    def stop_trace(self) -> None:
        """End the trace."""
        if self._active_trace is not None:
            self._active_trace.__exit__()
            self._active_trace = None

    # ----- results -----

    def _recorded(self, what: str) -> autograd_profiler.profile:
        if self.profiler is None:
            raise AssertionError(f"Profiler must be initialized before {what}")
        return self.profiler

    def events(self) -> EventList | None:
        """The events of the last trace."""
        return self._recorded("accessing events").function_events

    def key_averages(self, group_by_input_shape: bool = False, group_by_stack_n: int = 0,
                     group_by_overload_name: bool = False) -> EventList:
        """Sums of the last trace's events by name, optionally also by shapes or the innermost frames."""
        return self._recorded("getting key averages").key_averages(group_by_input_shape, group_by_stack_n,
                                                                   group_by_overload_name)

    def export_chrome_trace(self, path: str | os.PathLike[str]) -> None:
        """Write the last trace as JSON for `chrome://tracing` and Perfetto."""
        self._recorded("exporting chrome trace").export_chrome_trace(path, self._metadata)

    def export_stacks(self, path: str, metric: str = "self_cpu_time_total") -> None:
        """Write call stacks weighted by `metric`, the input of flame graph tools."""
        self._recorded("exporting stacks").export_stacks(path, metric)

    def add_metadata(self, key: str, value: str) -> None:
        """Add a string to the metadata of trace files."""
        self._metadata[key] = value

    def add_metadata_json(self, key: str, value: str) -> None:
        """Add a value, given as JSON, to the metadata of trace files."""
        self._metadata[key] = json.loads(value)

    preset_metadata_json = add_metadata_json

    def set_custom_trace_id_callback(self, callback: Callable[[], str] | None) -> None:
        """Set the function that names the next traces."""
        self.custom_trace_id_callback = callback

    def get_trace_id(self) -> str | None:
        """The name of the current trace; None before the first."""
        return None if self.profiler is None else self.profiler.trace_id

    def toggle_collection_dynamic(self, enable: bool, activities: Iterable[ProfilerActivity]) -> None:
        """Stop recording activities, or start it again, inside the block.

        Args:
            enable: False to stop.
            activities: which; only `ProfilerActivity.CPU` has an effect.

        >>> import flambeau as torch
        >>> cpu = [torch.profiler.ProfilerActivity.CPU]
        >>> with torch.profiler.profile() as prof:
        ...     prof.toggle_collection_dynamic(False, cpu)
        ...     x = torch.ones(2).sin()
        ...     prof.toggle_collection_dynamic(True, cpu)
        ...     y = x.cos()
        >>> [event.name for event in prof.events()]
        ['aten::cos']
        """
        if self.profiler is not None:
            self.profiler.toggle_collection_dynamic(enable, activities)

    def export_memory_timeline(self, path: str, device: str | None = None) -> None:
        """Write memory by category over time, which is left out: operators' memory has no categories here.

        Raises:
            NotImplementedError: always.
        """
        raise NotImplementedError("export_memory_timeline: flambeau records the bytes of operators, not categories of "
                                  "memory; see profile(profile_memory=True)")


class ExecutionTraceObserver:
    """A recorder of all operators with their arguments, for replay, which is left out.

    Raises:
        NotImplementedError: it is registered.

    >>> import flambeau as torch
    >>> torch.profiler.ExecutionTraceObserver().is_registered
    False
    """

    is_registered = is_running = False

    @staticmethod
    def build_execution_trace_obs_from_env() -> ExecutionTraceObserver | None:
        """The recorder that the environment variable ENABLE_PYTORCH_EXECUTION_TRACE asks for: None unless it is 1."""
        if os.environ.get("ENABLE_PYTORCH_EXECUTION_TRACE", "0") != "1":
            return None
        return ExecutionTraceObserver().register_callback("")

    @staticmethod
    def get_resources_dir_for_et_path(trace_path: str, create_dir: bool = False) -> str | None:
        """The folder beside a file of a trace, with what the trace refers to; None if there is none."""
        folder = f"{os.path.splitext(trace_path)[0]}_resources"
        if create_dir:
            os.makedirs(folder, exist_ok=True)
        return folder if os.path.isdir(folder) else None

    def set_extra_resource_collection(self, val: bool) -> None:
        """Set whether what operators refer to is recorded, too; no effect."""

    def register_callback(self, output_file_path: str) -> ExecutionTraceObserver:
        """Record to a file, which is refused."""
        raise NotImplementedError("ExecutionTraceObserver: flambeau writes no execution traces; see "
                                  "torch.profiler.profile and export_chrome_trace")

    def get_resources_dir(self, can_create: bool = False) -> str | None:
        """The folder with the recorded data: None."""
        return None

    def get_output_file_path(self) -> str | None:
        """The file that is written: None."""
        return None

    def unregister_callback(self) -> None:
        """Stop: nothing is recorded."""

    start = stop = cleanup = unregister_callback


__all__ = ["DeviceType", "ExecutionTraceObserver", "ProfilerAction", "ProfilerActivity", "itt", "kineto_available",
           "profile", "record_function", "schedule", "supported_activities", "tensorboard_trace_handler"]

#: modules that are imported when they are first looked up
_MODULES = ("profiler",)


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return importlib.import_module(f"{__name__}.{name}")
    raise AttributeError(f"module '{__name__}' has no attribute '{name}'")
