"""`torch.monitor.Stat` compared with PyTorch: windows by number and by time, and what is logged."""

from __future__ import annotations

import time
from datetime import timedelta

from tests.autograd.differential import same


def test_windows():
    def program(torch):
        monitor, events, seen = torch.monitor, [], []
        kinds = monitor.Aggregation
        handle = monitor.register_event_handler(lambda event: events.append((event.name, sorted(event.data.items()))))

        def note(stat):
            seen.append((stat.count, sorted((str(kind), value) for kind, value in stat.get().items())))

        stat = monitor.Stat("a", (kinds.SUM, kinds.COUNT, kinds.MEAN, kinds.MAX, kinds.MIN, kinds.VALUE),
                            timedelta(hours=1000), 3)
        for value in (5, 1, 3, 7, 8):  # the last two are dropped
            stat.add(value)
            note(stat)
        stat = monitor.Stat("b", (kinds.SUM, kinds.COUNT), timedelta(milliseconds=20))
        while stat.count < 2:
            stat.add(1)
        time.sleep(0.05)
        stat.add(3)
        note(stat)
        del stat
        monitor.unregister_event_handler(handle)
        return seen[:5], seen[5][0], events[0], events[-2:]

    same(program)
