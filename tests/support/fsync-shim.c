/*
 * Preloaded into a process under test (LD_PRELOAD), it decides what becomes of each sync and read of a file whose path
 * contains FSYNC_SHIM_MATCH. The control file FSYNC_SHIM_CONTROL is shared memory of four 32-bit numbers, which the test
 * writes while the process runs: [0] syncs left until one fails with EIO (0: none fails), [1] microseconds every sync
 * takes longer, [2] syncs seen so far, [3] reads left until one fails with EIO (0: none fails).
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static volatile int32_t *control(void) {
  static volatile int32_t *shared;
  if (shared == NULL) {
    const char *path = getenv("FSYNC_SHIM_CONTROL");
    int fd = path == NULL ? -1 : open(path, O_RDWR);
    if (fd < 0) return NULL;
    void *mapped = mmap(NULL, 16, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    close(fd);
    if (mapped == MAP_FAILED) return NULL;
    shared = mapped;
  }
  return shared;
}

static int is_watched(int fd) {
  const char *match = getenv("FSYNC_SHIM_MATCH");
  char link[64], path[4096];
  snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
  ssize_t length = readlink(link, path, sizeof path - 1);
  if (match == NULL || length < 0) return 0;
  path[length] = 0;
  return strstr(path, match) != NULL;
}

static int sync_with(const char *name, int fd) {
  int (*real)(int) = dlsym(RTLD_NEXT, name);
  volatile int32_t *shared = control();
  if (shared != NULL && is_watched(fd)) {
    shared[2] += 1;
    if (shared[1] > 0) usleep(shared[1]);
    if (shared[0] > 0 && --shared[0] == 0) {
      errno = EIO;
      return -1;
    }
  }
  return real(fd);
}

int fsync(int fd) { return sync_with("fsync", fd); }
int fdatasync(int fd) { return sync_with("fdatasync", fd); }

/* Files are read at a place: this is how SQLite does it, and nobody else here. */
ssize_t pread64(int fd, void *buffer, size_t length, off64_t at) {
  ssize_t (*real)(int, void *, size_t, off64_t) = dlsym(RTLD_NEXT, "pread64");
  volatile int32_t *shared = control();
  if (shared != NULL && shared[3] > 0 && is_watched(fd) && --shared[3] == 0) {
    errno = EIO;
    return -1;
  }
  return real(fd, buffer, length, at);
}

ssize_t pread(int fd, void *buffer, size_t length, off_t at) { return pread64(fd, buffer, length, at); }
