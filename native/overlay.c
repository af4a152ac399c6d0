/*
 * The overlay a held command writes into, mounted by the keeper while it still has its capabilities. The
 * workspace shows through; what is written goes to a folder of this run's own, outside of which nothing
 * changes. An overlay covers what was mounted below its root, so masks and protections are mounted again
 * on top of it. At last the place where all of this can be seen is covered.
 */
#include "held.h"
#include <errno.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/mount.h>
#include <sys/random.h>
#include <sys/syscall.h>

/* bwrap-argv.ts binds here: `runs`, the folder of all runs, and 0, 1, …: each writable root without mounts below it. */
#define HIDDEN "/dev/.callgate"
#define SYS_MOUNT_SETATTR 442
#define SYS_RENAMEAT2_NOREPLACE 1u

static int runs_fd = -1, run_fd = -1;
static char born[32];

struct mount_attributes { uint64_t set, clear, propagation, user_namespace; };

/* Adds to the flags a mount has; those it was locked with cannot be named one by one. */
static bool restrict_mount(const char *path, uint64_t flags) {
  struct mount_attributes a = {.set = flags};
  return syscall(SYS_MOUNT_SETATTR, AT_FDCWD, path, 0, &a, sizeof a) == 0;
}

static bool make_run_folder(void) {
  uint64_t random;
  if (getrandom(&random, sizeof random, 0) != sizeof random) return false;
  snprintf(born, sizeof born, "new-%016llx", (unsigned long long)random);
  runs_fd = open(HIDDEN "/runs", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (runs_fd < 0 || mkdirat(runs_fd, born, 0700) < 0) return false;
  run_fd = openat(runs_fd, born, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
  /* While this is held nobody sweeps the folder away. */
  return run_fd >= 0 && flock(run_fd, LOCK_SH | LOCK_NB) == 0;
}

static bool mount_root(const char *root, int index) {
  char upper[8], work[8], lower[64], options[512];
  struct stat st;
  snprintf(upper, sizeof upper, "u%d", index);
  snprintf(work, sizeof work, "w%d", index);
  snprintf(lower, sizeof lower, HIDDEN "/%d", index);
  if (stat(lower, &st) < 0 || mkdirat(run_fd, upper, 0700) < 0 || mkdirat(run_fd, work, 0700) < 0) return false;
  /* The top of an overlay looks as its upper folder does. */
  struct timespec times[2] = {st.st_atim, st.st_mtim};
  if (fchmodat(run_fd, upper, st.st_mode & 07777, 0) < 0 || utimensat(run_fd, upper, times, 0) < 0) return false;
  snprintf(options, sizeof options, "lowerdir=%s,upperdir=" HIDDEN "/runs/%s/%s,workdir=" HIDDEN "/runs/%s/%s,userxattr,volatile",
           lower, born, upper, born, work);
  return mount("overlay", root, "overlay", MS_NOSUID | MS_NODEV, options) == 0;
}

/* The root that a path lies in, as its other, uncovered mount. */
static bool below_root(char **words, const char *path, char *to, size_t room) {
  int index = 0;
  for (char **w = words; w[0] && w[1]; w += 2) {
    if (w[0][0] != 'o') continue;
    size_t length = strlen(w[1]);
    if (strncmp(path, w[1], length) == 0 && path[length] == '/')
      return (size_t)snprintf(to, room, HIDDEN "/%d%s", index, path + length) < room;
    index++;
  }
  return false;
}

static bool mount_again(char **words, char use, const char *path) {
  char source[4096];
  struct stat st;
  if (lstat(path, &st) < 0) return errno == ENOENT; /* gone since it was looked up: nothing to protect */
  switch (use) {
  case 'r': /* from below the overlay, where it cannot have been changed */
    return below_root(words, path, source, sizeof source) && mount(source, path, NULL, MS_BIND, NULL) == 0 &&
           restrict_mount(path, MS_RDONLY | MS_NOSUID | MS_NODEV);
  case 'w': /* a mount point, which cannot be renamed away */
    return mount(path, path, NULL, MS_BIND, NULL) == 0;
  case 'h':
    if (S_ISDIR(st.st_mode)) return mount("tmpfs", path, "tmpfs", MS_RDONLY | MS_NOSUID | MS_NODEV, "mode=000,size=4k") == 0;
    return mount("/dev/null", path, NULL, MS_BIND, NULL) == 0 && restrict_mount(path, MS_RDONLY | MS_NODEV);
  default: errno = EINVAL; return false;
  }
}

/*
 * `words` are pairs of a letter and a path: o (an overlay here), and then, in order, what lies on top:
 * r(ead-only), w(ritable, but not to be renamed), h(idden). None: the command's writes are its own.
 */
bool overlay_mount(char **words) {
  if (!words || !words[0]) return true;
  if (!make_run_folder()) return false;
  int index = 0;
  for (char **w = words; w[0] && w[1]; w += 2)
    if (w[0][0] == 'o' && !mount_root(w[1], index++)) return false;
  for (char **w = words; w[0] && w[1]; w += 2)
    if (w[0][0] != 'o' && !mount_again(words, w[0][0], w[1])) return false;
  return mount("tmpfs", HIDDEN, "tmpfs", MS_RDONLY | MS_NOSUID | MS_NODEV, "mode=000,size=4k") == 0;
}

/*
 * The command begins: its run gets the name that Node knows it by, and its start is marked. A request
 * that names a run where nothing is held, or none where something is, was meant for another keeper.
 */
bool overlay_begin(const char *run) {
  errno = EINVAL;
  if (!run) return run_fd < 0;
  if (run_fd < 0 || run[0] == '.' || strchr(run, '/')) return false;
  if (syscall(SYS_renameat2, runs_fd, born, runs_fd, run, SYS_RENAMEAT2_NOREPLACE) < 0) return false;
  if (!mark_now(run_fd, "start")) return false; /* what changed before bears an earlier time, and is no conflict */
  close_fd(&runs_fd);
  return true;
}
