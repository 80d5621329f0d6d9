"""WebAssembly modules: models and training steps in Node and in a browser compute what they compute here."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import flambeau as torch
from flambeau import nn
from flambeau.export import Dim, aot, export
from tests.export.aot.javascript import NODE, literal, node, page
from tests.export.aot.models import Language, zoo
from tests.export.aot.results import agree, eager


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    folder = tmp_path_factory.mktemp("wasm")
    module, args = zoo()
    export(module, args).save(folder / "zoo.wasm")
    return folder, args, eager(module, args)


def test_a_module_has_a_memory_and_no_imports(built):
    code = (built[0] / "zoo.wasm").read_bytes()
    assert code[:8] == b"\0asm\1\0\0\0"
    at, sections = 8, {}
    while at < len(code):
        kind, length, shift, at = code[at], 0, 0, at + 1
        while True:
            byte = code[at]
            length |= (byte & 127) << shift
            shift, at = shift + 7, at + 1
            if byte < 128:
                break
        sections[kind] = code[at : at + length]
        at += length
    assert 2 not in sections
    assert b"zoo_run" in sections[7]
    assert b"memory" in sections[7]


@pytest.mark.parametrize("runtime", NODE)
def test_a_model_in_node(runtime, built):
    folder, args, expected = built
    call = ", ".join(literal(x.numpy()) for x in args)
    got = node(
        folder,
        f"""
        import {{ load }} from "./zoo.mjs";
        const model = await load();
        let result;
        for (let i = 0; i < 3; i += 1) result = model({call});
        console.log(JSON.stringify(Object.values(result).map((each) => [...each])));
    """,
    )
    agree([np.array(x, y.dtype).reshape(y.shape) for x, y in zip(got, expected, strict=True)], expected)


@pytest.mark.parametrize("runtime", NODE)
def test_errors_and_dynamic_sizes_in_node(runtime, tmp_path):
    linear = nn.Linear(2, 1)
    program = export(linear, (torch.ones(2, 2),), dynamic_shapes=({0: Dim("batch", max=3)},))
    program.save(tmp_path / "line.wasm")
    got = node(
        tmp_path,
        """
        import { readFile } from "node:fs/promises";
        import load from "./line.mjs";
        const model = await load(await readFile("line.wasm"));
        const texts = [];
        for (const call of [() => model(new Float32Array(8)), () => model(new Float64Array(2)), () => model(),
                            () => model(new Float32Array(3))]) {
          try { call(); texts.push(""); } catch (error) { texts.push(error.message); }
        }
        console.log(JSON.stringify([texts, [...model(new Float32Array([1, 2, 3, 4, 5, 6]))]]));
    """,
    )
    texts, values = got
    assert "there is no code for these sizes" in texts[0]
    assert texts[1] == "input is a Float32Array, got Float64Array"
    assert texts[2] == "line takes 1 arrays, got 0"
    assert "the size batch does not follow" in texts[3]
    x = torch.arange(1.0, 7.0).reshape(3, 2)
    agree([np.float32(values)], [linear(x).detach().numpy().reshape(-1)])


@pytest.mark.parametrize("runtime", NODE)
def test_training_in_node(runtime, tmp_path):
    torch.manual_seed(0)
    model = Language(causal=True, length=4, width=8)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2, eps=1e-3)
    tokens = torch.tensor([[1, 5, 2, 7]])

    def step(tokens: Any) -> Any:
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(tokens[:, :-1]).flatten(0, 1), tokens[:, 1:].flatten())
        loss.backward()
        optimizer.step()
        return loss.detach()

    aot.compile(step, (tokens,), tmp_path / "step.wasm")
    got = node(
        tmp_path,
        f"""
        import {{ load }} from "./step.mjs";
        const step = await load();
        const run = () => step({literal(tokens.numpy())})[0];
        const losses = [run(), run(), run()];
        const kept = step.state;
        losses.push(run());
        step.state = kept;
        losses.push(run());
        step.reset();
        step.set("lr", 0);
        losses.push(run(), run());
        console.log(JSON.stringify(losses));
    """,
    )
    expected = [step(tokens).item() for _ in range(4)]
    np.testing.assert_allclose(got, [*expected, expected[3], expected[0], expected[0]], 1e-4)


def test_a_model_in_a_browser(browser, built):
    folder, args, expected = built
    call = ", ".join(literal(x.numpy()) for x in args)
    got = page(
        browser,
        folder,
        f"""
        import {{ load }} from "./zoo.mjs";
        const model = await load();
        result = Object.values(model({call})).map((each) => [...each]);
    """,
    )
    agree([np.array(x, y.dtype).reshape(y.shape) for x, y in zip(got, expected, strict=True)], expected)


#: functions of elements, whose kernels must not need a library: WebAssembly has none
FUNCTIONS = """sin cos tan exp log sqrt tanh sinh cosh asin acos atan asinh acosh atanh erf erfc expm1 log1p exp2
    log2 log10 rsqrt lgamma digamma erfinv sinc floor ceil round trunc frac sigmoid""".split()  # noqa: SIM905
PAIRS = "atan2 pow fmod remainder hypot ldexp copysign logaddexp xlogy floor_divide".split()  # noqa: SIM905


@pytest.mark.parametrize("runtime", NODE)
def test_functions_of_elements(runtime, tmp_path):
    """Large arguments, too: angles are reduced by products of 128 bits."""

    def functions(x: Any, y: Any) -> Any:
        wide = [getattr(torch, name)(x) for name in FUNCTIONS] + [getattr(torch, name)(x, y) for name in PAIRS]
        narrow = [getattr(torch, name)(x.float()) for name in ("sin", "cos", "tan", "lgamma")]
        return torch.stack(wide), torch.stack(narrow)

    x = torch.tensor([0.3, -0.7, 1.5, 3e5, -7e9, 1e22, 2.0**120, 12.0], dtype=torch.float64)
    y = torch.tensor([2.0, 0.5, -1.5, 3.0, 7.0, 2.0, 1.0, -3.0], dtype=torch.float64)
    aot.compile(functions, (x, y), tmp_path / "functions.wasm")
    got = node(tmp_path, f"""
        import {{ load }} from "./functions.mjs";
        const model = await load();
        const text = (each) => [...each].map(String);
        console.log(JSON.stringify(Object.values(model({literal(x.numpy())}, {literal(y.numpy())})).map(text)));
    """)
    for each, expected, tolerance in zip(got, functions(x, y), (1e-12, 1e-5), strict=True):
        numbers = [float(text.replace("Infinity", "inf")) for text in each]
        found = np.array(numbers).reshape(expected.shape)
        np.testing.assert_allclose(found, expected.numpy(), tolerance, tolerance)
