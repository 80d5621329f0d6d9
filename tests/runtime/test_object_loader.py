"""The ELF loader, and compilation by several threads."""

from __future__ import annotations

import ctypes
import os
import subprocess
import sys
import threading

import pytest

from flambeau.runtime import object_emission, object_loader, target

plain = pytest.mark.skipif(not object_loader.is_supported(), reason="the loader does not support this system")

SUM = """
@weights = internal constant [4 x double] [double 1.0, double 2.0, double 4.0, double 8.0]
define internal double @one(double %x, i64 %i) noinline {
  %at = getelementptr [4 x double], ptr @weights, i64 0, i64 %i
  %weight = load double, ptr %at
  %product = fmul double %x, %weight
  ret double %product
}
define double @weighted(double %x, i64 %i) {
  %found = call double @one(double %x, i64 %i)
  %more = fadd double %found, 0x3FF8000000000000
  ret double %more
}
define double @twice(double %x) {
  %found = fadd double %x, %x
  ret double %found
}
"""

FAR = """
declare ptr @memset(ptr, i32, i64)
define void @fill(ptr %memory, i64 %count) {
  %r = call ptr @memset(ptr %memory, i32 7, i64 %count)
  ret void
}
"""

WRITTEN = """
@count = internal global i64 0
define i64 @next() {
  %before = load i64, ptr @count
  %after = add i64 %before, 1
  store i64 %after, ptr @count
  ret i64 %after
}
"""


@plain
def test_functions_constants_and_calls():
    found = object_loader.load(object_emission.emit_object(SUM, False), ["twice", "weighted"])
    weighted = ctypes.CFUNCTYPE(ctypes.c_double, ctypes.c_double, ctypes.c_int64)(found["weighted"])
    twice = ctypes.CFUNCTYPE(ctypes.c_double, ctypes.c_double)(found["twice"])
    assert [weighted(3.0, i) for i in range(4)] == [4.5, 7.5, 13.5, 25.5]
    assert twice(1.25) == 2.5


@plain
def test_functions_of_the_c_library():
    found = object_loader.load(object_emission.emit_object(FAR), ["fill"])
    memory = (ctypes.c_uint8 * 8)()
    ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int64)(found["fill"])(memory, 5)
    assert list(memory) == [7] * 5 + [0] * 3


@plain
@pytest.mark.parametrize("of", [
    lambda code: b"", lambda code: b"no object", lambda code: code[:100], lambda code: code[:-200],
    lambda code: code.replace(b"\x7fELF\x02", b"\x7fELF\x01")])
def test_invalid_objects_are_unsupported(of):
    with pytest.raises(object_loader.UnsupportedObject):
        object_loader.load(of(object_emission.emit_object(SUM)), ["weighted"])


@plain
def test_other_relocations_and_sections_are_unsupported():
    for source, name in ((WRITTEN, "next"), (FAR.replace("memset", "no_such_function"), "fill"), (SUM, "missing")):
        with pytest.raises(object_loader.UnsupportedObject):
            object_loader.load(object_emission.emit_object(source), [name])


def test_llvm_links_unsupported_objects(monkeypatch):
    from flambeau.runtime import compilation

    def refuse(code, names):
        raise object_loader.UnsupportedObject("not today")

    monkeypatch.setattr(object_loader, "load", refuse)
    library = compilation.Library("a test of LLVM's linker", ("twice",), lambda: SUM)
    assert library.function("twice", ctypes.c_double, ctypes.c_double)(4.0) == 8.0


@plain
@pytest.mark.skipif(target._host_fingerprint() is None, reason="the processor is known to LLVM alone")
def test_a_process_with_cached_code_imports_no_llvm(tmp_path):
    program = """
import sys
import flambeau as torch
step = torch.compile(lambda x: torch.softmax(x * 2 + 1, 1).sum(0))
x = torch.arange(12.).reshape(3, 4)
print([round(v, 4) for _ in range(4) for v in step(x).tolist()], "llvmlite.binding" in sys.modules)
"""
    told = [subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True,
                           env=os.environ | {"FLAMBEAU_CACHE_DIR": str(tmp_path)}).stdout.rsplit(" ", 1)
            for _ in range(2)]
    assert told[0][0] == told[1][0]
    assert [each[1].strip() for each in told] == ["True", "False"]


def test_invalid_ir_raises():
    for source in ("define nothing", "define i64 @f() { ret i64 0 }\ndefine i64 @g() {"):
        with pytest.raises(RuntimeError, match="parsing"):
            object_emission.emit_object(source)
    assert object_emission.emit_object(SUM)  # the thread goes on


def test_several_threads_compile_the_same():
    expected, found = object_emission.emit_object(SUM), []

    def work():
        found.extend(object_emission.emit_object(SUM, passes) for passes in (True, "few", False) for _ in range(5))

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 60
    assert found.count(expected) >= 20
