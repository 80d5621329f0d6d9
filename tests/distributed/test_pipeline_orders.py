"""Orders of pipelines: their texts, PyTorch's own orders, bubbles, and orders that never end."""

from __future__ import annotations

import pytest

from flambeau.distributed.pipelining import orders
from flambeau.distributed.pipelining.actions import _Action
from flambeau.distributed.pipelining.simulation import bubble, simulate

ORDERS = {
    "ScheduleGPipe": (1, orders.gpipe),
    "Schedule1F1B": (1, orders.one_forward_one_backward),
    "ScheduleLoopedBFS": (3, lambda ranks, n: orders.looped_breadth_first(ranks, 3, n)),
    "ScheduleInterleaved1F1B": (2, lambda ranks, n: orders.interleaved(ranks, 2, n)),
    "ScheduleInterleavedZeroBubble": (2, lambda ranks, n: orders.interleaved(ranks, 2, n, zero_bubble=True)),
    "ScheduleZBVZeroBubble": (2, orders.zero_bubble_v),
    "ScheduleDualPipeV": (2, orders.dual_pipe_v),
}


@pytest.mark.parametrize("text", ["2F0", "1UNSHARD", "3SEND_F1", "0B12", "(0F1;3B0)OVERLAP_F_B"])
def test_texts_of_actions(text):
    action = _Action.from_str(text)
    assert str(action) == text
    assert _Action.from_str(f" {text} ") == action


def test_texts_that_are_no_actions():
    assert _Action.from_str(" ") is None
    with pytest.raises(RuntimeError, match="Invalid action string: 1X3"):
        _Action.from_str("1X3")


@pytest.mark.parity
@pytest.mark.parametrize("name", ORDERS)
def test_orders_are_those_of_pytorch(name):
    pytest.importorskip("torch")
    from torch.distributed.pipelining import schedules
    from torch.distributed.pipelining.stage import _PipelineStageBase

    class Stage(_PipelineStageBase):
        def __init__(self, num_stages, group_size):
            self.num_stages, self.group_size, self.group_rank, self.stage_index = num_stages, group_size, 0, 0
            self.group = self.submod = None

        _create_grad_recv_info = _prepare_forward_infra = _prepare_backward_infra = None

    local, make = ORDERS[name]
    for ranks in (1, 2, 4, 8):
        for microbatches in (1, 2, 3, 8, 16):
            stages = [Stage(ranks * local, ranks) for _ in range(local)]
            try:
                theirs = getattr(schedules, name)(stages[0] if local == 1 else stages, microbatches).pipeline_order
            except ValueError:  # not a number of microbatches that the schedule takes
                continue
            ours = make(ranks, microbatches)
            assert simulate(ours)
            for rank in range(ranks):
                if name == "Schedule1F1B" and rank == ranks - 1:
                    continue  # PyTorch's list, which it does not run, begins with microbatch 1
                expected = [str(each) for each in theirs[rank] if each is not None and "REDUCE" not in str(each)]
                assert list(map(str, ours[rank])) == expected, (ranks, microbatches, rank)


def test_bubbles():
    assert bubble(simulate(orders.gpipe(4, 12))) == pytest.approx(3 / 15)
    assert bubble(simulate(orders.one_forward_one_backward(4, 12))) == pytest.approx(3 / 15)
    assert bubble(simulate(orders.interleaved(4, 2, 12))) == pytest.approx(3 / (2 * 12 + 3))
    # passes as long as gradients of inputs and of weights: at the ends only
    assert bubble(simulate(orders.zero_bubble_v(4, 12))) < bubble(simulate(orders.interleaved(4, 2, 12)))
    assert bubble(simulate(orders.gpipe(1, 3))) == 0


def test_messages_delay_stages():
    spans = simulate(orders.gpipe(2, 1), message=0.5)
    assert [span.start for span in spans[1]] == [1.5, 2.5]
    assert spans[0][1].start == 5


def test_an_order_that_never_ends():
    order = orders.gpipe(2, 2)
    order[1].reverse()
    with pytest.raises(RuntimeError, match=r"never ends: rank 0 at 0B0, rank 1 at 1B1 wait"):
        simulate(order)
    with pytest.raises(ValueError, match="num_stages 5 must be evenly divisible by pp_size 2 for loop style"):
        orders.generate_stage_to_rank_mapping(2, 5)
    assert orders.generate_stage_to_rank_mapping(2, 4, "v") == {0: 0, 1: 1, 2: 1, 3: 0}
