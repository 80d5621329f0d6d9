"""`FLAMBEAU_DEBUG`: the views of compiled functions, on stderr."""

from __future__ import annotations

import re

import pytest

import flambeau as torch
from flambeau import codegen, nn
from flambeau.runtime import compilation, debug_output

pytestmark = pytest.mark.skipif(not codegen.available(), reason="llvmlite is not installed, or FLAMBEAU_JIT is 0")


def compile_and_call(function, *args, calls=3):
    made = torch.compile(function)
    for _ in range(calls):
        made(*args)
    return made


def f(x, w):
    return torch.softmax(x @ w, -1)


X, W = torch.ones(3, 4), torch.ones(4, 5)


def test_nothing_is_printed_by_default(capsys):
    compile_and_call(f, X, W)
    assert capsys.readouterr().err == ""


def test_the_graph_before_and_after_fusion(capsys, monkeypatch):
    monkeypatch.setenv("FLAMBEAU_DEBUG", "ir")
    compile_and_call(f, X, W)
    first, second = capsys.readouterr().err.strip().split("\n\n")
    captured, kernels = first.splitlines(), second.splitlines()
    assert captured[:4] == ["f, as captured", "  %0 = input 0 : float32[3, 4]    # x",
                            "  %1 = input 1 : float32[4, 5]    # w", "  %2 = matmul %0 %1 : float32[3, 5]"]
    assert kernels[0] == "f, in kernels"
    assert kernels[1] == "  kernel 0: matmul"
    assert kernels[3].startswith("  kernel 1: rows ")
    members = [line.split()[0] for line in kernels if line.startswith("    %")]
    assert set(members) <= {line.split()[0] for line in captured[1:]}
    assert len(members) == len(set(members))


def test_kernels_with_operands_chunks_and_lines(capsys, monkeypatch):
    monkeypatch.setenv("FLAMBEAU_DEBUG", "kernels")
    compile_and_call(f, X, W)
    text = capsys.readouterr().err
    assert re.match(r"f: 2 kernels, [\d,]+ bytes of intermediate buffers\n  kernel 0: matmul\n", text)
    assert "    %2 = x @ w\n    writes %2 float32[3, 5]\n    reads x float32[3, 4], w float32[4, 5]\n" in text
    assert re.search(r"    \d+ chunks?; code (in memory|from disk|compiled in \d+ ms)\n", text)
    assert re.search(r"    from .*test_debug\.py:\d+  return torch\.softmax\(x @ w, -1\)\n", text)


def test_source_locations(capsys, monkeypatch, tmp_path):
    monkeypatch.setenv("FLAMBEAU_DEBUG", "kernels")
    monkeypatch.setenv("FLAMBEAU_CACHE_DIR", str(tmp_path))
    monkeypatch.setattr(compilation, "_loaded", {})

    def g(x):
        return (x * 0.12345).sinh() + 0.54321

    x = torch.ones(3)
    compile_and_call(g, x)
    assert re.search(r"code compiled in \d+ ms", capsys.readouterr().err)
    compile_and_call(g, x)
    assert "code in memory" in capsys.readouterr().err
    monkeypatch.setattr(compilation, "_loaded", {})  # as another process finds it
    from flambeau.codegen.elementwise import elementwise

    monkeypatch.setattr(elementwise, "_kernels", {})
    compile_and_call(g, x)
    assert "code from disk" in capsys.readouterr().err


def test_backward_data_guards_and_reused_buffers(capsys, monkeypatch):
    monkeypatch.setenv("FLAMBEAU_DEBUG", "ir,kernels")
    layer = nn.Linear(4, 2)

    def g(x):
        return layer(x).tanh().sum()

    compile_and_call(g, X)
    text = capsys.readouterr().err
    assert "g backward: " in text
    assert "saved %" in text
    total = torch.zeros(3)

    def h(x):
        if x.sum() > 0:
            total.add_(x)
        return total * 2

    compile_and_call(h, torch.ones(3))
    text = capsys.readouterr().err
    assert re.search(r"stop unless %\d+ is True", text)
    assert " over total" in text or "total = %" in text


def test_programs_of_one_function_are_numbered(capsys, monkeypatch):
    monkeypatch.setenv("FLAMBEAU_DEBUG", "kernels")
    made = torch.compile(f)
    for rows in (2, 3):
        for _ in range(2):
            made(torch.ones(rows, 4), W)
    text = capsys.readouterr().err
    assert text.startswith("f: ")
    assert "\nf#2: " in text


def test_operators_on_large_arrays_are_shown_too(capsys, monkeypatch):
    monkeypatch.setenv("FLAMBEAU_DEBUG", "kernels")
    torch.softmax(torch.ones(1001, 103), -1)
    text = capsys.readouterr().err
    assert text == "" or text.startswith("operator softmax: ")


def test_machine_code_of_everything_compiled(capsys, monkeypatch, tmp_path):
    monkeypatch.setenv("FLAMBEAU_CACHE_DIR", str(tmp_path))
    for view, text in (("llvm", "define void @body"), ("asm", "body:")):
        monkeypatch.setenv("FLAMBEAU_DEBUG", view)
        monkeypatch.setattr(compilation, "_loaded", {})
        recipe = f"test {view}"
        source = "define void @body(ptr %a, ptr %b, i64 %c) {\n  ret void\n}\n"
        library = compilation.load(recipe, ("body",), lambda source=source: source)
        library.prepare()
        shown = capsys.readouterr().err
        assert shown.startswith(f"; {recipe}\n")
        assert text in shown
        assert library.origin == "compiled"


def test_unknown_names_raise(monkeypatch):
    monkeypatch.setenv("FLAMBEAU_DEBUG", "ir,kernel")
    with pytest.raises(ValueError, match="there is no view 'kernel', only ir, graph_breaks, recompiles, kernels, llvm"):
        debug_output.is_enabled("ir")
