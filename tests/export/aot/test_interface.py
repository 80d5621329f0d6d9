"""The C interface: the header, statuses of wrong calls, threads."""

from __future__ import annotations

import shutil
import subprocess

import pytest

import flambeau as torch
from flambeau.export import Dim, export
from flambeau.export.aot.interface import distinct, identifier
from tests.export.aot.models import make

CALLS = """
#include "digits.h"
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static float x[3 * 8], expected[3 * 4];

static int wrong(int got, int status, const char *what) {
  if (got != status) fprintf(stderr, "%s: %d (%s), not %d\\n", what, got, digits_error_text(got), status);
  return got != status;
}

static void *many(void *argument) {
  size_t bytes = digits_arena_size(3);
  void *arena = malloc(bytes);
  float y[3 * 4];
  long failed = 0;
  int i;
  for (i = 0; i < 200; i++) {
    failed += digits_run(3, x, y, arena, bytes) != DIGITS_OK;
    failed += memcmp(y, expected, sizeof y) != 0;
  }
  free(arena);
  return argument == NULL || failed ? (void *)1 : NULL;
}

int main(void) {
  size_t bytes = digits_arena_size(3);
  char *arena = (char *)malloc(bytes);
  float *off = (float *)(void *)((char *)x + 1);
  pthread_t threads[2];
  void *failed[2];
  int i, bad = 0;
  for (i = 0; i < 3 * 8; i++) x[i] = (float)i / 24;
  bad += wrong(digits_run(3, x, expected, arena, bytes), DIGITS_OK, "a run");
  bad += wrong(digits_run(3, NULL, expected, arena, bytes), DIGITS_NULL_POINTER, "a null input");
  bad += wrong(digits_run(3, x, NULL, arena, bytes), DIGITS_NULL_POINTER, "a null output");
  bad += wrong(digits_run(3, x, expected, NULL, bytes), DIGITS_NULL_POINTER, "a null arena");
  bad += wrong(digits_run(3, off, expected, arena, bytes), DIGITS_MISALIGNED, "a misaligned input");
  bad += wrong(digits_run(5, x, expected, arena, bytes), DIGITS_UNSUPPORTED_SIZE, "a batch of 5");
  bad += wrong(digits_run(-1, x, expected, arena, bytes), DIGITS_UNSUPPORTED_SIZE, "a negative batch");
  bad += wrong(digits_run(3, x, expected, arena, bytes - 1), DIGITS_SMALL_ARENA, "a small arena");
  bad += digits_arena_size(5) != 0;
  bad += strlen(digits_error_text(12345)) == 0 || strlen(digits_error_text(-7)) == 0;
  for (i = 0; i < 2; i++) pthread_create(&threads[i], NULL, many, x);
  for (i = 0; i < 2; i++) {
    pthread_join(threads[i], &failed[i]);
    bad += failed[i] != NULL;
  }
  free(arena);
  return bad;
}
"""


@pytest.fixture(scope="module")
def digits(tmp_path_factory):
    folder = tmp_path_factory.mktemp("digits")
    module, args = make("mlp")
    program = export(module, args, dynamic_shapes=({0: Dim("batch", max=4)},))
    program.save(folder / "digits.o", target="native")
    (folder / "calls.c").write_text(CALLS)
    shutil.copy(folder / "calls.c", folder / "calls.cc")
    return folder


@pytest.mark.parametrize(
    ("compiler", "options", "source"),
    [("gcc", ["-std=c99", "-pedantic"], "calls.c"), ("g++", ["-std=c++11", "-pedantic"], "calls.cc")],
)
def test_wrong_calls_are_statuses_and_threads_share_the_model(compiler, options, source, digits):
    command = [compiler, *options, "-Wall", "-Wextra", "-Werror", "-o", "calls", source, "digits.o", "-lpthread"]
    subprocess.run(command, cwd=digits, check=True)
    done = subprocess.run(["./calls"], cwd=digits, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


def test_the_header_describes_the_operands(digits):
    text = (digits / "digits.h").read_text()
    assert "input: float[batch, 8]" in text
    assert "output: float[batch, 4]" in text
    assert "1 to 4" in text


def test_names_are_identifiers():
    assert [identifier(name) for name in ("x", "3d-net", "class", "état")] == ["x", "_3d_net", "class_", "_tat"]
    assert distinct(["a.b", "a_b", "a-b"]) == ["a_b", "a_b_2", "a_b_3"]


def test_operands_may_have_names_of_c_and_of_each_other(tmp_path):
    class Sum(torch.nn.Module):
        def forward(self, output, int, arena, level):
            return output + int + arena + level

    args = [torch.ones(2)] * 4
    report = export(Sum(), tuple(x.clone() for x in args)).save(tmp_path / "sum.so", target="native")
    assert [each.name for each in report.interface.inputs] == ["output", "int_", "arena_", "level"]
    assert [each.name for each in report.interface.outputs] == ["output_2"]
    source = f'#include "{tmp_path}/sum.h"\nint main(void) {{ return sum_arena_size() == 0; }}\n'
    (tmp_path / "main.c").write_text(source)
    subprocess.run(
        ["gcc", "-std=c99", "-Wall", "-Werror", "-c", str(tmp_path / "main.c"), "-o", str(tmp_path / "m.o")], check=True
    )
