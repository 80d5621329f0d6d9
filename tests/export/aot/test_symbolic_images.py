"""Images and sequences of symbolic sizes: rounded sizes, tables that depend on sizes, and hostile calls."""

from __future__ import annotations

import subprocess
import threading
from fractions import Fraction

import numpy as np
import pytest

import flambeau as torch
from flambeau import nn
from flambeau.codegen.pooling.plan import AdaptiveWindows, RegularWindows
from flambeau.export import Dim, export
from flambeau.export.aot.sizes.formulas import (
    FormulaSearch,
    MissingCombination,
    Product,
    SizeFormula,
    evaluate,
    extended,
)
from flambeau.ir.schedule.memory_planner import LiveRange, assign_offsets
from flambeau.nn import functional as F
from flambeau.runtime.symbolic_integers import PlannedSizes, SymbolicInteger
from tests.export.aot.results import agree, eager
from tests.export.aot.test_symbolic_sizes import Library


class Segmentation(nn.Module):
    """Strides, pooling with padding, adaptive pooling, a mean over all pixels, and tables of a resampling."""

    def __init__(self) -> None:
        super().__init__()
        self.down, self.norm = nn.Conv2d(3, 8, 3, 2, 1), nn.BatchNorm2d(8)
        self.last = nn.Conv2d(8, 2, 1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = F.max_pool2d(F.relu(self.norm(self.down(x))), 3, 2, 1)
        y = y + F.adaptive_avg_pool2d(x.mean(1, keepdim=True), (1, 1)) + y.mean((2, 3), keepdim=True)
        return F.interpolate(self.last(y), size=x.shape[-2:], mode="bilinear")


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    torch.manual_seed(0)
    module = Segmentation().eval()
    sizes = {2: Dim("h", min=9, max=17), 3: Dim("w", min=9, max=17)}
    folder = tmp_path_factory.mktemp("images")
    program = export(module, (torch.randn(1, 3, 12, 15),), dynamic_shapes=(sizes,))
    report = program.save(folder / "net.so", target="native")
    return module, folder / "net.so", report


def test_every_height_and_width(built):
    module, path, report = built
    assert len(report.arenas) == 81
    library = Library(path)
    for h in range(9, 18):
        for w in range(9, 18):
            x = torch.randn(1, 3, h, w)
            expected = eager(module, (x,))
            y = np.zeros_like(expected[0])
            assert library((h, w), x.numpy(), y) == 0
            agree([y], expected)


class Pyramid(nn.Module):
    """Images of a half, a quarter and an eighth, where the smallest sizes become one pixel."""

    def __init__(self) -> None:
        super().__init__()
        self.down = nn.ModuleList(nn.Conv2d(n, 4, 3, 2, 1) for n in (3, 4, 4))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        found = []
        for each in self.down:
            x = F.relu(each(x))
            found.append(x)
        return found[1] + F.interpolate(found[2], size=found[1].shape[-2:])


def test_sizes_for_which_images_become_one_pixel(tmp_path):
    torch.manual_seed(1)
    module = Pyramid().eval()
    shapes = ({2: Dim("h", min=8, max=12), 3: Dim("w", min=8, max=12)},)
    export(module, (torch.randn(1, 3, 11, 9),), dynamic_shapes=shapes).save(tmp_path / "net.so", target="native")
    library = Library(tmp_path / "net.so")
    for h in range(8, 13):
        for w in range(8, 13):
            x = torch.randn(1, 3, h, w)
            expected = eager(module, (x,))
            y = np.zeros_like(expected[0])
            assert library((h, w), x.numpy(), y) == 0
            agree([y], expected)


def test_hostile_calls_are_statuses(built):
    import ctypes

    _, path, _ = built
    library = ctypes.CDLL(str(path))
    size = library.net_arena_size
    size.restype, size.argtypes = ctypes.c_size_t, [ctypes.c_int64] * 2
    assert [size(*each) for each in ((8, 9), (9, 18), (0, 0), (-1, 9), (2**62, 2**62))] == [0] * 5
    x, y = np.zeros((1, 3, 9, 10), np.float32), np.zeros((1, 2, 9, 10), np.float32)
    arena = np.zeros(size(9, 10), np.uint8)

    def run(h, w, a, b, memory=arena.ctypes.data, count=arena.nbytes):
        pointers = [ctypes.c_void_p(each) for each in (a, b, memory)]
        return library.net_run(ctypes.c_int64(h), ctypes.c_int64(w), *pointers, ctypes.c_size_t(count))

    a, b = x.ctypes.data, y.ctypes.data
    assert run(9, 10, a, b) == 0
    assert [run(9, 10, None, b), run(9, 10, a, None), run(9, 10, a, b, None)] == [1, 1, 1]
    assert [run(9, 10, a + 2, b), run(9, 10, a, b + 1)] == [2, 2]
    assert [run(8, 10, a, b), run(9, 2**40, a, b), run(-9, 10, a, b)] == [3, 3, 3]
    assert [run(9, 10, a, b, count=arena.nbytes - 1), run(9, 10, a, b, count=0)] == [4, 4]


def test_threads_with_different_sizes_share_a_model(built):
    module, path, _ = built
    failures = []

    def work(h: int, w: int) -> None:
        library, x = Library(path), torch.randn(1, 3, h, w)
        expected = eager(module, (x,))[0]
        for _ in range(20):
            y = np.zeros_like(expected)
            if library((h, w), x.numpy(), y) or np.abs(y - expected).max() > 1e-5:
                failures.append((h, w))

    threads = [threading.Thread(target=work, args=sizes) for sizes in ((9, 17), (16, 10))]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert failures == []


@pytest.mark.parametrize("command", [("cc", "-std=c99"), ("c++", "-std=c++11", "-x", "c++")])
def test_the_header_has_no_warnings(command, built, tmp_path):
    source = tmp_path / "use.c"
    header = built[1].with_suffix(".h")
    source.write_text(f'#include "{header}"\nint main(void) {{ return (int)net_arena_size(9, 9); }}\n')
    flags = ["-Wall", "-Wextra", "-Werror", "-pedantic", "-c", str(source), "-o", str(tmp_path / "use.o")]
    subprocess.run([*command, *flags], check=True)


def test_a_rounded_size_of_a_result_is_in_the_header(tmp_path):
    module = nn.Conv2d(1, 1, 3, 2)
    shapes = ({2: Dim("h", min=5, max=12)},)
    report = export(module, (torch.ones(1, 1, 7, 5),), dynamic_shapes=shapes).save(tmp_path / "net.so", target="native")
    (derived,) = report.interface.derived
    assert [derived.value({"h": h}) for h in range(5, 13)] == [(h - 3) // 2 + 1 for h in range(5, 13)]
    assert str(derived) in (tmp_path / "net.h").read_text()


def test_a_formula_that_is_not_known_asks_for_a_combination():
    combinations = [(n,) for n in range(4, 41)]
    with pytest.raises(MissingCombination) as error:  # rounded down, or to the nearest
        FormulaSearch(combinations, [(9,), (14,), (21,)]).formula([2, 3, 5])
    assert error.value.combination in combinations


def test_sums_of_products_are_formulas():
    probes = [(37, 31), (29, 23), (4, 5), (40, 39), (11, 17), (8, 40)]
    search = FormulaSearch([(h, w) for h in range(4, 41) for w in range(4, 41)], probes)
    functions = (lambda h, w: (h + 1) // 2, lambda h, w: (w + 1) // 2, lambda h, w: h * w,
                 lambda h, w: h * w + ((h + 1) // 2) * 3)
    for function in functions:
        formula = search.formula([function(*each) for each in probes])
        for sizes in ((7, 9), (40, 4)):
            assert evaluate(formula, extended(sizes, search.derived)) == function(*sizes)
    assert evaluate(SizeFormula((Product(Fraction(1, 2), (0,)),)), [6]) == 3


def test_windows_of_symbolic_lengths_are_those_of_each_length():
    lengths = np.arange(7, 20)
    for k in range(len(lengths)):
        sizes = PlannedSizes([lengths], k)
        (n,) = sizes.symbols()
        for kernel, stride, padding, step in ((2, 2, 0, 1), (3, 2, 1, 1), (3, 1, 1, 2)):
            number = (n + 2 * padding - step * (kernel - 1) - 1) // stride + 1
            mine = RegularWindows(n, number, kernel, stride, padding, step, False)
            for i, length in enumerate(lengths):
                count = (int(length) + 2 * padding - step * (kernel - 1) - 1) // stride + 1
                plain = RegularWindows(int(length), count, kernel, stride, padding, step, False)
                for name in ("starts", "counts", "divisors", "ends"):
                    values = [int(x.values[i]) if isinstance(x, SymbolicInteger) else x for x in getattr(mine, name)]
                    assert values[:count] == [*getattr(plain, name)], name
        adaptive = AdaptiveWindows(n, 3)
        assert [int(x.values[0]) for x in adaptive.counts] == [*AdaptiveWindows(7, 3).counts]
        assert sizes.served.all()


def test_symbolic_buffers_do_not_overlap_for_any_size():
    sizes = PlannedSizes([np.arange(1, 30)], 20)
    (n,) = sizes.symbols()
    ranges = [LiveRange(0, 2, n * 64), LiveRange(1, 3, 640), LiveRange(3, 4, n * n * 8), LiveRange(2, 4, n * 128)]
    offsets, arena = assign_offsets(ranges)
    assert sizes.served.all()

    def at(x, k):
        return int(x.values[k]) if isinstance(x, SymbolicInteger) else x

    for k in range(29):
        for i, a in enumerate(ranges):
            assert at(offsets[i], k) + at(a.size, k) <= at(arena, k)
            for j, b in enumerate(ranges[:i]):
                if a.first <= b.last and b.first <= a.last:
                    low, high = sorted(((at(offsets[i], k), at(a.size, k)), (at(offsets[j], k), at(b.size, k))))
                    assert low[0] + low[1] <= high[0]
