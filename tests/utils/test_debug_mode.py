"""`torch.utils._debug_mode`: logs of operators, modules and hashes are PyTorch's."""

from __future__ import annotations

import importlib

import pytest

import flambeau

torch = pytest.importorskip("torch")


def both(program, **options):
    """What a program, given a library and its mode, leaves in the log of each library."""
    logs = []
    for library in (flambeau, torch):
        debug_mode = importlib.import_module(f"{library.__name__}.utils._debug_mode")
        with debug_mode.DebugMode(**options) as mode:
            assert debug_mode.get_active_debug_mode() is mode
            program(library, debug_mode.DebugMode)
        assert debug_mode.get_active_debug_mode() is None
        logs.append(mode)
    return logs


def step(library, _):
    x = library.ones(2, 3, requires_grad=True)
    values, _ = (x @ x.T + library.arange(2)).topk(1)
    library.cat([values.exp(), library.ones(1, 1)]).add_(1).sum(dim=0)


@pytest.mark.parametrize("options", [{}, {"record_output": False}])
def test_operators(options):
    ours, theirs = both(step, **options)
    assert ours.debug_string() == theirs.debug_string()
    assert len(ours.operators) == len(theirs.operators)


def test_tensors_are_numbered_and_attributes_shown():
    def program(library, _):
        x = library.ones(2)
        (x + x).exp().mul_(x)

    ours, theirs = both(program, record_ids=True, record_tensor_attributes=["requires_grad", "is_leaf", "no_such"])
    assert ours.debug_string() == theirs.debug_string()


def test_modules_and_lines():
    def program(library, _):
        library.nn.Sequential(library.nn.Linear(2, 2), library.nn.ReLU())(library.ones(1, 2))
        library.ones(2)

    ours, theirs = both(program, record_nn_module=True, record_stack_trace=True)
    assert ours.debug_string() == theirs.debug_string()
    assert ours.debug_string(show_stack_trace=False) == theirs.debug_string(show_stack_trace=False)


def test_functions_stand_above_their_operators():
    def program(library, _):
        library.split(library.ones(4), 2)[0] + 1

    ours, theirs = both(program, record_torchfunction=True)
    assert [call.call_depth for call in ours.logs] == [call.call_depth for call in theirs.logs]
    assert [call.args_str for call in ours.logs] == [call.args_str for call in theirs.logs]


def test_hashes_and_hooks():
    def program(scale):
        def run(library, mode):
            with mode.log_tensor_hashes(hash_inputs=True), mode.record_outputs():
                (library.arange(4.0) * scale).topk(2)
        return run

    first, second = (both(program(scale)) for scale in (1, 2))
    assert first[0].debug_string() == first[1].debug_string()
    for inputs in (False, True):
        found = [type(a).check_hash_mismatches(a.logs, b.logs, compare_inputs=inputs)
                 for a, b in zip(first, second, strict=True)]
        assert found[0] == found[1] != []
    assert first[0].logs[0].record["output"].tolist() == [0.0, 1.0, 2.0, 3.0]
    with pytest.raises(ValueError, match=r"Log lengths don't match: 3 vs 1"):
        type(first[0]).check_hash_mismatches(first[0].logs, second[0].logs[:1])


def test_operators_of_fake_tensors_are_logged_on_request():
    def program(library, _):
        library.ones(2) + 1

    fake = importlib.import_module("flambeau._subclasses.fake_tensor")
    with fake.FakeTensorMode(), flambeau.utils._debug_mode.DebugMode(record_faketensor=True) as mode:
        program(flambeau, None)
    assert "ft: f32[2]" in mode.debug_string()
    assert both(program, record_realtensor=False)[0].logs == []
