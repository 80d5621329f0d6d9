/* Runs a compiled program: driver LIBRARY NAME INPUT OUTPUT.
 *
 * INPUT has 64-bit words: the number of runs; whether the program has a state; the number of sizes, then the sizes; the
 * number of arrays that are read, and of arrays that are written; then for each array its bytes, and for those that are
 * read their contents. OUTPUT gets the contents of all arrays that are written, after each run. The status of the first
 * run that fails is the exit status, and its text is written to the standard error stream.
 */
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef intptr_t word;
typedef int (*run_function)(word, word, word, word, word, word, word, word, word, word, word, word, word, word, word,
                            word, word, word, word, word, word, word, word, word, word, word, word, word, word, word,
                            word, word);

static void *symbol(void *library, const char *name, const char *function) {
  char text[256];
  snprintf(text, sizeof text, "%s_%s", name, function);
  void *found = dlsym(library, text);
  if (!found) {
    fprintf(stderr, "%s\n", dlerror());
    exit(255);
  }
  return found;
}

static int64_t next(FILE *file) {
  int64_t value;
  if (fread(&value, sizeof value, 1, file) != 1) exit(254);
  return value;
}

static void *aligned(size_t bytes) {
  void *memory = NULL;
  if (posix_memalign(&memory, 64, bytes ? bytes : 64)) exit(253);
  memset(memory, 0xAB, bytes);
  return memory;
}

int main(int count, char **arguments) {
  if (count != 5) return 252;
  const char *name = arguments[2];
  void *library = dlopen(arguments[1], RTLD_NOW);
  if (!library) {
    fprintf(stderr, "%s\n", dlerror());
    return 251;
  }
  FILE *in = fopen(arguments[3], "rb"), *out = fopen(arguments[4], "wb");
  word a[32] = {0};
  int n = 0;
  int64_t runs = next(in), has_state = next(in);
  if (has_state) {
    size_t bytes = ((size_t(*)(void))symbol(library, name, "state_size"))();
    a[n++] = (word)aligned(bytes);
    a[n++] = (word)bytes;
    if (((int (*)(void *, size_t))symbol(library, name, "state_init"))((void *)a[0], bytes)) return 250;
  }
  int64_t rank = next(in), sizes[4] = {0};
  for (int64_t i = 0; i < rank; i++) a[n++] = (word)(sizes[i] = next(in));
  int64_t inputs = next(in), outputs = next(in), bytes[32];
  int first_output = n + (int)inputs;
  for (int64_t i = 0; i < inputs + outputs; i++) {
    bytes[i] = next(in);
    a[n] = (word)aligned((size_t)bytes[i]);
    if (i < inputs && fread((void *)a[n], 1, (size_t)bytes[i], in) != (size_t)bytes[i]) return 249;
    n++;
  }
  size_t arena = ((size_t(*)(int64_t, int64_t, int64_t, int64_t))symbol(library, name, "arena_size"))(
      sizes[0], sizes[1], sizes[2], sizes[3]);
  a[n++] = (word)aligned(arena + 4) + 4; /* an arena may have any address */
  a[n++] = (word)arena;
  char text[256];
  snprintf(text, sizeof text, "%s_pool_size", name);
  size_t (*pool_size)(void) = (size_t(*)(void))dlsym(library, text);
  void *pool = NULL;
  if (pool_size) { /* a pool may have any address */
    pool = (char *)aligned(pool_size() + 8) + 8;
    if (((int (*)(void *, size_t, int))symbol(library, name, "pool_start"))(pool, pool_size(), 3)) return 248;
    a[n++] = (word)pool;
  }
  for (int64_t i = 0; i < runs; i++) {
    int status = ((run_function)symbol(library, name, "run"))(
        a[0], a[1], a[2], a[3], a[4], a[5], a[6], a[7], a[8], a[9], a[10], a[11], a[12], a[13], a[14], a[15], a[16],
        a[17], a[18], a[19], a[20], a[21], a[22], a[23], a[24], a[25], a[26], a[27], a[28], a[29], a[30], a[31]);
    if (status) {
      fprintf(stderr, "%s\n", ((const char *(*)(int))symbol(library, name, "error_text"))(status));
      return status;
    }
    for (int64_t k = 0; k < outputs; k++) fwrite((void *)a[first_output + k], 1, (size_t)bytes[inputs + k], out);
  }
  if (pool && ((int (*)(void *))symbol(library, name, "pool_stop"))(pool)) return 247;
  fclose(out);
  return 0;
}
