/*
 * A control group of our own, for those whom nothing else in the kernel holds to a number of processes: root's
 * commands outside a pid namespace with a limit of its own (sandbox.c), since RLIMIT_NPROC does not concern root. The
 * launcher itself moves into it, so whatever it starts is in it from its first moment on. Version 1, or version 2 where
 * the group was delegated to us: there processes and threads can be counted in a threaded group below the own one.
 */
#include "launcher.h"
#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/xattr.h>

static char own[PATH_MAX], group[PATH_MAX + 64]; /* where we were, and where we are */
static bool joined, tried, threads_move;
static uint64_t allowed;

static bool put(const char *folder, const char *file, const char *text) {
  char path[PATH_MAX + 128];
  snprintf(path, sizeof path, "%s/%s", folder, file);
  int fd = open(path, O_WRONLY | O_CLOEXEC);
  bool done = fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text);
  close_fd(&fd);
  return done;
}

static bool has_word(const char *list, const char *word, char separator) {
  size_t length = strlen(word);
  for (const char *at = list; (at = strstr(at, word)); at += length)
    if ((at == list || at[-1] == separator) && (at[length] == 0 || at[length] == separator || at[length] == '\n')) return true;
  return false;
}

/* The folder of our group in this hierarchy: the mount's place, and our path below what the mount shows. */
static bool find_folder(bool second, const char *path) {
  FILE *mounts = fopen("/proc/self/mountinfo", "re");
  static char line[8192], root[PATH_MAX], place[PATH_MAX];
  bool found = false;
  while (mounts && !found && fgets(line, sizeof line, mounts)) {
    char *rest = strstr(line, " - "), kind[32], options[1024];
    if (!rest || sscanf(rest, " - %31s %*s %1023s", kind, options) != 2 || sscanf(line, "%*s %*s %*s %4095s %4095s", root, place) != 2) continue;
    if (strcmp(kind, second ? "cgroup2" : "cgroup") != 0 || (!second && !has_word(options, "pids", ','))) continue;
    size_t shown = strcmp(root, "/") == 0 ? 0 : strlen(root);
    if (strncmp(path, root, shown) != 0) continue;
    found = snprintf(own, sizeof own, "%s%s", place, path + shown) < (int)sizeof own;
    size_t end = strlen(own);
    if (end > 1 && own[end - 1] == '/') own[end - 1] = 0;
  }
  if (mounts) fclose(mounts);
  return found;
}

/* systemd marks what it has given away; the root of a container's own hierarchy is nobody else's. */
static bool is_delegated(const char *path) {
  char mark[2] = {0}, controllers[512] = {0}, file[PATH_MAX + 32];
  snprintf(file, sizeof file, "%s/cgroup.controllers", own);
  int fd = open(file, O_RDONLY | O_CLOEXEC);
  bool counts = fd >= 0 && read(fd, controllers, sizeof controllers - 1) > 0 && has_word(controllers, "pids", ' ');
  close_fd(&fd);
  if (!counts) return false;
  return strcmp(path, "/") == 0 || (getxattr(own, "trusted.delegate", mark, 1) == 1 && mark[0] == '1') ||
         (getxattr(own, "user.delegate", mark, 1) == 1 && mark[0] == '1');
}

static bool find_group(bool *second) {
  FILE *groups = fopen("/proc/self/cgroup", "re");
  static char line[PATH_MAX + 256];
  bool found = false;
  while (groups && !found && fgets(line, sizeof line, groups)) {
    line[strcspn(line, "\n")] = 0;
    char *controllers = strchr(line, ':'), *path = controllers ? strchr(controllers + 1, ':') : NULL;
    if (!path) continue;
    *path++ = 0;
    *second = controllers[1] == 0;
    if (*second) found = find_folder(true, path) && is_delegated(path);
    else if (has_word(controllers + 1, "pids", ',')) found = find_folder(false, path);
  }
  if (groups) fclose(groups);
  return found;
}

/* Groups of launchers that were killed; one that is in use cannot be removed. */
static void remove_stale(void) {
  DIR *folder = opendir(own);
  for (struct dirent *entry; folder && (entry = readdir(folder));)
    if (strncmp(entry->d_name, "callgate-", 9) == 0) unlinkat(dirfd(folder), entry->d_name, AT_REMOVEDIR);
  if (folder) closedir(folder);
}

/*
 * Moves this process, which has one thread, to the group. In version 1 a thread can move itself at once. If a process
 * is named by its number, the kernel first waits until no fork is under way on the machine, which takes milliseconds.
 */
static bool move_to(const char *folder) {
  char pid[32];
  snprintf(pid, sizeof pid, "%d", getpid());
  return (threads_move && put(folder, "tasks", "0")) || put(folder, "cgroup.procs", pid);
}

/* Whether we are in a group of our own from now on; tried once. */
static bool join(void) {
  bool second;
  if (tried) return joined;
  tried = true;
  if (!find_group(&second)) return false;
  threads_move = !second;
  remove_stale();
  snprintf(group, sizeof group, "%s/callgate-%d", own, getpid());
  if (mkdir(group, 0755) < 0) return false;
  joined = (!second || (put(group, "cgroup.type", "threaded") && put(own, "cgroup.subtree_control", "+pids"))) && move_to(group);
  if (!joined) rmdir(group);
  return joined;
}

/* So many processes of all commands at once, and ours; 0 is no limit. False: nothing holds them. */
bool cgroup_allow(uint64_t processes) {
  char text[32] = "max";
  bool before = joined;
  if (geteuid() != 0 || (!tried && processes == 0) || !join()) return false;
  if (!before) pool_forget(); /* those that wait already are not in it */
  if (processes == allowed) return true;
  if (processes) snprintf(text, sizeof text, "%llu", (unsigned long long)processes);
  allowed = processes;
  return put(group, "pids.max", text);
}

/* How the number of processes is held, for `doctor`: in bubblewrap, and elsewhere. */
int cgroup_tell(void) {
  bool user = geteuid() != 0, counted = !user && join();
  const char *others = user ? "user" : counted ? "group" : "watched";
  int told = printf("%s %s\n", has_own_pid_max() ? "namespace" : others, others);
  cgroup_leave();
  return told < 0;
}

void cgroup_leave(void) {
  if (!joined) return;
  move_to(own);
  rmdir(group);
  joined = false;
}
