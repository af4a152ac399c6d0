/* Extended attributes: overlayfs leaves marks of its own among them, which must not stay on what is kept. */
#include "held.h"
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/xattr.h>

#define MARK "user.overlay."
#define ESCAPED "user.overlay.overlay." /* what the command itself had set as user.overlay. */

/*
 * By way of /proc, because these calls take no folder; the last name is not followed. Going into the folder
 * is a third of the price, and nothing here depends on where we are.
 */
static void xattr_path(char path[4096], int folder, const char *name) {
  if (name[0] && fchdir(folder) == 0) snprintf(path, 4096, "./%s", name);
  else if (name[0]) snprintf(path, 4096, "/proc/self/fd/%d/%s", folder, name);
  else snprintf(path, 4096, "/proc/self/fd/%d", folder);
}

static bool is_mark(const char *name) { return strncmp(name, MARK, strlen(MARK)) == 0; }
static bool is_escaped(const char *name) { return strncmp(name, ESCAPED, strlen(ESCAPED)) == 0; }

static ssize_t list_names(const char *path, bool follow, char **names) {
  *names = NULL;
  ssize_t size = follow ? listxattr(path, NULL, 0) : llistxattr(path, NULL, 0);
  if (size <= 0) return 0;
  *names = must(malloc((size_t)size + 256));
  ssize_t got = follow ? listxattr(path, *names, (size_t)size + 256) : llistxattr(path, *names, (size_t)size + 256);
  return got > 0 ? got : 0;
}

static ssize_t value_of(int folder, const char *name, const char *attribute, char *value, size_t room) {
  char path[4096];
  xattr_path(path, folder, name);
  return name[0] ? lgetxattr(path, attribute, value, room) : getxattr(path, attribute, value, room);
}

void xattrs_read(struct xattrs *x, int folder, const char *name) {
  char path[4096], value[8];
  xattr_path(path, folder, name);
  *x = (struct xattrs){0};
  x->size = list_names(path, !name[0], &x->names);
  for (char *at = x->names; at && at < x->names + x->size; at += strlen(at) + 1)
    if (is_mark(at) || is_escaped(at)) x->marked = true;
  x->opaque = x->marked && value_of(folder, name, MARK "opaque", value, sizeof value) == 1 && value[0] == 'y';
}

static bool is_users(const char *attribute) { return strncmp(attribute, "user.", 5) == 0; }

/* Every attribute of `a` is the same in `b`. `a` may lie in the overlay, where names may be escaped. */
static bool all_in(const struct xattrs *a, int folder_a, int folder_b, const char *name, bool escaped) {
  static char one[65536], other[65536];
  for (char *at = a->names; at && at < a->names + a->size; at += strlen(at) + 1) {
    char as[300];
    if (!is_users(at) || (escaped && is_mark(at) && !is_escaped(at))) continue;
    if (escaped && is_escaped(at)) snprintf(as, sizeof as, MARK "%s", at + strlen(ESCAPED));
    else if (!escaped && is_mark(at)) snprintf(as, sizeof as, ESCAPED "%s", at + strlen(MARK));
    else snprintf(as, sizeof as, "%s", at);
    ssize_t n = value_of(folder_a, name, at, one, sizeof one), m = value_of(folder_b, name, as, other, sizeof other);
    if (n != m || (n > 0 && memcmp(one, other, (size_t)n) != 0)) return false;
  }
  return true;
}

/* `a` in the overlay, `b` in the workspace. */
bool xattrs_equal(const struct xattrs *a, int folder_a, const struct xattrs *b, int folder_b, const char *name) {
  if (a->size == 0 && b->size == 0) return true;
  return all_in(a, folder_a, folder_b, name, true) && all_in(b, folder_b, folder_a, name, false);
}

static bool strip_at(const char *path, bool follow) {
  static char value[65536];
  char *names;
  ssize_t size = list_names(path, follow, &names);
  bool done = true;
  for (char *at = names; at && at < names + size; at += strlen(at) + 1) {
    if (!is_mark(at)) continue;
    if (is_escaped(at)) {
      char as[300];
      snprintf(as, sizeof as, MARK "%s", at + strlen(ESCAPED));
      ssize_t n = follow ? getxattr(path, at, value, sizeof value) : lgetxattr(path, at, value, sizeof value);
      if (n >= 0 && (follow ? setxattr(path, as, value, (size_t)n, 0) : lsetxattr(path, as, value, (size_t)n, 0)) < 0) done = false;
    }
  }
  for (char *at = names; at && at < names + size; at += strlen(at) + 1) {
    char original[300];
    if (!is_mark(at)) continue;
    /* Not one that was just given its own name back. */
    snprintf(original, sizeof original, ESCAPED "%s", at + strlen(MARK));
    bool restored = false;
    for (char *other = names; other < names + size; other += strlen(other) + 1) restored |= strcmp(other, original) == 0;
    if (!restored && (follow ? removexattr(path, at) : lremovexattr(path, at)) < 0 && errno != ENODATA) done = false;
  }
  free(names);
  return done;
}

/* Takes overlayfs's marks off, and gives the command's own their names back. Needs the write bit, for a moment. */
bool xattrs_strip(int folder, const char *name) {
  char path[4096];
  struct stamp s;
  xattr_path(path, folder, name);
  if (strip_at(path, !name[0])) return true;
  if (errno != EACCES || !look(folder, name, &s) || S_ISLNK(s.mode)) return false;
  struct timespec times[2] = {{.tv_nsec = UTIME_OMIT}, {s.mtime / 1000000000, s.mtime % 1000000000}};
  bool done = chmod(path, (s.mode & 07777) | 0200) == 0 && strip_at(path, !name[0]);
  chmod(path, s.mode & 07777);
  utimensat(AT_FDCWD, path, times, 0);
  return done;
}

/* The user's attributes of one folder become the other's. */
bool xattrs_copy(int from, int to) {
  static char value[65536];
  char source[4096], target[4096], *names;
  xattr_path(source, from, "");
  xattr_path(target, to, "");
  ssize_t size = list_names(target, true, &names);
  for (char *at = names; at && at < names + size; at += strlen(at) + 1)
    if (is_users(at) && getxattr(source, at, NULL, 0) < 0) removexattr(target, at);
  free(names);
  bool done = true;
  size = list_names(source, true, &names);
  for (char *at = names; at && at < names + size; at += strlen(at) + 1) {
    ssize_t n = is_users(at) && !is_mark(at) ? getxattr(source, at, value, sizeof value) : -1;
    if (n >= 0 && setxattr(target, at, value, (size_t)n, 0) < 0) done = false;
  }
  free(names);
  return done;
}
