"""The profiler: events, sums and files."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
import time

import pytest

import flambeau as torch
from flambeau import modes
from flambeau.autograd.profiler import emit_itt, emit_nvtx, profile, record_function
from flambeau.autograd.profiler_util import EventList, FunctionEvent, FunctionEventAvg, _format_memory, _format_time


def names(prof):
    return [event.name for event in prof.function_events]


def event_of(prof, name):
    return next(event for event in prof.function_events if event.name == name)


def test_operators_forward_and_backward_under_pytorchs_names():
    x = torch.ones(4, 4, requires_grad=True)
    with profile() as prof:
        assert torch.autograd._profiler_enabled()
        (x * 2 + 4).sum().backward()
    assert not torch.autograd._profiler_enabled()
    turn = "autograd::engine::evaluate_function: "
    assert names(prof) == [
        "aten::mul", "aten::add", "aten::sum", turn + "SumBackward0", "SumBackward0", turn + "AddBackward0",
        "AddBackward0", turn + "MulBackward0", "MulBackward0", turn + "torch::autograd::AccumulateGrad",
        "torch::autograd::AccumulateGrad"]
    assert event_of(prof, "MulBackward0").cpu_parent.name == turn + "MulBackward0"
    assert x.grad.eq(2).all()


def test_a_node_has_the_number_of_the_operator_that_recorded_it():
    x = torch.ones(4, requires_grad=True)
    with profile() as prof:
        y = x * 2
        with torch.no_grad():
            x * 3
        y.sum().backward()
    recorded, unrecorded = (event for event in prof.function_events if event.name == "aten::mul")
    assert recorded.sequence_nr == y.grad_fn._sequence_nr() >= 0
    assert unrecorded.sequence_nr == -1
    node = event_of(prof, "MulBackward0")
    assert node.sequence_nr == recorded.sequence_nr
    assert (recorded.fwd_thread, node.fwd_thread, node.scope) == (0, recorded.thread, 1)


def test_gradients_are_those_of_a_run_without_it():
    def run():
        torch.manual_seed(0)
        model = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.Tanh(), torch.nn.Linear(4, 1))
        x = torch.randn(5, 3, requires_grad=True)
        inner = model[0](x)
        loss = (model[2](inner.tanh()) ** 2).mean() + inner.exp().sum()
        grads = torch.autograd.grad(loss, [x, inner], retain_graph=True)
        loss.backward()
        return [*grads, x.grad, *(p.grad for p in model.parameters())]

    plain = run()
    with profile(record_shapes=True, profile_memory=True, with_stack=True):
        profiled = run()
    for a, b in zip(plain, profiled, strict=True):
        assert torch.equal(a, b)


def test_in_place_views_hooks_create_graph_and_users_functions():
    class Twice(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

        @staticmethod
        def backward(ctx, g):
            return g * 2

    x = torch.ones(4, requires_grad=True)
    with profile() as prof:
        y = Twice.apply(x * 1)
        y[0].add_(1)
        y.register_hook(lambda g: g.neg())
        first, = torch.autograd.grad((y * y).sum(), x, create_graph=True)
        first.sum().backward()
    seen = names(prof)
    for name in ("aten::select", "aten::add_", "aten::neg", "TwiceBackward", "CopySlices"):
        assert any(name in one for one in seen), name
    assert event_of(prof, "TwiceBackward").cpu_children[0].name == "aten::mul"


def test_the_profiler_is_removed_afterwards():
    before = modes.special[0]
    function = torch.randn
    with pytest.raises(ValueError, match="inside"):
        with profile():
            assert modes.special[0] == before + 1
            raise ValueError("inside")
    assert modes.special[0] == before
    assert torch.randn is function


def test_time_nests_and_adds_up():
    with profile() as prof:
        with record_function("outer"):
            time.sleep(0.002)
            with record_function("inner"):
                time.sleep(0.003)
    outer, inner = prof.function_events
    assert (outer.name, inner.name) == ("outer", "inner")
    assert inner.cpu_parent is outer
    assert inner.cpu_time_total >= 3000
    assert outer.self_cpu_time_total == pytest.approx(outer.cpu_time_total - inner.cpu_time_total)
    assert outer.cpu_time_total >= 5000
    assert prof.self_cpu_time_total == pytest.approx(outer.cpu_time_total)
    assert inner.time_range.start >= outer.time_range.start
    assert inner.time_range.end <= outer.time_range.end


def test_record_function_decorates_nests_in_itself_and_does_nothing_without_a_profile():
    @record_function("mine")
    def factorial(n):
        return 1 if n < 2 else n * factorial(n - 1)

    assert factorial(3) == 6
    block = record_function("again")
    with profile() as prof:
        assert factorial(3) == 6
        with block:
            with block:
                pass
    assert names(prof).count("mine") == 1  # the inner ones only repeat the outer one
    assert "again" in names(prof)
    assert factorial.__name__ == "factorial"


def test_a_block_that_began_before_the_profile():
    block = record_function("early")
    block.__enter__()
    with profile() as prof:
        torch.ones(2)
        block.__exit__(None, None, None)
        late = record_function("late").__enter__()
    late.__exit__(None, None, None)
    assert "early" not in names(prof)
    assert "late" not in names(prof)  # it had not ended


def test_functions_that_are_not_operators():
    with profile(record_shapes=True) as prof:
        torch.nn.functional.linear(torch.ones(2, 3), torch.zeros(4, 3), torch.zeros(4))
    linear = event_of(prof, "aten::linear")
    assert linear.input_shapes == [[2, 3], [4, 3], [4]]
    assert [child.name for child in linear.cpu_children] == ["aten::t", "aten::addmm"]
    assert {"aten::ones", "aten::zeros"} <= set(names(prof))


def test_shapes_group_apart():
    x, y = torch.ones(2, 3), torch.ones(5)
    with profile(record_shapes=True) as prof:
        x * 2, x * x, y * 2
    assert [event.input_shapes for event in prof.function_events] == [[[2, 3], []], [[2, 3], [2, 3]], [[5], []]]
    assert [(group.key, group.count) for group in prof.key_averages()] == [("aten::mul", 3)]
    assert len(prof.key_averages(group_by_input_shape=True)) == 3
    with profile() as prof:
        x * 2
    assert prof.function_events[0].input_shapes == []


def test_memory_is_that_of_results():
    x = torch.ones(100, dtype=torch.float32)
    with profile(profile_memory=True) as prof:
        with record_function("block"):
            y = x * 2  # 400 bytes
            y.add_(1)
            z = y[:50]
        del y, z
    memory = {event.name: (event.cpu_memory_usage, event.self_cpu_memory_usage) for event in prof.function_events}
    assert memory["aten::mul"] == (400, 400)
    assert memory["aten::add_"] == memory["aten::slice"] == (0, 0)
    assert memory["block"] == (400, 0)
    assert memory["[memory]"] == (-400, -400)
    assert "CPU Mem" in prof.key_averages().table()


def test_callers():
    def caller():
        return torch.ones(2).sin()

    with profile(with_stack=True) as prof:
        caller()
    stack = event_of(prof, "aten::sin").stack
    assert stack[0].startswith(__file__)
    assert stack[0].endswith(": caller")
    assert "test_callers" in stack[1]
    assert event_of(prof, "aten::sin").key in {group.key for group in prof.key_averages(group_by_stack_n=1)}
    assert "Source Location" in prof.key_averages(group_by_stack_n=2).table()


def test_stacks_to_a_file(tmp_path):
    with profile(with_stack=True) as prof:
        torch.ones(100, 100).exp()
    prof.export_stacks(str(tmp_path / "stacks"), "self_cpu_time_total")
    lines = (tmp_path / "stacks").read_text().splitlines()
    assert all(line.rpartition(" ")[2].isdigit() for line in lines)
    with pytest.raises(ValueError, match="metric should be one of"):
        prof.export_stacks(str(tmp_path / "stacks"), "weight")
    with profile() as prof:
        pass
    with pytest.raises(AssertionError, match="requires with_stack=True"):
        prof.export_stacks(str(tmp_path / "stacks"))


def test_the_trace_that_chrome_reads(tmp_path):
    x = torch.ones(3, requires_grad=True)
    with profile(record_shapes=True) as prof:
        with record_function("block"):
            (x * 2).sum().backward()
    prof.export_chrome_trace(tmp_path / "trace.json")
    events = json.loads((tmp_path / "trace.json").read_text())["traceEvents"]
    complete = [event for event in events if event["ph"] == "X"]
    assert len(complete) == len(prof.function_events)
    for event in complete:
        assert {"name", "cat", "ts", "dur", "pid", "tid", "args"} <= event.keys()
        assert event["dur"] >= 0
    block = next(event for event in complete if event["name"] == "block")
    assert block["cat"] == "user_annotation"
    mul = next(event for event in complete if event["name"] == "aten::mul")
    assert block["ts"] <= mul["ts"] <= mul["ts"] + mul["dur"] <= block["ts"] + block["dur"]
    assert mul["args"]["Input Dims"] == [[3], []]
    starts = {event["id"] for event in events if event["ph"] == "s"}
    ends = {event["id"] for event in events if event["ph"] == "f"}
    assert ends <= starts
    assert mul["args"]["Sequence number"] in ends


def test_profiles_within_profiles_and_in_threads():
    def work(found):
        with profile() as inner:
            torch.ones(2).cos()
        found.append(names(inner))

    found = []
    with profile() as outer:
        torch.ones(2).sin()
        work(found)
        thread = threading.Thread(target=work, args=(found,))
        thread.start()
        thread.join()
        torch.ones(2).tan()
    assert [[name for name in one if name != "aten::ones"] for one in found] == [["aten::cos"], ["aten::cos"]]
    assert [name for name in names(outer) if name != "aten::ones"] == ["aten::sin", "aten::tan"]


def test_disabled_and_unused_profilers():
    with profile(enabled=False) as prof:
        torch.ones(2) * 2
    assert prof is None
    prof = profile()
    assert repr(prof) == str(prof) == "<unfinished torch.autograd.profile>"
    assert prof.table() == ""
    assert prof.key_averages() == []
    with prof, pytest.raises(RuntimeError, match="Profiler context manager is not reentrant"):
        prof.__enter__()


def test_unavailable_devices():
    with pytest.warns(UserWarning, match="CUDA is not available, disabling CUDA profiling"):
        profile(use_device="cuda")
    with pytest.raises(AssertionError, match="Torch not compiled with CUDA enabled"), emit_nvtx():
        pass
    with emit_nvtx(enabled=False), emit_itt():
        pass
    assert not torch.profiler.itt.is_available()


# ----- events and tables -----

def test_events_nest_by_their_times():
    ran = [(1, 1, 0, 1), (2, 1, 1, 2), (3, 0, 0, 2), (4, 0, 1, 2), (5, 0, 1, 3)]
    events = EventList(FunctionEvent(id=n, name="", thread=thread, start_us=start, end_us=end)
                       for n, thread, start, end in ran)
    events._populate_cpu_children()
    assert [[child.id for child in event.cpu_children] for event in events] == [[], [], [], [], [4]]


def test_an_event_that_repeats_the_one_around_it_is_dropped():
    events = EventList([FunctionEvent(id=1, name="a", thread=1, start_us=0, end_us=9),
                        FunctionEvent(id=2, name="a", thread=1, start_us=1, end_us=8),
                        FunctionEvent(id=3, name="b", thread=1, start_us=2, end_us=7)])
    events._build_tree()
    assert [(event.id, [child.id for child in event.cpu_children]) for event in events] == [(1, [3]), (3, [])]
    assert events[1].cpu_parent is events[0]


def test_sums():
    both = FunctionEventAvg()
    for start, end in ((10, 15), (20, 30)):
        both.add(FunctionEvent(id=0, name="foo", thread=0, start_us=start, end_us=end))
    both.add(both)
    assert (both.key, both.count) == ("foo", 4)
    assert (both.cpu_time_total, both.self_cpu_time_total, both.cpu_time) == (30, 30, 7.5)
    with pytest.raises(AssertionError, match="Expected keys to match, but got bar vs foo"):
        both.add(FunctionEvent(id=0, name="bar", thread=0, start_us=0, end_us=1))


def test_times_and_sizes_as_text():
    assert [_format_time(t) for t in (0, 1.5, 1500, 2.5e6)] == ["0.000us", "1.500us", "1.500ms", "2.500s"]
    assert [_format_memory(n) for n in (0, -400, 1024, 3 * 2**20, 5 * 2**30)] == [
        "0 B", "-400 B", "1.00 KB", "3.00 MB", "5.00 GB"]


def test_the_table_is_plain_text():
    with profile() as prof:
        for _ in range(3):
            torch.ones(2).sin()
    averages = prof.key_averages()
    table = averages.table(sort_by="count", row_limit=1, header="header")
    lines = table.splitlines()
    assert lines[1] == "header"
    assert lines[3].split()[:3] == ["Name", "Self", "CPU"]
    assert len(lines) == 8
    assert lines[-1].startswith("Self CPU time total: ")
    assert str(averages) == averages.table()
    assert str(prof) == prof.table()
    with pytest.raises(AttributeError):
        prof.table(sort_by="beauty")


# ----- torch.profiler -----

def test_a_schedule():
    from flambeau.profiler import schedule
    plan = schedule(wait=1, warmup=1, active=2, repeat=2, skip_first=1)
    assert [plan(step).value for step in range(12)] == [0, 0, 1, 2, 3, 0, 1, 2, 3, 0, 0, 0]
    with pytest.raises(AssertionError, match=r"Invalid profiler schedule arguments\. Got wait=-1"):
        schedule(wait=-1, warmup=0, active=1)
    with pytest.warns(UserWarning, match="Profiler won't be using warmup"):
        schedule(wait=0, warmup=0, active=1)


def test_complete_steps_are_passed_to_the_handler():
    from flambeau.profiler import ProfilerActivity, profile, schedule
    ready = []
    with profile(activities=[ProfilerActivity.CPU], schedule=schedule(wait=1, warmup=1, active=2, repeat=1),
                 on_trace_ready=lambda p: ready.append((p.step_num, [group.key for group in p.key_averages()],
                                                        [event.trace_name for event in p.events()]))) as prof:
        for _ in range(6):
            torch.ones(2).sin()
            prof.step()
    (step, groups, events), = ready
    assert step == 4
    assert groups == ["ProfilerStep*", "aten::ones", "aten::sin"]
    assert [name for name in events if name.startswith("Profiler")] == ["ProfilerStep#2", "ProfilerStep#3"]


def test_without_a_schedule_all_is_recorded_and_optimizers_are_named(tmp_path):
    from flambeau.profiler import profile, tensorboard_trace_handler
    weight = torch.ones(2, requires_grad=True)
    optimizer = torch.optim.SGD([weight], lr=0.1)
    with profile(on_trace_ready=tensorboard_trace_handler(str(tmp_path / "logs"))) as prof:
        weight.sum().backward()
        optimizer.step()
        prof.step()
    prof.add_metadata_json("size", "[2]")
    assert "Optimizer.step#SGD.step" in [event.name for event in prof.events()]
    file, = (tmp_path / "logs").iterdir()
    assert file.name.endswith(".pt.trace.json")
    assert json.loads(file.read_text())["traceEvents"]
    prof.export_chrome_trace(tmp_path / "own.json")
    assert json.loads((tmp_path / "own.json").read_text())["size"] == [2]
    with pytest.raises(AssertionError, match="Profiler must be initialized before getting key averages"):
        profile().key_averages()
    with pytest.raises(AssertionError, match="No valid profiler activities found"):
        profile(activities=[])


def test_names_of_traces_and_pauses():
    from flambeau.profiler import ProfilerActivity, profile
    with profile(custom_trace_id_callback=lambda: "mine") as prof:
        torch.ones(1)
        prof.toggle_collection_dynamic(False, [ProfilerActivity.CPU])
        torch.ones(1).sin()
        prof.toggle_collection_dynamic(True, [ProfilerActivity.CPU])
        torch.zeros(1)
    assert [event.name for event in prof.events()] == ["aten::ones", "aten::zeros"]
    assert prof.get_trace_id() == "mine"
    assert len(torch.autograd.profiler.profile().default_trace_id()) == 32


def test_events_of_devices(tmp_path):
    import sqlite3

    from flambeau.autograd import profiler, profiler_util
    event = profiler_util.FunctionEvent(1, "a", 2, 0, 1, metadata_json="{}")
    event.append_kernel("k", 0, 5)
    assert (event.kernels[0].duration, event.device_resource_id) == (5, 2)
    with pytest.warns(FutureWarning, match="`metadata_json` is deprecated"):
        assert event.metadata_json == "{}"
    with sqlite3.connect(tmp_path / "trace.db") as db:
        db.executescript("""
            CREATE TABLE StringTable (_id_, value);
            CREATE TABLE CUPTI_ACTIVITY_KIND_MARKER (id, name, timestamp);
            CREATE TABLE CUPTI_ACTIVITY_KIND_RUNTIME (_id_, cbid, start, end, correlationId);
            CREATE TABLE CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL (correlationId, name, start, end);
            INSERT INTO StringTable VALUES (1, 'conv'), (2, 'first');
            INSERT INTO CUPTI_ACTIVITY_KIND_MARKER VALUES (7, 1, 10), (7, 0, 20), (8, 2, 1), (8, 0, 3);
            INSERT INTO CUPTI_ACTIVITY_KIND_RUNTIME VALUES (1, 211, 12, 13, 5);
            INSERT INTO CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL VALUES (5, 'gemm', 30, 34);
        """)
    events = profiler.load_nvprof(tmp_path / "trace.db")
    assert [(e.name, [tuple(k) for k in e.kernels]) for e in events] == [("first", []), ("conv", [("gemm", 0, 4)])]


def test_steps_are_those_of_the_fastest_requester(monkeypatch):
    tracker = torch.autograd.profiler.KinetoStepTracker
    monkeypatch.setattr(tracker, "_step_dict", {})
    monkeypatch.setattr(tracker, "_current_step", 0)
    assert [tracker.increment_step(name) for name in ("a", "a", "b", "a")] == [1, 2, 3, 3]
    tracker.init_step_count("c")
    assert tracker._step_dict == {"a": 3, "b": 3, "c": 3}


def test_events_of_the_profiler_library():
    with torch.autograd.profiler.profile() as prof:
        handle = torch.ops.profiler._record_function_enter("outer")
        block = torch.ops.profiler._record_function_enter_new("inner")
        torch.relu(torch.ones(2))
        torch.ops.profiler._record_function_exit(block)
        torch.ops.profiler._record_function_exit(handle)
    outer, = [event for event in prof.function_events if event.name == "outer"]
    assert handle.dtype is torch.uint8
    assert [child.name for child in outer.cpu_children] == ["aten::empty", "inner"]
    relu = outer.cpu_children[1].cpu_children[-1]
    assert (relu.name, [child.name for child in relu.cpu_children]) == ("aten::relu", ["aten::clamp_min"])


def test_blocks_that_are_entered_again_have_the_shapes_of_their_values():
    x = torch.ones(2, 3)
    block = torch._C._profiler._RecordFunctionFast("block", [x, "text"], {"stream": 0})
    with torch.profiler.profile(record_shapes=True) as prof:
        for _ in range(2):
            with block, block:  # an event that repeats the one around it is dropped
                x.sin()
    assert [e.input_shapes for e in prof.events() if e.name == "block"] == [[[2, 3], []]] * 2
    with block:
        pass
    for arguments in ((1,), ("name", 1), ("name", [], [])):
        with pytest.raises(TypeError):
            torch._C._profiler._RecordFunctionFast(*arguments)


def test_programs_ask_whether_a_profile_is_recorded():
    kinds = torch._C._profiler.ActiveProfilerType
    assert not torch.autograd.profiler._is_profiler_enabled
    assert torch._C._autograd._profiler_type() is kinds.NONE
    with torch.autograd.profiler.profile():
        assert torch.autograd.profiler._is_profiler_enabled
        assert torch._C._autograd._profiler_type() is kinds.KINETO
    assert not torch.autograd.profiler._is_profiler_enabled


@pytest.mark.filterwarnings("ignore:The PyTorch API of nested tensors:UserWarning")
def test_nested_tensors_have_no_recorded_shape():
    with torch.profiler.profile(record_shapes=True) as prof:
        x = torch.nested.nested_tensor([torch.ones(2, 3), torch.ones(4, 3)])
        x + 1
    assert [[], []] in [e.input_shapes[:2] for e in prof.events() if e.name == "aten::add"]


def test_functions_are_themselves_after_a_profile() -> None:
    """Also those that the package looks up during the profile only."""
    script = ("import flambeau as torch\n"
              "with torch.profiler.profile() as prof: torch.rand(2)\n"
              "import flambeau._tensor.functions as functions\n"
              "assert torch.rand is functions.rand and torch.zeros is functions.zeros\n"
              "print([e.name for e in prof.events()].count('aten::rand'))")
    assert subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True).stdout == "1\n"
