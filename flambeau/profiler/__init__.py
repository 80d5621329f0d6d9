"""`torch.profiler`: profiles of a program's steps, by a schedule, handed over as each is ready."""

from __future__ import annotations

import json
import os
import warnings
from collections.abc import Callable, Iterable
from enum import Enum, IntEnum
from typing import Any

from ..autograd import profiler as autograd_profiler
from ..autograd.profiler import kineto_available, record_function
from ..autograd.profiler_util import DeviceType, EventList
from . import itt


class ProfilerAction(Enum):
    """What a profiler does in a step."""

    NONE = 0
    WARMUP = 1
    RECORD = 2
    RECORD_AND_SAVE = 3


class ProfilerActivity(IntEnum):
    """Where things run that may be profiled; here, on the CPU."""

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
    """The activities that can be profiled."""
    return {ProfilerActivity.CPU}


_RECORDING = (ProfilerAction.RECORD, ProfilerAction.RECORD_AND_SAVE)


def schedule(*, wait: int, warmup: int, active: int, repeat: int = 0, skip_first: int = 0,
             skip_first_wait: int = 0) -> Callable[[int], ProfilerAction]:
    """What to do in each step: after `skip_first` of them, cycles of waiting, warming up and recording.

    See https://docs.pytorch.org/docs/stable/profiler.html

    Args:
        wait, warmup, active: how many steps of a cycle each takes; the last active one saves.
        repeat: how many cycles; 0 for no end.
        skip_first: steps before the first cycle.
        skip_first_wait: not 0 to leave out the first cycle's waiting.

    Raises:
        AssertionError: a number is negative, or nothing is to be recorded.

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
        at = step % cycle
        if at < wait:
            return ProfilerAction.NONE
        if at < wait + warmup:
            return ProfilerAction.WARMUP
        return ProfilerAction.RECORD if at < cycle - 1 else ProfilerAction.RECORD_AND_SAVE

    return action


def tensorboard_trace_handler(dir_name: str, worker_name: str | None = None, use_gzip: bool = False,
                              use_python_export: bool = False) -> Callable[[profile], None]:
    """For `on_trace_ready`: write each trace into a folder, under a name of its own.

    Raises:
        RuntimeError: the folder cannot be made.
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
    """A profile of the steps that a schedule says, each handed to `on_trace_ready` when it is whole.

    See https://docs.pytorch.org/docs/stable/profiler.html

    Args:
        activities: what to profile: `ProfilerActivity.CPU`.
        schedule: what to do in each step; default: record from the beginning to the end.
        on_trace_ready: called with this profile whenever its events are complete.
        record_shapes: note the shapes of what operators are given.
        profile_memory: count the bytes of results, made and freed.
        with_stack: note the callers.

    The others are PyTorch's, and have nothing to act on here.

    Raises:
        AssertionError: nothing to profile.

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
        if ProfilerActivity.CUDA in self.activities:
            warnings.warn("CUDA is not available, disabling CUDA profiling", UserWarning, stacklevel=2)
        self.schedule = schedule
        self.on_trace_ready = on_trace_ready
        self.record_shapes = record_shapes
        self.profile_memory = profile_memory
        self.with_stack = with_stack
        self.with_flops = with_flops
        self.step_num = 0
        self.current_action = self._planned()
        self.profiler: autograd_profiler.profile | None = None
        self._running: autograd_profiler.profile | None = None
        self._step: record_function | None = None
        self._metadata: dict[str, Any] = {}

    def _planned(self) -> ProfilerAction:
        return ProfilerAction.RECORD if self.schedule is None else self.schedule(self.step_num)

    def __enter__(self) -> profile:
        self.start()
        return self

    def __exit__(self, *exception: object) -> None:
        self.stop()

    def start(self) -> None:
        """Begin with the first step.

        Raises:
            AssertionError: nothing to profile.
        """
        if ProfilerActivity.CPU not in self.activities:
            raise AssertionError("No activities specified for the profiler")
        if self.current_action in _RECORDING:
            self.start_trace()
        self._begin_step()

    def stop(self) -> None:
        """End; what is recorded by then is ready."""
        self._end_step()
        if self._running is not None:
            self.stop_trace()
            self._ready()

    def step(self) -> None:
        """Say that one step is over and the next begins."""
        self._end_step()
        before = self.current_action
        self.step_num += 1
        after = self.current_action = self._planned()
        if before is ProfilerAction.RECORD_AND_SAVE:
            self.stop_trace()
            self._ready()
        elif before is ProfilerAction.RECORD and after not in _RECORDING:
            warnings.warn(f"Incorrect schedule: RECORD followed by {after.name}", UserWarning, stacklevel=2)
            self.stop_trace()
        if after in _RECORDING and self._running is None:
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

    def start_trace(self) -> None:
        """Begin to record."""
        self._running = self.profiler = autograd_profiler.profile(
            record_shapes=self.record_shapes, profile_memory=self.profile_memory, with_stack=self.with_stack,
            with_flops=self.with_flops)
        self._running.__enter__()

    def stop_trace(self) -> None:
        """Record no longer."""
        if self._running is not None:
            self._running.__exit__()
            self._running = None

    # ----- results -----

    def _recorded(self, what: str) -> autograd_profiler.profile:
        if self.profiler is None:
            raise AssertionError(f"Profiler must be initialized before {what}")
        return self.profiler

    def events(self) -> EventList | None:
        """The events recorded last, one by one."""
        return self._recorded("accessing events").function_events

    def key_averages(self, group_by_input_shape: bool = False, group_by_stack_n: int = 0,
                     group_by_overload_name: bool = False) -> EventList:
        """The events recorded last, added up by name, and by shapes or by the innermost callers as well."""
        return self._recorded("getting key averages").key_averages(group_by_input_shape, group_by_stack_n,
                                                                   group_by_overload_name)

    def export_chrome_trace(self, path: str | os.PathLike[str]) -> None:
        """Write the events recorded last as JSON that `chrome://tracing` and Perfetto show."""
        self._recorded("exporting chrome trace").export_chrome_trace(path, self._metadata)

    def export_stacks(self, path: str, metric: str = "self_cpu_time_total") -> None:
        """Write the callers of events, weighed by `metric`: what flame graphs are drawn of."""
        self._recorded("exporting stacks").export_stacks(path, metric)

    def add_metadata(self, key: str, value: str) -> None:
        """Put a text into the trace file."""
        self._metadata[key] = value

    def add_metadata_json(self, key: str, value: str) -> None:
        """Put a value, given as JSON, into the trace file."""
        self._metadata[key] = json.loads(value)

    preset_metadata_json = add_metadata_json


__all__ = ["DeviceType", "ProfilerAction", "ProfilerActivity", "itt", "kineto_available", "profile", "record_function",
           "schedule", "supported_activities", "tensorboard_trace_handler"]
