/*
 * Limits of a whole command: processes and threads, memory, and the size of its temp folder. The kernel
 * holds a single process to its limits (start.c), but counts all of them together only in control groups,
 * which are rarely ours to make. So the keeper looks ten times a second, and ends the command as a whole.
 */
#include "launcher.h"
#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <time.h>

#define MAX_SEEN 65536
#define MAX_FILES 50000 /* of the temp folder that are looked at */
#define MAX_DEPTH 32

struct seen { pid_t pid, parent; uint32_t threads; uint64_t pages; bool ours; };

static struct seen *seen;
static size_t count;

static bool read_text_file(const char *path, char *to, size_t room) {
  int fd = open(path, O_RDONLY | O_CLOEXEC);
  ssize_t n = fd < 0 ? -1 : read(fd, to, room - 1);
  if (fd >= 0) close(fd);
  to[n > 0 ? n : 0] = 0;
  return n > 0;
}

static void look_at(const char *name) {
  char path[64], text[1024];
  struct seen s = {.pid = atoi(name)};
  unsigned long resident = 0, shared = 0;
  snprintf(path, sizeof path, "/proc/%.20s/stat", name);
  if (!read_text_file(path, text, sizeof text)) return;
  char *rest = strrchr(text, ')'); /* a name may hold blanks and brackets */
  if (!rest || sscanf(rest + 1, " %*c %d %*d %*d %*d %*d %*u %*u %*u %*u %*u %*u %*u %*d %*d %*d %*d %u", &s.parent, &s.threads) != 2) return;
  snprintf(path, sizeof path, "/proc/%.20s/statm", name);
  if (read_text_file(path, text, sizeof text) && sscanf(text, "%*u %lu %lu", &resident, &shared) == 2)
    s.pages = resident > shared ? resident - shared : 0;
  seen[count++] = s;
}

/* Everything that descends from this process; parents may come after their children. */
static void scan(void) {
  char self[32] = {0};
  if (readlink("/proc/self", self, sizeof self - 1) < 0) return;
  pid_t own = atoi(self);
  DIR *folder = opendir("/proc");
  seen = must(realloc(seen, MAX_SEEN * sizeof *seen));
  count = 0;
  for (struct dirent *entry; folder && count < MAX_SEEN && (entry = readdir(folder));)
    if (entry->d_name[0] >= '1' && entry->d_name[0] <= '9') look_at(entry->d_name);
  if (folder) closedir(folder);
  for (bool more = true; more;) {
    more = false;
    for (size_t i = 0; i < count; i++) {
      if (seen[i].ours || seen[i].pid == own) continue;
      bool child = seen[i].parent == own;
      for (size_t k = 0; !child && k < count; k++) child = seen[k].ours && seen[k].pid == seen[i].parent;
      if (child) seen[i].ours = more = true;
    }
  }
}

/* Bytes in a folder, each file once, links not followed. */
static uint64_t folder_size(int folder, int depth, uint32_t *files) {
  uint64_t bytes = 0;
  DIR *list = fdopendir(folder);
  if (!list) { close(folder); return 0; }
  for (struct dirent *entry; *files < MAX_FILES && (entry = readdir(list));) {
    struct stat st;
    if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0) continue;
    (*files)++;
    if (fstatat(dirfd(list), entry->d_name, &st, AT_SYMLINK_NOFOLLOW) < 0) continue;
    bytes += (uint64_t)st.st_blocks * 512;
    int below = S_ISDIR(st.st_mode) && depth < MAX_DEPTH ? openat(dirfd(list), entry->d_name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC) : -1;
    if (below >= 0) bytes += folder_size(below, depth + 1, files);
  }
  closedir(list);
  return bytes;
}

static uint64_t number_after(const char *text, const char *name) {
  const char *found = strstr(text, name);
  return found ? strtoull(found + strlen(name), NULL, 10) : 0;
}

/*
 * No command has more than the whole machine: where all processes together keep its limits, it does too. Two short
 * files say so, in place of two for each process there is.
 */
static bool all_keep(uint64_t processes, uint64_t memory) {
  char text[2048];
  unsigned threads = 0;
  if (!read_text_file("/proc/loadavg", text, sizeof text) || sscanf(text, "%*s %*s %*s %*u/%u", &threads) != 1) return false;
  if (processes && threads > processes) return false;
  if (!read_text_file("/proc/meminfo", text, sizeof text)) return false;
  const uint64_t total = number_after(text, "MemTotal:"), available = number_after(text, "MemAvailable:");
  const uint64_t swap = number_after(text, "SwapTotal:") - number_after(text, "SwapFree:");
  return available > 0 && (!memory || (total - available + swap) * 1024 <= memory);
}

static int64_t milliseconds(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

/* A machine's own temp folder may hold a hundred thousand files: going through it may cost a twentieth of a core. */
static bool temp_exceeded(const char *path, uint64_t most) {
  static int64_t not_before;
  const int64_t start = milliseconds();
  if (start < not_before) return false;
  uint32_t files = 0;
  int folder = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  bool exceeded = folder >= 0 && folder_size(folder, 0, &files) > most;
  const int64_t end = milliseconds();
  not_before = end + 20 * (end - start);
  return exceeded;
}

/* p(rocesses), m(emory), t(emp folder): what the command has too much of, or 0. `alone`: /dev/shm is its own. */
char limits_exceeded(const struct request *r, bool alone) {
  const uint64_t processes = r->caps[0], memory = r->caps[1], temp = r->caps[2];
  uint64_t threads = 0, pages = 0;
  count = 0;
  if ((processes || memory) && !all_keep(processes, memory)) scan();
  for (size_t i = 0; i < count; i++)
    if (seen[i].ours) threads += seen[i].threads, pages += seen[i].pages;
  struct statvfs shared;
  uint64_t bytes = pages * (uint64_t)sysconf(_SC_PAGESIZE);
  if (alone && statvfs("/dev/shm", &shared) == 0) bytes += (shared.f_blocks - shared.f_bfree) * shared.f_frsize;
  if (processes && threads > processes) return 'p';
  if (memory && bytes > memory) return 'm';
  return temp && r->temp && temp_exceeded(r->temp, temp) ? 't' : 0;
}
