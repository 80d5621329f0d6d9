"""The explorer in a headless browser, by mouse and by keyboard."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import textwrap
from importlib import resources

import pytest

import flambeau as torch
from flambeau import nn, viz
from flambeau.viz.explorer.document import document_of, in_order_of_use, recorded_document, recorded_steps
from flambeau.viz.explorer.page import page_text
from flambeau.viz.explorer.probe import probe
from flambeau.viz.graph.recording import watching

READY = "html[data-ready=true]"
SLIDE = "(slider, to) => { slider.value = to; slider.dispatchEvent(new Event('input')); }"


class Reader(nn.Module):
    """Reads a sequence as long as it happens to be."""

    def __init__(self):
        super().__init__()
        self.embed = nn.Linear(3, 8)
        self.cell = nn.Linear(16, 8)
        self.head = nn.Sequential(nn.Linear(8, 6), nn.ReLU(), nn.Linear(6, 1))

    def forward(self, words):
        h = torch.zeros(words.shape[1], 8)
        for x in words:
            e = torch.tanh(self.embed(x))
            h = torch.tanh(self.cell(torch.cat([e, h], 1)))
        return self.head(h)


def trained(lengths):
    torch.manual_seed(6)
    model = Reader()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with watching(model) as watch:
        for length in lengths:
            words = torch.randn(length, 5, 3)
            loss = (model(words) - words.sum((0, 2)).unsqueeze(1)).pow(2).mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    return watch


def long_chain(turns):
    x = torch.linspace(-1, 1, 4).requires_grad_()
    w = torch.ones(4, requires_grad=True)
    with watching() as watch:
        y = skip = x
        for i in range(turns):
            z = torch.sin(y * w)
            y = z + 0.1 * y
            if i % 7 == 0:
                y, skip = y + skip, z
        y.sum().backward()
    return watch


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("explorer")


@pytest.fixture(scope="module")
def training_page(folder):
    return viz.explore(trained([2, 3, 3, 1]), path=folder / "training.html", open_browser=False)


@pytest.fixture(scope="module")
def large_page(folder):
    return viz.explore(long_chain(2_500), path=folder / "large.html", open_browser=False)


@pytest.fixture
def opened(browser):
    """Open a page file; at the end of the test nothing may have been fetched or complained of."""
    faults, contexts = [], []

    def open_file(path, **options):
        options = {"viewport": {"width": 1280, "height": 800}, "reduced_motion": "reduce", **options}
        context = browser.new_context(**options)
        contexts.append(context)
        page = context.new_page()
        page.on("console", lambda message: faults.append(f"console: {message.text}"))
        page.on("pageerror", lambda error: faults.append(f"error: {error}"))
        page.on("request", lambda request: faults.append(f"request: {request.url}")
                if not request.url.startswith((path.as_uri(), "data:", "blob:")) else None)
        page.goto(path.as_uri())
        page.wait_for_selector(READY)
        return page

    yield open_file
    for context in contexts:
        context.close()
    assert not faults


def settle(page, condition, patience=10_000):
    """Wait until an expression of the page is true; the page forbids what Playwright would wait with."""
    for _ in range(patience // 20):
        if page.evaluate(condition):
            return
        page.wait_for_timeout(20)
    raise AssertionError(f"it never came true: {condition}")


def shown(page, title):
    """The place on the screen of the first box with that title."""
    return page.evaluate("""title => {
        const { scene, camera } = flambeau, box = scene.items.find((b) => b.title === title && !b.ghost);
        const [x, y] = camera.toScreen(box.x, box.type === "open" ? box.y - box.h / 2 + 10 : box.y);
        const edge = document.getElementById("graph").getBoundingClientRect();
        return [edge.left + x, edge.top + y];
    }""", title)


def titles(page):
    return page.evaluate("flambeau.scene.items.map((box) => box.title)")


# ----- in the browser -----

def test_the_initial_view_shows_the_entire_graph(opened, training_page):
    page = opened(training_page)
    assert page.locator("h1").inner_text()
    assert "Reader" in titles(page)
    assert page.locator("#list .item").count() > 5
    assert page.get_by_role("listbox").get_attribute("aria-label")
    inside = page.evaluate("""(() => { const { scene, camera } = flambeau;
        const [l, u] = camera.toScreen(0, 0), [r, b] = camera.toScreen(scene.width, scene.height);
        return l >= 0 && u >= 0 && r <= camera.width && b <= camera.height; })()""")
    assert inside
    drawn = page.evaluate("""(() => {
        const c = document.getElementById("graph"), { data } = c.getContext("2d").getImageData(0, 0, c.width, c.height);
        return new Set(new Uint32Array(data.buffer)).size;
    })()""")
    assert drawn > 10  # colours: it is no empty canvas


def test_boxes_do_not_overlap(opened, training_page):
    page = opened(training_page)
    for keys in ("Shift+E", "1", "3", "Shift+E"):
        page.keyboard.press(keys)
        page.wait_for_timeout(150)
        overlaps = page.evaluate("""(() => {
            const { items } = flambeau.scene, found = [];
            const off = (a, b) => [Math.abs(a.x - b.x), Math.abs(a.y - b.y)];
            for (const a of items) {
                for (const b of items) {
                    const [x, y] = off(a, b);
                    if (a.at < b.at && a.up === b.up && x < (a.w + b.w) / 2 - 0.01 && y < (a.h + b.h) / 2 - 0.01) {
                        found.push([a.title, b.title]);
                    }
                }
                const [x, y] = off(a, a.up);
                if (a.up.id && (x > (a.up.w - a.w) / 2 || y > (a.up.h - a.h) / 2)) found.push([a.title]);
            }
            return found;
        })()""")
        assert overlaps == []


def test_a_click_shows_all_of_a_node(opened, training_page):
    page = opened(training_page)
    page.keyboard.press("Shift+E")
    settle(page, "flambeau.scene.items.some((b) => b.title === 'relu')")
    page.mouse.click(*shown(page, "relu"))
    panel = page.locator("#panel")
    text = panel.inner_text()
    for expected in ("relu", "ReluBackward0", "Formula", "return self.head(h)", "Reader.head.1", "(5, 6)", "float32",
                     "result", "120 B", "Value", "Adjoint", "Saved for backward", "Inputs", "Used by", "addmm"):
        assert expected in text, expected
    assert re.search(r"test_explorer\.py, line \d+", text)
    assert panel.locator("svg.histogram").count() == 2
    panel.get_by_role("button", name="addmm").first.click()
    assert page.locator("#panel h2").inner_text() == "addmm"
    assert page.evaluate("flambeau.selected.node.kind.operator") == "addmm"


def test_groups_open_and_close(opened, training_page):
    page = opened(training_page)
    page.keyboard.press("Shift+C")
    settle(page, "flambeau.scene.items.some((b) => b.type === 'closed' && b.title === 'Reader')")
    few = len(titles(page))
    page.mouse.dblclick(*shown(page, "Reader"))
    settle(page, "flambeau.scene.items.some((b) => b.type === 'open' && b.title === 'Reader')")
    assert len(titles(page)) > few
    page.keyboard.press("c")
    settle(page, "flambeau.scene.items.some((b) => b.type === 'closed' && b.title === 'Reader')")
    page.get_by_role("radio", name="Source line").click()
    settle(page, "flambeau.scene.by === 'source'")
    assert "e = torch.tanh(self.embed(x))" in titles(page)
    page.get_by_role("button", name="Expand", exact=True).click()
    settle(page, "flambeau.scene.items.every((b) => b.type !== 'closed')")
    page.get_by_role("radio", name="Flat").click()
    settle(page, "flambeau.scene.by === 'none' && flambeau.scene.items.every((b) => b.type === 'node')")


def test_the_passes_play_forward_and_back(opened, training_page):
    page = opened(training_page)
    page.click("#on")
    assert "forward" in page.locator("#event-name").inner_text()
    assert page.evaluate("flambeau.moment") == 1
    dim = page.evaluate("flambeau.step.nodes.filter((n) => !flambeau.player.stateOf(n, 1).done).length")
    assert dim > 5
    turning = page.evaluate("flambeau.step.turning")
    page.locator("#moment").evaluate(SLIDE, turning + 1)
    assert "backward" in page.locator("#event-name").inner_text()
    assert "adjoint 1" in page.locator("#event-words").inner_text()
    held = page.evaluate("flambeau.step.memory[flambeau.moment]")
    assert held > 0
    for _ in range(3):
        page.click("#back")
    assert page.evaluate("flambeau.moment") == turning - 2
    page.click("#to-end")
    assert page.evaluate("flambeau.step.memory[flambeau.moment]") == 0  # all buffers were freed
    kinds = page.evaluate("[...new Set(flambeau.step.events.map((e) => e.code))]")
    assert sorted(kinds) == [0, 1, 2, 3]
    at = page.evaluate("flambeau.step.events.findIndex((e) => e.code === 2) + 1")
    page.evaluate("k => flambeau.player.go(k)", at)
    assert ".grad is now" in page.locator("#event-words").inner_text()
    page.evaluate("flambeau.selectNode(flambeau.step.events[flambeau.moment - 1].node)")
    settle(page, "flambeau.selected.type === 'node'")
    assert ".grad, accumulated" in page.locator("#panel").inner_text()
    page.click("#rest")
    assert page.evaluate("flambeau.moment") is None


def test_it_plays_by_itself_and_stops(opened, training_page):
    page = opened(training_page)
    page.select_option("#speed", "10")
    page.click("#play")
    settle(page, "flambeau.moment > 5")
    assert page.get_by_role("button", name="Pause").count() == 1
    page.click("#play")
    at = page.evaluate("flambeau.moment")
    page.wait_for_timeout(250)
    assert page.evaluate("flambeau.moment") == at


def test_search_finds_by_name_operator_module_line_shape_and_dtype(opened, training_page):
    page = opened(training_page)
    for query, operator in (("op:tanh", "tanh"), ("shape:5x16", "cat"), ("TanhBackward", "tanh"),
                            ("module:Reader.head.1", "relu"), ("(5, 16)", "cat"), ("cell.weight", "leaf"),
                            ("head dtype:float32 op:addmm", "addmm")):
        page.fill("#search", query)
        # as soon as the page has looked: no two queries that follow each other find the same
        settle(page, f"[...new Set([...flambeau.strong].map((n) => n.kind.operator))].join() === '{operator}'")
    page.fill("#search", "cat([e, h]")
    settle(page, "flambeau.terms.some(([, word]) => word.startsWith('cat('))")
    assert page.evaluate("[...flambeau.matches].every((n) => n.kind.code.includes('cat([e, h]'))")
    page.fill("#search", "op:relu")
    page.keyboard.press("Enter")
    settle(page, "flambeau.selected?.node?.kind.operator === 'relu'")  # its groups opened
    page.keyboard.press("Escape")
    assert page.evaluate("flambeau.matches") is None
    page.fill("#search", "no such thing")
    settle(page, "document.querySelector('#count').innerText.startsWith('0 of')")


def test_steps_of_training_show_what_changed(opened, training_page):
    page = opened(training_page)
    assert page.locator("#step-name").inner_text() == "step 1 of 4"
    page.click("#step-on")
    settle(page, "flambeau.step.at === 1 && flambeau.change.added.size > 0")
    assert re.fullmatch(r"\+\d+ nodes", page.locator("#step-change").inner_text().strip())
    settle(page, "flambeau.scene.items.some((b) => b.isNew)")
    page.keyboard.press("]")
    settle(page, "flambeau.step.at === 2")
    settle(page, "document.getElementById('step-change').innerText.trim() === 'same as before'")
    page.keyboard.press("]")
    settle(page, "flambeau.step.at === 3")
    page.keyboard.press("1")
    settle(page, "flambeau.scene.items.some((b) => b.ghost)")
    assert re.fullmatch(r"−\d+ nodes", page.locator("#step-change").inner_text().strip())
    page.uncheck("#ghosts")
    settle(page, "flambeau.scene.items.every((b) => !b.ghost)")
    page.locator("#steps").evaluate(SLIDE, 0)
    settle(page, "flambeau.step.at === 0")


def test_the_keyboard_is_sufficient(opened, training_page):
    page = opened(training_page)
    keys = page.keyboard
    keys.press("?")
    assert page.locator("#help").is_visible()
    keys.press("Escape")
    assert not page.locator("#help").is_visible()
    keys.press("1")
    settle(page, "flambeau.scene.by === 'none'")
    keys.press("g")
    keys.press("ArrowUp")  # begins at the result
    assert page.evaluate("flambeau.selected.node.kind.operator") == "mean"
    keys.press("ArrowUp")
    assert page.evaluate("flambeau.selected.node.kind.operator") == "pow"
    assert "pow" in page.locator("#announce").inner_text()
    keys.press("ArrowDown")
    assert page.evaluate("flambeau.selected.node.kind.operator") == "mean"
    keys.press("Enter")
    assert page.evaluate("document.activeElement.id") == "panel"
    keys.press("Escape")
    assert page.evaluate("document.activeElement.id") == "graph"
    keys.press("Escape")
    assert page.evaluate("flambeau.selected") is None
    keys.press("Shift+ArrowRight")
    keys.press(".")
    assert page.evaluate("flambeau.moment") == 2
    keys.press(",")
    assert page.evaluate("flambeau.moment") == 1
    keys.press("End")
    assert page.evaluate("flambeau.moment === flambeau.player.last")
    keys.press("Home")
    keys.press("Space")
    settle(page, "flambeau.moment > 0")
    keys.press("Space")
    assert not page.evaluate("flambeau.player.playing")
    keys.press("/")
    assert page.evaluate("document.activeElement.id") == "search"
    keys.type("relu")
    keys.press("Enter")
    settle(page, "flambeau.selected && flambeau.selected.node.kind.operator === 'relu'")
    keys.press("ArrowDown")
    assert page.evaluate("document.activeElement.id") == "list"
    keys.press("End")
    keys.press("Escape")
    scale = page.evaluate("flambeau.camera.scale")
    keys.press("+")
    assert page.evaluate("flambeau.camera.scale") > scale
    keys.press("f")
    keys.press("2")
    settle(page, "flambeau.scene.by === 'module'")
    keys.press("Shift+C")
    settle(page, "flambeau.scene.items.some((b) => b.type === 'closed')")
    keys.press("g")
    for _ in range(4):
        keys.press("ArrowUp")
        if page.evaluate("flambeau.selected && flambeau.selected.type") == "closed":
            break
    keys.press("Enter")
    settle(page, "flambeau.scene.items.some((b) => b.type === 'open')")


def test_every_control_is_reached_by_tab_and_has_a_name(opened, training_page):
    page = opened(training_page)
    met = set()
    for _ in range(60):
        page.keyboard.press("Tab")
        met.add(page.evaluate("document.activeElement.id || document.activeElement.innerText"))
    assert {"search", "sort", "list", "graph", "play", "moment", "steps", "ghosts", "speed", "theme", "help-button",
            "fit"} <= met
    nameless = page.evaluate("""[...document.querySelectorAll("button, input, select, [role]")].filter((e) =>
        e.checkVisibility() && !["announce", "count"].includes(e.id) &&
        !(e.getAttribute("aria-label") || e.innerText.trim() || e.closest("label") || e.title)).map((e) => e.id)""")
    assert nameless == []


def test_wheel_drag_and_pinch(opened, training_page):
    page = opened(training_page)
    page.mouse.move(620, 330)
    before = page.evaluate("[flambeau.camera.scale, flambeau.camera.x, ...flambeau.camera.toScene(620 - 264, 330)]")
    page.mouse.wheel(0, -120)
    settle(page, f"flambeau.camera.scale > {before[0]}")
    under = page.evaluate("flambeau.camera.toScene(620 - 264, 330)")
    assert abs(under[0] - before[2]) < 1  # what is under the pointer stays there
    page.mouse.move(300, 700)
    page.mouse.down()
    page.mouse.move(400, 650, steps=4)
    page.mouse.up()
    moved = page.evaluate("flambeau.camera.x")
    assert moved != before[1]
    scale = page.evaluate("flambeau.camera.scale")
    page.evaluate("""(() => { const c = document.getElementById("graph"), box = c.getBoundingClientRect();
        c.setPointerCapture = () => {};
        const fire = (type, pointerId, x, y) => c.dispatchEvent(new PointerEvent(type, {
            pointerId, pointerType: "touch", clientX: box.left + x, clientY: box.top + y, bubbles: true }));
        fire("pointerdown", 11, 300, 300); fire("pointerdown", 12, 400, 300); fire("pointermove", 12, 410, 300);
        fire("pointermove", 12, 600, 300); fire("pointerup", 11, 300, 300); fire("pointerup", 12, 600, 300); })()""")
    assert page.evaluate("flambeau.camera.scale") > 1.5 * scale


def test_light_and_dark(opened, training_page):
    ground = "getComputedStyle(document.documentElement).getPropertyValue('--ground').trim()"
    light, dark = opened(training_page), opened(training_page, color_scheme="dark")
    assert light.evaluate(ground) == "#f5f6f8"
    assert dark.evaluate(ground) == "#12151a"
    corner = """(() => {
        const pen = document.createElement("canvas").getContext("2d", { willReadFrequently: true });
        pen.drawImage(document.getElementById("graph"), 0, 0);
        return [...pen.getImageData(2, 2, 1, 1).data].slice(0, 3).join(); })()"""
    assert dark.evaluate(corner) == "18,21,26"
    dark.click("#theme")
    settle(dark, f"{corner} === '245,246,248'")


FRAMES = """async (zooms) => {
    const gaps = [];
    let last = performance.now();
    for (let i = 0; i < 90; i++) {
        if (zooms) flambeau.zoom(i % 40 < 20 ? 1.08 : 1 / 1.08);
        else flambeau.pan(i % 30 < 15 ? 9 : -9, i % 20 < 10 ? 5 : -5);
        await new Promise((resolve) => requestAnimationFrame(resolve));
        const now = performance.now();
        gaps.push(now - last);
        last = now;
    }
    return gaps.sort((a, b) => a - b)[45];
}"""


@pytest.mark.slow
def test_ten_thousand_nodes_stay_fluent(opened, large_page, record_property):
    page = opened(large_page)
    assert page.evaluate("flambeau.step.nodes.length") > 10_000
    # the page stays responsive while a worker computes the layout
    longest = page.evaluate("""async () => {
        let last = performance.now(), longest = 0;
        flambeau.group("none");
        while (flambeau.scene.by !== "none") {
            await new Promise((resolve) => requestAnimationFrame(resolve));
            longest = Math.max(longest, performance.now() - last);
            last = performance.now();
            if (performance.now() > 60000) throw new Error("no layout");
        }
        return longest;
    }""")
    page.evaluate("flambeau.fit(true)")
    measured = {"longest gap during the layout": longest, "pan, all in sight": page.evaluate(FRAMES, False),
                "zoom, all in sight": page.evaluate(FRAMES, True)}
    seen = page.evaluate("flambeau.drawing.drawn.boxes")
    assert seen > 5_000
    page.evaluate("flambeau.zoom(20)")
    measured["pan, nearer"] = page.evaluate(FRAMES, False)
    page.evaluate("flambeau.player.go(flambeau.step.turning + 500)")
    measured["pan, playing backward"] = page.evaluate(FRAMES, False)
    page.evaluate("flambeau.fit(true)")
    measured["pan, all in sight, playing backward"] = page.evaluate(FRAMES, False)
    for name, milliseconds in measured.items():
        record_property(name, milliseconds)
        print(f"{name}: {milliseconds:.1f} ms")
    assert page.evaluate("flambeau.frames.last") < 100  # drawing time only, independent of the machine's load
    assert longest < 1_500
    assert all(milliseconds < 100 for name, milliseconds in measured.items() if "pan" in name or "zoom" in name)


# ----- without a browser -----

def test_the_page_needs_nothing_but_itself(training_page):
    text = training_page.read_text(encoding="utf-8")
    addresses = set(re.findall(r"https?://[^\s\"'`)<]+", text)) - {"http://www.w3.org/2000/svg"}
    assert not addresses
    assert "default-src 'none'" in text
    assert "{{" not in text.split("<script type=\"application/json\"")[0]


def test_the_parts_are_package_data():
    parts = {part.name for part in (resources.files("flambeau.viz.explorer") / "page").iterdir()}
    assert {"page.html", "look.css", "app.js", "layout.js"} <= parts


def test_text_of_the_program_cannot_break_out_of_the_document():
    x = torch.ones(2, requires_grad=True)
    steps, _ = probe((x * x).sum(), {"</script><b>": x})
    document = document_of(steps, title="</title><script>alert(1)</script>")
    text = page_text(document)
    assert text.count("</script>") == 2
    inside = re.search(r'<script type="application/json" id="document">(.*?)</script>', text, re.S)[1]
    assert json.loads(inside) == json.loads(json.dumps(document))


def test_graphs_without_recording():
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 1))
    loss = model(torch.randn(5, 3)).pow(2).mean()
    steps, _ = probe(loss, model)
    assert all(p.grad is None for p in model.parameters())
    (step,) = steps
    assert step.derived
    found = {code: [shown for which, _, shown, _ in step.events if which == code] for code in range(3)}
    assert all(shown is not None for shown in found[1] + found[2])
    assert any(shown is not None for shown in found[0])  # tanh saved its result
    gradient = torch.autograd.grad(loss, list(model.parameters()), retain_graph=True)
    labels = {node["seq"]: node["label"] for node in step.graph["nodes"]}
    means = {labels[seq]: shown["mean"] for code, seq, shown, _ in step.events if code == 2}
    for (name, _), g in zip(model.named_parameters(), gradient, strict=True):
        assert means[name] == pytest.approx(g.mean().item(), rel=1e-5, abs=1e-7)
    loss.backward()
    (freed,), _ = probe(loss, model)
    assert "freed" in freed.note


def test_hooks_are_not_run():
    x = torch.ones(2, requires_grad=True)
    y = x * 2
    y.register_hook(lambda g: pytest.fail("a hook ran"))
    (step,), _ = probe(y.sum())
    assert "hooks" in step.note


def test_exploring_within_a_recording_adds_nothing_to_it(tmp_path):
    x = torch.ones(2, requires_grad=True)
    with watching() as watch:
        y = (x * 2).exp().sum()
        events = len(watch.events)
        y.explore(path=tmp_path / "y.html", open_browser=False)
        assert (len(watch.events), len(watch.graphs)) == (events, 0)


def test_a_recording_becomes_steps():
    watch = trained([1, 2])
    steps = recorded_steps(watch)
    assert [step.name for step in steps] == ["step 1", "step 2"]
    document = recorded_document(watch, "training")
    assert document["total"] == 2
    assert [step["loss"] for step in document["steps"]] == pytest.approx(
        [e["outputs"][0]["mean"] for e in watch.events if e["kind"] == "forward" and e["operator"] == "mean"])
    names = [document["kinds"][kind]["name"] for kind, *_ in document["steps"][0]["nodes"]]
    assert names[-1] == "MeanBackward0"
    assert names.count("AccumulateGrad") == 8
    modules = {document["kinds"][kind].get("module") for kind, *_ in document["steps"][0]["nodes"]}
    assert {"Reader.embed", "Reader.cell", "Reader.head.0", "Reader.head.2", "Reader"} <= modules
    assert len(document["kinds"]) < sum(len(step["nodes"]) for step in document["steps"])


def test_leaves_directly_precede_their_use():
    w = torch.ones(1, requires_grad=True)
    v = torch.ones(1, requires_grad=True)
    y = (w.exp().exp() * v).sum()
    order = [node["name"] for node in in_order_of_use(y.graph().to_dict()["nodes"])]
    assert order == ["AccumulateGrad", "ExpBackward0", "ExpBackward0", "AccumulateGrad", "MulBackward0", "SumBackward0"]


def test_tensors_without_a_graph_raise(tmp_path):
    with pytest.raises(RuntimeError, match="no graph"):
        viz.explore(torch.ones(2), path=tmp_path / "x.html", open_browser=False)
    with watching() as watch:
        pass
    with pytest.raises(RuntimeError, match="no graph to explore"):
        viz.explore(watch, path=tmp_path / "x.html", open_browser=False)
    assert not (tmp_path / "x.html").exists()


# ----- flambeau graph -----

def run_graph(tmp_path, code, *arguments):
    script = tmp_path / "program.py"
    script.write_text(textwrap.dedent(code))
    return subprocess.run([sys.executable, "-m", "flambeau", "graph", *arguments], capture_output=True, text=True,
                          cwd=tmp_path)


def document_in(path):
    return json.loads(re.search(r'id="document">(.*?)</script>', path.read_text(encoding="utf-8"), re.S)[1])


def test_the_command_explores_a_script(tmp_path):
    done = run_graph(tmp_path, """
        import sys, torch
        print(sys.argv[1:])
        x = torch.ones(3, requires_grad=True)
        for n in (1, 2):
            y = x
            for _ in range(n):
                y = y.exp()
            y.sum().backward()
        still = (x * 5).sin()
        """, "program.py", "--rate", "3", "--out", "page.html", "--no-open")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("['--rate', '3']\n")
    document = document_in(tmp_path / "page.html")
    assert document["title"] == "program.py"
    assert [step["name"] for step in document["steps"]] == ["pass 1", "pass 2", "alive at the end"]
    assert [len(step["nodes"]) for step in document["steps"]] == [3, 4, 3]


def test_the_command_reports_errors(tmp_path):
    done = run_graph(tmp_path, "print(1)", "--no-open", "missing.py")
    assert done.returncode == 2
    assert "there is no file" in done.stderr
    done = run_graph(tmp_path, "print(1)", "--no-open", "program.py")
    assert done.returncode == 1
    assert "made no graph" in done.stderr
    done = run_graph(tmp_path, """
        import torch
        torch.ones(2, requires_grad=True).sum().backward()
        raise SystemExit(3)
        """, "--no-open", "program.py")
    assert done.returncode == 3
    assert (tmp_path / "program-graph.html").is_file()
