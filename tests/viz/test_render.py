"""Rendering of pictures to files, with and without Graphviz's `dot`."""

from __future__ import annotations

import itertools
import shutil

import pytest

import flambeau as torch
from flambeau.viz import backward_picture, record, render
from flambeau.viz.drawing.layered import lay_out
from flambeau.viz.drawing.picture import Arrow, Box, Picture

PNG = b"\x89PNG"


def training_graph():
    model = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.ReLU(), torch.nn.Linear(8, 3))
    loss = torch.nn.functional.cross_entropy(model(torch.ones(5, 4)), torch.tensor([0, 1, 2, 0, 1]))
    return backward_picture(loss, dict(model.named_parameters()), show_saved=True)


@pytest.mark.parametrize("ending", ["png", "svg"])
@pytest.mark.parametrize("with_dot", [True, False])
def test_a_picture_becomes_a_file(tmp_path, monkeypatch, ending, with_dot):
    if with_dot and not shutil.which("dot"):
        pytest.skip("there is no dot program here")
    if not with_dot:
        monkeypatch.setattr(shutil, "which", lambda program: None)
    for name, picture in (("graph", training_graph()), ("empty", Picture()),
                          ("forward", record(lambda x: x * x.sin(), 2.).forward_picture()),
                          ("reverse", record(lambda x: x * x.sin(), 2.).reverse_picture())):
        path = render(picture, tmp_path / "new" / f"{name}.{ending}")
        content = path.read_bytes()
        assert content.startswith(PNG) if ending == "png" else b"<svg" in content


def test_a_path_without_an_ending_is_refused(tmp_path):
    with pytest.raises(ValueError, match=r"as in picture\.png"):
        render(Picture(), tmp_path / "picture")


def overlaps(layout):
    """Pairs of boxes of one rank that overlap."""
    found = []
    for rank in layout.ranks:
        for left, right in itertools.pairwise(rank):
            room = layout.across[right] - layout.across[left]
            if room < (layout.size[left][0] + layout.size[right][0]) / 2:
                found.append((left, right))
    return found


def test_nothing_overlaps_and_every_arrow_points_down():
    picture = training_graph()
    layout = lay_out(picture)
    assert not overlaps(layout)
    for arrow in picture.arrows():
        if not arrow.headless:
            assert layout.along[arrow.tail] < layout.along[arrow.head]


def test_crossings_that_can_be_avoided_are():
    pieces = [Box(key, key) for key in "abcdef"]
    picture = Picture(pieces=[*pieces, Arrow("a", "f"), Arrow("b", "e"), Arrow("c", "d")])
    layout = lay_out(picture)
    for tail, head in ("af", "be", "cd"):
        assert layout.ranks[0].index(tail) == layout.ranks[1].index(head)
        assert layout.across[tail] == pytest.approx(layout.across[head], abs=0.2)


def test_a_later_box_with_the_same_key_wins():
    picture = Picture(pieces=[Box("a", "first"), Box("a", "second", "orange")])
    assert picture.boxes() == [Box("a", "second", "orange")]
