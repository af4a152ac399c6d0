/*
 * Folders and files by descriptors: nothing here follows a link, leaves the mount it began in, or trusts
 * that a name still means what it meant a moment ago.
 */
#include "held.h"
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>

#define SYS_OPENAT2 437
#define ONLY_BENEATH (1u | 2u | 4u | 8u) /* no other mount, no magic link, no link, nothing above */

static int64_t nanoseconds(struct timespec t) { return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec; }

bool look(int folder, const char *name, struct stamp *s) {
  struct stat st;
  *s = (struct stamp){0};
  if (fstatat(folder, name, &st, AT_SYMLINK_NOFOLLOW | (name[0] ? 0 : AT_EMPTY_PATH)) < 0) return false;
  *s = (struct stamp){st.st_dev, st.st_ino, st.st_size, nanoseconds(st.st_mtim), nanoseconds(st.st_ctim),
                      st.st_mode, st.st_uid, st.st_gid, (uint32_t)st.st_nlink, st.st_rdev};
  return true;
}

int open_beneath(int root, const char *path, int flags) {
  struct { uint64_t flags, mode, resolve; } how = {(uint64_t)(flags | O_CLOEXEC | O_NOFOLLOW), 0, ONLY_BENEATH};
  return (int)syscall(SYS_OPENAT2, root, path[0] ? path : ".", &how, sizeof how);
}

/* The folder that a path lies in, and the path's last name. */
int open_parent(int root, const char *path, const char **name) {
  const char *slash = strrchr(path, '/');
  *name = slash ? slash + 1 : path;
  if (!slash) return open_beneath(root, "", O_PATH | O_DIRECTORY);
  char *folder = must(strndup(path, (size_t)(slash - path)));
  int fd = open_beneath(root, folder, O_PATH | O_DIRECTORY);
  int error = errno;
  free(folder);
  errno = error;
  return fd;
}

bool look_at(int root, const char *path, struct stamp *s) {
  const char *name;
  *s = (struct stamp){0};
  if (!path[0]) return look(root, "", s);
  int parent = open_parent(root, path, &name);
  if (parent < 0) return false;
  bool there = look(parent, name, s);
  int error = errno;
  close(parent);
  errno = error;
  return there;
}

int open_folder(int parent, const char *name) {
  return openat(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
}

/* A folder of our own, which its mode may close even to us. */
int open_private(int parent, const char *name) {
  struct stamp s;
  int fd = open_folder(parent, name);
  if (fd >= 0 && look(fd, "", &s) && (s.mode & 0700) == 0700) return fd;
  if (fd >= 0) close(fd);
  else if (errno != EACCES) return -1;
  if (!look(parent, name, &s) || !is_folder(&s) || fchmodat(parent, name, (s.mode & 07777) | 0700, 0) < 0) return -1;
  return open_folder(parent, name);
}

static int by_name(const void *a, const void *b) { return strcmp(*(char *const *)a, *(char *const *)b); }

/* Sorted. NULL if the folder cannot be read. */
char **names_in(int folder, size_t *count) {
  int own = openat(folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  DIR *d = own < 0 ? NULL : fdopendir(own);
  char **names = must(malloc(sizeof(char *)));
  size_t capacity = 1;
  *count = 0;
  if (!d) {
    if (own >= 0) close(own);
    free(names);
    return NULL;
  }
  errno = 0;
  for (struct dirent *e; (e = readdir(d));) {
    if (strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0) continue;
    if (*count == capacity) names = must(realloc(names, (capacity *= 2) * sizeof(char *)));
    names[(*count)++] = must(strdup(e->d_name));
  }
  int error = errno;
  closedir(d);
  if (error) {
    free_names(names, *count);
    errno = error;
    return NULL;
  }
  qsort(names, *count, sizeof(char *), by_name);
  return names;
}

void free_names(char **names, size_t count) {
  for (size_t i = 0; i < count; i++) free(names[i]);
  free(names);
}

/* All of it, whatever its modes are. True if it is gone. */
bool remove_tree(int parent, const char *name) {
  if (unlinkat(parent, name, 0) == 0 || errno == ENOENT) return true;
  if (errno != EISDIR && errno != EPERM) return false;
  int fd = open_private(parent, name);
  size_t count;
  char **names = fd < 0 ? NULL : names_in(fd, &count);
  if (!names) {
    if (fd >= 0) close(fd);
    return false;
  }
  for (size_t i = 0; i < count; i++) remove_tree(fd, names[i]);
  free_names(names, count);
  close(fd);
  return unlinkat(parent, name, AT_REMOVEDIR) == 0;
}

/* Whole, or as it was before; `durable`: on the disk before this returns. */
bool write_whole(int folder, const char *name, const void *bytes, size_t size, bool durable) {
  char fresh[64];
  snprintf(fresh, sizeof fresh, "%s.new", name);
  int fd = openat(folder, fresh, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600);
  bool done = fd >= 0;
  for (size_t at = 0; done && at < size;) {
    ssize_t n = write(fd, (const uint8_t *)bytes + at, size - at);
    if (n < 0 && errno != EINTR) done = false;
    else if (n > 0) at += (size_t)n;
  }
  done = done && (!durable || fsync(fd) == 0);
  if (fd >= 0) close(fd);
  return done && renameat(folder, fresh, folder, name) == 0 && (!durable || fsync(folder) == 0);
}

uint8_t *read_whole(int folder, const char *name, size_t *size) {
  struct stat st;
  int fd = openat(folder, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
  if (fd < 0) return NULL;
  uint8_t *bytes = fstat(fd, &st) == 0 ? must(malloc((size_t)st.st_size + 1)) : NULL;
  size_t at = 0;
  for (ssize_t n; bytes && at < (size_t)st.st_size && (n = read(fd, bytes + at, (size_t)st.st_size - at)) > 0;) at += (size_t)n;
  close(fd);
  if (bytes) bytes[at] = 0;
  *size = at;
  return bytes;
}

/* Waits until the clock that files are stamped by has gone on, a few milliseconds: before and after then differ. */
static void next_tick(void) {
  struct timespec from, now;
  clock_gettime(CLOCK_REALTIME_COARSE, &from);
  for (int tries = 0; tries < 100; tries++) {
    clock_gettime(CLOCK_REALTIME_COARSE, &now);
    if (nanoseconds(now) != nanoseconds(from)) return;
    usleep(200);
  }
}

/*
 * Makes an empty file whose time of change is later than that of everything that was changed before, and no later than
 * that of what is changed from now on. Newer kernels stamp a file finely once somebody has looked at it, so that looking
 * and changing it again is enough; elsewhere a tick of the clock is waited for.
 */
bool mark_now(int folder, const char *name) {
  struct timespec tick;
  struct stat st;
  clock_gettime(CLOCK_REALTIME_COARSE, &tick);
  int fd = openat(folder, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
  bool made = fd >= 0 && fstat(fd, &st) == 0 && fchmod(fd, 0600) == 0 && fstat(fd, &st) == 0;
  if (made && nanoseconds(st.st_ctim) <= nanoseconds(tick)) {
    next_tick();
    made = fchmod(fd, 0600) == 0;
  }
  if (fd >= 0) close(fd);
  return made;
}

/*
 * Waits until whatever is changed from now on bears a later time than this one. A tick alone is not enough: a stamp may
 * be finer than the clock's ticks, and the next one is then the same until the clock has passed it.
 */
void wait_past(int64_t time) {
  struct timespec now;
  for (int tries = 0; tries < 500; tries++) {
    clock_gettime(CLOCK_REALTIME_COARSE, &now);
    if (nanoseconds(now) > time) return;
    usleep(200);
  }
}

int64_t changed_at(int folder, const char *name) {
  struct stamp s;
  return look(folder, name, &s) ? s.ctime : INT64_MAX;
}

/* ---- words ---- */

/* How many bytes of valid UTF-8 begin here; 0 if none do. */
static size_t utf8_length(const uint8_t *p) {
  if (p[0] < 0x80) return 1;
  size_t length = p[0] >= 0xf0 && p[0] < 0xf5 ? 4 : p[0] >= 0xe0 && p[0] < 0xf0 ? 3 : p[0] >= 0xc2 && p[0] < 0xe0 ? 2 : 0;
  for (size_t i = 1; i < length; i++) if ((p[i] & 0xc0) != 0x80) return 0;
  if (length == 3 && ((p[0] == 0xe0 && p[1] < 0xa0) || (p[0] == 0xed && p[1] > 0x9f))) return 0;
  if (length == 4 && ((p[0] == 0xf0 && p[1] < 0x90) || (p[0] == 0xf4 && p[1] > 0x8f))) return 0;
  return length;
}

/* A byte that is no text becomes a lone surrogate, so that no two names become one. */
void json_text(FILE *out, const char *text) {
  fputc('"', out);
  for (const uint8_t *p = (const uint8_t *)text; *p;) {
    size_t length = utf8_length(p);
    if (length == 0) fprintf(out, "\\udc%02x", *p++);
    else if (*p < 0x20 || *p == '"' || *p == '\\' || *p == 0x7f) fprintf(out, "\\u%04x", *p++);
    else {
      fwrite(p, 1, length, out);
      p += length;
    }
  }
  fputc('"', out);
}

/* The one way to end early: what failed, where, and the system's word for it. */
_Noreturn void fail(const char *what, const char *path) {
  int error = errno;
  printf("{\"error\":");
  json_text(stdout, what);
  printf(",\"path\":");
  json_text(stdout, path ? path : "");
  printf(",\"errno\":%d,\"reason\":", error);
  json_text(stdout, strerror(error));
  printf("}\n");
  fflush(stdout);
  _exit(1);
}
