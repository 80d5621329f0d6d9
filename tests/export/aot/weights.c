/* weights FILE MODE: runs the model `net` with its weights beside it, on ones, and prints its results; MODE: good, or how
 * the file is damaged. The exit status is that of the first call that fails. */
#include "net.h"
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define CHECK(call)                                                   \
  do {                                                                \
    int status = call;                                                \
    if (status) return fputs(net_error_text(status), stderr), status; \
  } while (0)

int main(int count, char **arguments) {
  struct stat info;
  int file = open(arguments[1], O_RDONLY);
  if (count != 3 || file < 0 || fstat(file, &info)) return 255;
  size_t bytes = (size_t)info.st_size;
  char *data = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE, file, 0);
  if (!strcmp(arguments[2], "truncated")) bytes -= 4;
  if (!strcmp(arguments[2], "other")) data[20] ^= 1;
  if (!strcmp(arguments[2], "misaligned")) data += 4;
  if (!strcmp(arguments[2], "null")) data = NULL;
  const void *weights = NULL;
#ifdef DECODED
  size_t room = net_weights_size();
  void *memory = malloc(room);
  if (!strcmp(arguments[2], "small")) room -= 1;
  CHECK(net_weights_init(memory, room, data, bytes));
  weights = memory;
#else
  CHECK(net_weights_open(data, bytes, &weights));
#endif
  float x[2 * 40], y[2 * 30];
  for (int i = 0; i < 80; i++) x[i] = 1;
  size_t arena = net_arena_size();
  CHECK(net_run(weights, x, y, malloc(arena), arena));
  for (int i = 0; i < 60; i++) printf("%.9g\n", (double)y[i]);
  return 0;
}
