"""Collapsed graphs by module, source line and repetition, and their drawings."""

from __future__ import annotations

import shutil
import xml.etree.ElementTree as ElementTree

import pytest

import flambeau as torch
from flambeau.viz import watching
from flambeau.viz.graph.groups import Group

SVG = "{http://www.w3.org/2000/svg}"


class Layer(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.Tanh(), torch.nn.Linear(8, 4))
        self.norm = torch.nn.LayerNorm(4)

    def forward(self, x):
        return self.norm(x + self.inner(x))


class Net(torch.nn.Module):
    def __init__(self, depth=6):
        super().__init__()
        self.layers = torch.nn.ModuleList([Layer() for _ in range(depth)])
        self.head = torch.nn.Linear(4, 2)

    def forward(self, x):
        for layer in self.layers:
            x = layer(x)
        return self.head(x)


def network(depth=6):
    model = Net(depth)
    with watching(model, values=False):
        return model(torch.ones(3, 4)).sum().graph()


def loop(times, body=lambda y: torch.tanh(y * 1.01)):
    x = y = torch.ones(2, requires_grad=True)
    for _ in range(times):
        y = body(y)
    return y.sum().graph(params={"x": x})


def titles(boxes):
    return [boxes.name(item) for item in boxes.items]


def everything(boxes):
    """The ids of all nodes that are somewhere in a collapsed graph."""
    found = [item.id for item in (*boxes.items, *boxes.leaves) if not isinstance(item, Group)]
    for group in boxes.groups():
        found += [item.id for item in (*group.items, *group.leaves) if not isinstance(item, Group)]
        found += [node.id for node in group.elided]
    return sorted(found)


@pytest.mark.parametrize("by", [None, "module", "source", "repeat"])
@pytest.mark.parametrize("graph", [network, lambda: loop(100), lambda: loop(3)], ids=["net", "loop", "small"])
def test_every_node_is_in_one_place(graph, by):
    graph = graph()
    boxes = graph.collapsed(by)
    assert everything(boxes) == list(range(len(graph)))
    for group in (None, *boxes.groups()):
        level = boxes.level(group)
        keys = {boxes.key(item) for item in level.items} | {port for port, _ in level.ports}
        assert all(link.tail in keys and link.head in keys for link in level.links)
        assert boxes.picture(group).boxes()


def test_small_graphs_are_not_collapsed():
    assert not list(loop(3).collapsed().groups())


def test_modules_become_boxes_and_those_that_repeat_one_box():
    boxes = network().collapsed()
    assert titles(boxes) == ["SumBackward0", "Net.head: Linear", "Net.layers.0 … Net.layers.5: Layer × 6"]
    repeated = boxes.items[2]
    assert boxes.name(repeated.items[0]) == "Net.layers.5.norm: LayerNorm"
    assert "in" in {port[:2] for port, _ in boxes.level(repeated).ports}


def test_loops_become_one_box():
    boxes = loop(1000).collapsed()
    assert titles(boxes) == ["SumBackward0", "mul · tanh × 1000"]
    assert [leaf.label for leaf in boxes.leaves] == ["x"]
    assert len(list(boxes.items[1].nodes())) == 2000


def test_loops_within_loops():
    def body(y):
        for _ in range(5):
            y = torch.sin(y)
        return y * 2 + 1

    boxes = loop(60, body).collapsed("repeat")
    outer = boxes.items[1]
    assert outer.count == 60
    assert [boxes.name(item) for item in outer.items] == ["AddBackward0", "MulBackward0", "SinBackward0 × 5"]


def test_long_graphs_without_repetition_are_split():
    torch.manual_seed(1)
    choices = torch.randint(0, 5, (700,)).tolist()
    functions = [torch.sin, torch.cos, torch.tanh, torch.exp, torch.sigmoid]
    y = torch.ones(1, requires_grad=True)
    for choice in choices:
        y = functions[choice](y)
    boxes = y.graph().collapsed()
    assert len(boxes) <= 41
    assert all(len(group.items) <= 40 for group in boxes.groups())
    assert everything(boxes) == list(range(701))


def test_lines_become_boxes():
    x = torch.ones(2, requires_grad=True)
    with watching(values=False):
        y = (x * 2).sin() + 1
        z = y.exp().sum()
    assert titles(z.graph().collapsed("source")) == [
        "test_collapse.py:141 z = y.exp().sum()".replace("141", str(z.graph().nodes[0].source[1])),
        "test_collapse.py:140 y = (x * 2).sin() + 1".replace("140", str(z.graph().nodes[0].source[1] - 1))]


def test_unknown_criteria_raise():
    with pytest.raises(ValueError, match="'module', 'source' or 'repeat'"):
        loop(3).collapsed("colour")


def test_a_graph_of_five_thousand_nodes_is_drawn_collapsed():
    bundle = loop(2500)._repr_mimebundle_()
    assert len(bundle["image/svg+xml"]) < 100_000
    assert len(bundle["text/plain"].splitlines()) < 10


def test_drawings_are_well_formed_and_need_no_network():
    for graph in (network(), loop(3)):
        svg = graph._repr_svg_()
        root = ElementTree.fromstring(svg)
        assert root.tag == f"{SVG}svg"
        assert svg.count("http") == svg.count("http://www.w3.org/2000/svg")
        kinds = {group.get("class").split(" ")[0] for group in root.iter(f"{SVG}g")}
        assert kinds == {"graph", "node", "edge"}
        assert graph._repr_html_().startswith("<figure")


def test_labels_are_escaped():
    x = torch.ones(2, requires_grad=True)
    graph = (x * 2).graph(params={"<b>&\"": x})
    assert "<b>" not in graph._repr_html_()
    ElementTree.fromstring(graph._repr_svg_())


def test_mime_types_can_be_chosen():
    graph = loop(2)
    assert set(graph._repr_mimebundle_(include=["text/plain"])) == {"text/plain"}
    assert "text/html" not in graph._repr_mimebundle_(exclude=["text/html"])


def test_collapsed_graphs_as_dictionaries():
    found = loop(100).collapsed().to_dict()
    box = found["items"][1]
    assert (box["kind"], box["count"], len(box["elided"])) == ("repeat", 100, 198)


@pytest.fixture(scope="module")
def page():
    playwright = pytest.importorskip("playwright.sync_api")
    program = shutil.which("chromium") or shutil.which("google-chrome")
    if program is None:
        pytest.skip("there is no browser here")
    with playwright.sync_playwright() as started:
        browser = started.chromium.launch(executable_path=program, args=["--no-sandbox"])
        yield browser.new_page()
        browser.close()


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["html", "svg"])
def test_boxes_open_and_close_in_a_browser(page, tmp_path, kind):
    errors, requests = [], []
    page.on("pageerror", lambda error: errors.append(str(error)))
    page.on("request", lambda request: requests.append(request.url))
    graph = network()
    path = tmp_path / f"graph.{kind}"
    path.write_text(graph._repr_html_() if kind == "html" else graph._repr_svg_(), encoding="utf-8")
    page.goto(path.as_uri())
    closed = page.locator("g.node").count()
    box = page.locator("g.box").last
    box.locator("text").first.click()
    opened = page.locator("g.node").count()
    assert opened > closed
    overlaps = page.evaluate("""() => {
        const shown = [...document.querySelectorAll('g.graph > g.node > rect')].map(r => r.getBoundingClientRect());
        return shown.flatMap((a, i) => shown.slice(i + 1).filter(b => a.left < b.right - 1 && b.left < a.right - 1 &&
            a.top < b.bottom - 1 && b.top < a.bottom - 1)).length;
    }""")
    assert overlaps == 0
    page.keyboard.press("Enter")  # the box has the focus
    assert page.locator("g.node").count() == closed
    assert errors == []
    assert requests == [path.as_uri()]
