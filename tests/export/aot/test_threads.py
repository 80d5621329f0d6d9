"""Programs of several threads: a pool of the C interface shares the work of a run."""

from __future__ import annotations

import subprocess

import pytest

import flambeau as torch
from flambeau import nn
from flambeau.export import aot, export
from tests.export.aot.c_program import run
from tests.export.aot.models import make
from tests.export.aot.results import agree, eager

CALLS = """
#include "wide.h"
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static float x[64 * 128], expected[64 * 96];
static void *pool;

static int wrong(int got, int status, const char *what) {
  if (got != status) fprintf(stderr, "%s: %d (%s), not %d\\n", what, got, wide_error_text(got), status);
  return got != status;
}

static void *many(void *argument) {
  size_t bytes = wide_arena_size();
  void *arena = malloc(bytes);
  float *y = (float *)malloc(sizeof expected);
  long failed = 0;
  int i;
  for (i = 0; i < 100; i++) {
    failed += wide_run(x, y, arena, bytes, i % 3 ? pool : NULL) != WIDE_OK;
    failed += memcmp(y, expected, sizeof expected) != 0;
  }
  free(arena);
  free(y);
  return argument == NULL || failed ? (void *)1 : NULL;
}

int main(void) {
  size_t bytes = wide_arena_size(), size = wide_pool_size();
  void *arena = malloc(bytes), *failed[3];
  pthread_t threads[3];
  int i, bad = 0;
  pool = malloc(size);
  for (i = 0; i < 64 * 128; i++) x[i] = (float)(i % 97) / 97;
  bad += wrong(wide_pool_start(NULL, size, 2), WIDE_NULL_POINTER, "a null pool");
  bad += wrong(wide_pool_start(pool, size - 1, 2), WIDE_SMALL_POOL, "a small pool");
  bad += wrong(wide_pool_start(pool, size, 0), WIDE_NO_THREADS, "no threads");
  bad += wrong(wide_pool_start(pool, size, 65), WIDE_NO_THREADS, "too many threads");
  bad += wrong(wide_pool_stop(NULL), WIDE_NULL_POINTER, "a null pool that stops");
  bad += wrong(wide_run(x, expected, arena, bytes, NULL), WIDE_OK, "a run without a pool");
  for (i = 1; i < 4; i++) { /* the memory may be used again */
    bad += wrong(wide_pool_start(pool, size, i), WIDE_OK, "start");
    bad += wrong(wide_pool_stop(pool), WIDE_OK, "stop");
  }
  bad += wrong(wide_pool_start(pool, size, 3), WIDE_OK, "start");
  for (i = 0; i < 3; i++) pthread_create(&threads[i], NULL, many, x);
  for (i = 0; i < 3; i++) {
    pthread_join(threads[i], &failed[i]);
    bad += failed[i] != NULL;
  }
  bad += wrong(wide_pool_stop(pool), WIDE_OK, "stop");
  free(arena);
  free(pool);
  return bad;
}
"""


def test_runs_share_a_pool(tmp_path):
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(128, 256), nn.ReLU(), nn.Linear(256, 96), nn.Softmax(-1)).eval()
    export(model, (torch.randn(64, 128),)).save(tmp_path / "wide.so", target="native", threads=3)
    header = (tmp_path / "wide.h").read_text()
    assert "int wide_pool_start(void *pool, size_t pool_bytes, int threads);" in header
    for language, command in (("c", ["cc", "-std=c99"]), ("cpp", ["c++", "-std=c++11"])):
        source = tmp_path / f"calls.{language}"
        source.write_text(CALLS)
        program = tmp_path / language
        warnings = ["-Wall", "-Wextra", "-Werror", "-pedantic"]
        command = [*command, *warnings, "-o", str(program), str(source), str(tmp_path / "wide.so"), "-pthread"]
        subprocess.run(command, check=True, cwd=tmp_path)
        done = subprocess.run([str(program)], capture_output=True, text=True, check=False,
                              env={"LD_LIBRARY_PATH": str(tmp_path)})  # fmt: skip
        assert done.returncode == 0, done.stderr


def test_a_model_on_several_threads(tmp_path):
    module, args = make("unet")
    args = (torch.randn(2, 1, 40, 40),)
    expected = eager(module, args)
    path = tmp_path / "unet.so"
    export(module, args).save(path, target="native", threads=4)
    [got] = run(path, [x.numpy() for x in args], expected)
    agree(got, expected)


def test_another_processor_has_threads(tmp_path):
    program = export(nn.Linear(2, 3), (torch.ones(1, 2),))
    program.save(tmp_path / "x.so", target="aarch64", threads=2)
    assert b"pthread_create" in (tmp_path / "x.so").read_bytes()


def test_numbers_of_threads(tmp_path):
    program = export(nn.ReLU(), (torch.ones(2),))
    with pytest.raises(ValueError, match="threads= is from 1 to 64, not 65"):
        program.save(tmp_path / "x.wasm", threads=65)
    with pytest.raises(ValueError, match="threads= is from 1 to 64, not 0"):
        aot.compile(lambda x: x + 1, (torch.ones(2),), tmp_path / "x.so", threads=0)
