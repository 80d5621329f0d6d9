"""WebAssembly modules of several threads: workers of Node and of pages share the work of a run."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import flambeau as torch
from flambeau import nn
from flambeau.export import Dim, aot, export
from flambeau.export.aot.web.memory import PAGE, imported_pages
from tests.export.aot.javascript import ISOLATED, NODE, literal, node, page
from tests.export.aot.results import agree, eager

#: functions of the scripts
ROWS = """
  const rows = (n) => Float32Array.from({ length: n * 128 }, (_, i) => Math.sin(i));
  const sum = (values) => values.reduce((a, b) => a + b, 0);
  const same = (a, b) => a.length === b.length && a.every((each, i) => each === b[i]);
"""


def wide() -> nn.Module:
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(128, 256), nn.ReLU(), nn.Linear(256, 96), nn.Softmax(-1)).eval()


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    folder = tmp_path_factory.mktemp("wasm")
    program = export(wide(), (torch.randn(2, 128),), dynamic_shapes=({0: Dim("batch", min=1, max=300)},))
    report = program.save(folder / "wide.wasm", threads=2)
    assert "planned for 2 threads" in str(report)
    assert report.interface.targets == "WebAssembly with SIMD128 and threads"
    return folder


def expected_rows(count: int) -> np.ndarray:
    [result] = eager(wide(), [torch.tensor(np.sin(np.arange(count * 128.0)).astype(np.float32).reshape(count, 128))])
    return result


def test_a_module_imports_its_memory(built):
    code = (built / "wide.wasm").read_bytes()
    assert 1 << 20 < imported_pages(code) * PAGE < 1 << 22
    with pytest.raises(ValueError, match="the module imports no memory"):
        imported_pages(code[:8])


@pytest.mark.parametrize("runtime", NODE)
def test_threads_compute_what_one_computes(runtime, built):
    got = node(
        built,
        f"""
        import {{ Worker }} from "node:worker_threads";
        import {{ load }} from "./wide.mjs";
        {ROWS}
        globalThis.Worker = Worker; // as Emscripten's modules leave it
        const one = await load(undefined, {{ threads: 1 }});
        const models = [await load(undefined, {{ threads: 2 }}), await load(undefined, {{ threads: 4 }}), await load()];
        let equal = true;
        for (let i = 0; i < 30; i += 1) {{
          for (const batch of [64, 3, 300]) {{
            const y = one(rows(batch));
            for (const model of models) equal &&= same(model(rows(batch)), y);
          }}
        }}
        console.log(JSON.stringify([models.map((model) => model.threads), equal, [...one(rows(64))]]));
        models[0].close(); // the others' workers do not keep the process
    """,
    )
    assert got[0][:2] == [2, 4]
    assert got[0][2] in (1, 2)
    assert got[1]
    agree([np.float32(got[2]).reshape(64, 96)], [expected_rows(64)])


@pytest.mark.parametrize("runtime", NODE)
def test_errors_in_node(runtime, built):
    got = node(
        built,
        f"""
        import {{ load }} from "./wide.mjs";
        {ROWS}
        const texts = [];
        const tried = async (call) => {{
          try {{ await call(); texts.push(""); }} catch (error) {{ texts.push(`${{error}}`, error.status ?? null); }}
        }};
        const model = await load(undefined, {{ threads: 2 }});
        await tried(() => model(rows(301)));
        await tried(() => model(new Float64Array(128)));
        await tried(() => model(rows(300)));
        model.close();
        model.close();
        await tried(() => model(rows(1)));
        await tried(() => load(undefined, {{ threads: 0 }}));
        await tried(() => load(undefined, {{ threads: 1.5 }}));
        console.log(JSON.stringify(texts));
    """,
    )
    assert "there is no code for these sizes" in got[0]
    assert got[1:] == [
        3,
        "TypeError: input is a Float32Array, got Float64Array",
        None,
        "",
        "Error: the model wide is closed",
        None,
        "RangeError: threads is from 1 to 64, not 0",
        None,
        "RangeError: threads is from 1 to 64, not 1.5",
        None,
    ]


#: a worker that takes a chunk and fails before it has computed it
FAILING = """
    const at = exports.wide_pool_start(2, 1) / 8;
    const words = new BigInt64Array(memory.buffer);
    for (;;) {
      const ticket = Atomics.load(words, at);
      const some = (ticket & 0xfffffn) !== ((ticket >> 20n) & 0xfffffn);
      if (some && Atomics.compareExchange(words, at, ticket, ticket + 1n) === ticket) throw new Error("no power");
    }
"""


@pytest.mark.parametrize("runtime", NODE)
def test_workers_that_fail(runtime, built):
    loader = (built / "wide.mjs").read_text()
    started = "exports.__stack_pointer.value = stack;"
    assert loader.count("exports.wide_pool_work(member);") == loader.count(started) == 1
    (built / "failing.mjs").write_text(loader.replace("exports.wide_pool_work(member);", FAILING))
    (built / "absent.mjs").write_text(loader.replace(started, 'throw new Error("no worker");'))
    got = node(
        built,
        f"""
        import {{ load }} from "./failing.mjs";
        import {{ load as absent }} from "./absent.mjs";
        {ROWS}
        const texts = [];
        const model = await load(undefined, {{ threads: 2 }});
        for (let i = 0; i < 2; i += 1) {{
          try {{
            for (;;) model(rows(300)); // until the worker gets a chunk
          }} catch (error) {{ texts.push(error.message); }}
        }}
        model.close();
        try {{ await absent(undefined, {{ threads: 3 }}); }} catch (error) {{ texts.push(error.message); }}
        const one = await absent(undefined, {{ threads: 1 }});
        console.log(JSON.stringify([texts, one(rows(2)).length]));
    """,
    )
    texts, length = got
    assert texts[:2] == ["a thread of wide failed: Error: no power"] * 2
    assert texts[2] == "the threads of wide have not started (load it with { threads: 1 }): no worker"
    assert length == 2 * 96


@pytest.mark.parametrize(("place", "dtype"), [("beside", None), ("beside", "int8")])
@pytest.mark.parametrize("runtime", NODE)
def test_weights_and_threads(runtime, place, dtype, tmp_path):
    module = wide()
    program = export(module, (torch.ones(64, 128),))
    program.save(tmp_path / "wide.wasm", weights=place, weight_dtype=dtype, threads=2)
    got = node(
        tmp_path,
        f"""
        import {{ load }} from "./wide.mjs";
        {ROWS}
        const model = await load({"undefined, " * (place == "beside")}undefined, {{ threads: 2 }});
        const first = model(rows(64));
        console.log(JSON.stringify([model.threads, same(first, model(rows(64))), [...first]]));
    """,
    )
    assert got[:2] == [2, True]
    agree([np.float32(got[2]).reshape(64, 96)], [expected_rows(64)], 1e-5 if dtype is None else 1e-3)


@pytest.mark.parametrize("runtime", NODE)
def test_training_on_two_threads(runtime, tmp_path):
    model = wide()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    x = torch.randn(48, 128)

    def step(x: Any) -> Any:
        optimizer.zero_grad()
        loss = -model(x).max(1).values.log().mean()
        loss.backward()
        optimizer.step()
        return loss.detach()

    step(x)
    aot.compile(step, (x,), tmp_path / "step.wasm", threads=2)
    got = node(
        tmp_path,
        f"""
        import {{ load }} from "./step.mjs";
        const step = await load("step.wasm", {{ threads: 2 }});
        const run = () => step({literal(x.numpy())})[0];
        const losses = [run(), run(), run()];
        const kept = step.state;
        losses.push(run());
        step.state = kept;
        losses.push(run());
        step.reset();
        losses.push(run());
        console.log(JSON.stringify(losses));
    """,
    )
    expected = [step(x).item() for _ in range(4)]
    np.testing.assert_allclose(got, [*expected, expected[3], expected[0]], 1e-4)


PAGE_SCRIPT = """
  const { load } = await import("./wide.mjs");
  const model = await load(undefined, OPTIONS);
  const y = model(rows(64));
  let equal = true;
  for (let i = 0; i < 50; i += 1) equal &&= same(model(rows(64)), y);
  const second = await load(undefined, OPTIONS);
  equal &&= same(second(rows(64)), y);
  model.close();
  equal &&= same(second(rows(64)), y);
  result = [crossOriginIsolated, second.threads, equal, [...y]];
"""


@pytest.mark.parametrize("isolated", [True, False])
def test_threads_in_a_page(browser, built, isolated):
    """A page that is not isolated runs the same file on one thread."""
    script = ROWS + PAGE_SCRIPT.replace("OPTIONS", "{ threads: 2 }")
    got = page(browser, built, script, ISOLATED if isolated else {})
    assert got[:3] == [isolated, 2 if isolated else 1, True]
    agree([np.float32(got[3]).reshape(64, 96)], [expected_rows(64)])


def test_threads_in_a_worker_of_a_page(browser, built):
    (built / "worker.mjs").write_text(f"let result; {ROWS} {PAGE_SCRIPT.replace('OPTIONS', '{ threads: 3 }')}"
                                      "postMessage(result);")  # fmt: skip
    got = page(browser, built, """
      const worker = new Worker("worker.mjs", { type: "module" });
      result = await new Promise((resolve, reject) => {
        worker.onmessage = ({ data }) => resolve(data);
        worker.onerror = reject;
      });
    """, ISOLATED)  # fmt: skip
    assert got[:3] == [True, 3, True]
    agree([np.float32(got[3]).reshape(64, 96)], [expected_rows(64)])


def test_a_page_whose_policy_forbids_the_workers(browser, built):
    headers = ISOLATED | {"Content-Security-Policy": "worker-src 'none'"}
    script = """
      const { load } = await import("./wide.mjs");
      result = [(await load(undefined, { threads: 1 })).threads];
      try { await load(undefined, { threads: 2 }); } catch (error) { result.push(error.message); }
    """
    threads, text = page(browser, built, script, headers)
    assert threads == 1
    assert "the threads of wide have not started (load it with { threads: 1 })" in text
