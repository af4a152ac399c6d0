/*
 * What a held command did, read from its overlay: each path that was added, changed, removed or given
 * another mode. The kernel's way of writing it down: a removed name is a character device 0:0, a folder
 * marked opaque hides everything that was in it, and so do the folders inside it, without a mark. A file
 * that was only opened for writing lies there as well, and is no effect unless something in it differs.
 */
#include "held.h"
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>

struct walk {
  struct list *list;
  uint16_t root;
  int64_t start;             /* the command's; what changed outside at or after it is a conflict */
};

static uint32_t add(struct walk *w, struct effect e) {
  struct list *l = w->list;
  if (l->count == l->capacity) l->items = must(realloc(l->items, (l->capacity = l->capacity ? 2 * l->capacity : 64) * sizeof *l->items));
  e.root = w->root;
  if (e.before.ino && e.kind != 'd' && e.before.ctime >= w->start) e.flags |= CONFLICT;
  l->items[l->count] = e;
  l->items[l->count].next = l->count + 1;
  return l->count++;
}

static char *join(const char *path, const char *name) {
  char *whole = must(malloc(strlen(path) + strlen(name) + 2));
  sprintf(whole, "%s%s%s", path, path[0] ? "/" : "", name);
  return whole;
}

static void close_up(struct walk *w, uint32_t from) { w->list->items[from].next = w->list->count; }

/* A conflict anywhere in a folder that goes as a whole is one of the folder. */
static void raise_conflict(struct walk *w, uint32_t from) {
  struct effect *items = w->list->items;
  for (uint32_t i = from + 1; i < w->list->count; i++) items[from].flags |= items[i].flags & CONFLICT;
}

static void removed(struct walk *w, int low, const char *name, const struct stamp *before, char *path, uint32_t parent, uint8_t flags) {
  uint32_t self = add(w, (struct effect){.kind = 'r', .flags = flags, .parent = parent, .before = *before, .path = path});
  if (!is_folder(before)) return;
  int fd = open_folder(low, name);
  size_t count = 0;
  char **names = fd < 0 ? NULL : names_in(fd, &count);
  if (!names && errno != EACCES) fail("a folder cannot be read", path); /* one that is closed to us is counted as one */
  for (size_t i = 0; i < count; i++) {
    struct stamp s;
    if (look(fd, names[i], &s)) removed(w, fd, names[i], &s, join(path, names[i]), self, flags);
  }
  if (names) free_names(names, count);
  if (fd >= 0) close(fd);
  close_up(w, self);
  raise_conflict(w, self);
}

static uint8_t marks(int up, const char *name) {
  struct xattrs x;
  xattrs_read(&x, up, name);
  free(x.names);
  return x.marked ? MARKED : 0;
}

static void added(struct walk *w, int up, const char *name, const struct stamp *now, char *path, uint32_t parent, uint8_t flags) {
  uint32_t self = add(w, (struct effect){.kind = 'a', .flags = flags | marks(up, name), .parent = parent, .now = *now, .path = path});
  if (!is_folder(now)) return;
  int fd = open_private(up, name);
  size_t count = 0;
  char **names = fd < 0 ? NULL : names_in(fd, &count);
  if (!names) fail("a folder of the run cannot be read", path);
  for (size_t i = 0; i < count; i++) {
    struct stamp s;
    if (!look(fd, names[i], &s)) continue;
    if (is_whiteout(&s)) unlinkat(fd, names[i], 0); /* hides something that is no longer there */
    else added(w, fd, names[i], &s, join(path, names[i]), self, flags);
  }
  free_names(names, count);
  close(fd);
  if ((now->mode & 0700) != 0700) fchmodat(up, name, now->mode & 07777, 0);
  close_up(w, self);
}

/* A file where a folder was, or the other way round: what was in it goes, or comes, with it. */
static void replaced(
  struct walk *w, int up, int low, const char *name, const struct stamp *now, const struct stamp *before, char *path,
  uint32_t parent
) {
  uint32_t self = add(w, (struct effect){.kind = 'c', .flags = marks(up, name), .parent = parent, .now = *now, .before = *before, .path = path});
  int fd = is_folder(now) ? open_private(up, name) : open_folder(low, name);
  size_t count = 0;
  char **names = fd < 0 ? NULL : names_in(fd, &count);
  if (!names) fail("a folder cannot be read", path);
  for (size_t i = 0; i < count; i++) {
    struct stamp s;
    if (!look(fd, names[i], &s)) continue;
    if (is_whiteout(&s)) unlinkat(fd, names[i], 0);
    else if (is_folder(now)) added(w, fd, names[i], &s, join(path, names[i]), self, IMPLIED);
    else removed(w, fd, names[i], &s, join(path, names[i]), self, IMPLIED);
  }
  free_names(names, count);
  close(fd);
  if (is_folder(now) && (now->mode & 0700) != 0700) fchmodat(up, name, now->mode & 07777, 0);
  close_up(w, self);
  raise_conflict(w, self);
}

static bool equal_bytes(int up, int low, const char *name) {
  static uint8_t one[1 << 17], other[1 << 17];
  int a = openat(up, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC), b = openat(low, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
  bool equal = a >= 0 && b >= 0;
  for (ssize_t n = 1; equal && n > 0;) {
    n = read(a, one, sizeof one);
    ssize_t m = 0;
    for (ssize_t got; n > 0 && m < n && (got = read(b, other + m, (size_t)(n - m))) > 0;) m += got;
    if (n < 0 || m != (n > 0 ? n : 0) || (n > 0 && memcmp(one, other, (size_t)n) != 0)) equal = false;
  }
  if (a >= 0) close(a);
  if (b >= 0) close(b);
  return equal;
}

static bool equal_content(int up, int low, const char *name, const struct stamp *now, const struct stamp *before) {
  char one[4096], other[4096];
  if ((now->mode & S_IFMT) != (before->mode & S_IFMT)) return false;
  if (S_ISREG(now->mode)) return now->size == before->size && (now->size == 0 || equal_bytes(up, low, name));
  if (!S_ISLNK(now->mode)) return now->device == before->device;
  ssize_t n = readlinkat(up, name, one, sizeof one), m = readlinkat(low, name, other, sizeof other);
  return n >= 0 && n == m && memcmp(one, other, (size_t)n) == 0;
}

static void changed(
  struct walk *w, int up, int low, const char *name, const struct stamp *now, const struct stamp *before, char *path,
  uint32_t parent
) {
  struct xattrs x, y;
  xattrs_read(&x, up, name);
  xattrs_read(&y, low, name);
  struct effect e = {.kind = 'c', .flags = x.marked ? MARKED : 0, .parent = parent, .now = *now, .before = *before, .path = path};
  bool same_owner = now->uid == before->uid && now->gid == before->gid;
  if (equal_content(up, low, name, now, before)) {
    e.kind = 'm';
    if (now->mode == before->mode && same_owner) {
      if (!xattrs_equal(&x, up, &y, low, name)) e.flags |= ATTRIBUTES;
      else if (now->mtime != before->mtime) e.flags |= TOUCHED;
      else e.kind = 0; /* opened for writing, and left as it was */
    }
  }
  free(x.names);
  free(y.names);
  if (e.kind) add(w, e);
  else free(path);
}

static void merge(struct walk *w, int up, int low, const char *path, bool opaque, uint32_t parent);

/* A folder on both sides: its own mode, and what is in it. */
static void merged(
  struct walk *w, int up, int low, const char *name, const struct stamp *now, const struct stamp *before, char *path,
  bool opaque, uint32_t parent
) {
  struct xattrs x, y;
  xattrs_read(&x, up, name);
  xattrs_read(&y, low, name);
  struct effect e = {.kind = 'd', .flags = x.marked ? MARKED : 0, .parent = parent, .now = *now, .before = *before, .path = path};
  if (now->mode != before->mode) e.kind = 'm';
  if (!xattrs_equal(&x, up, &y, low, name)) e.kind = 'm', e.flags |= ATTRIBUTES;
  free(x.names);
  free(y.names);
  uint32_t self = add(w, e);
  int u = name[0] ? open_private(up, name) : dup(up), l = name[0] ? open_folder(low, name) : dup(low);
  if (u < 0 || l < 0) fail("a folder cannot be read", path);
  merge(w, u, l, path, opaque || x.opaque, parent);
  close(u);
  close(l);
  if (name[0] && (now->mode & 0700) != 0700) fchmodat(up, name, now->mode & 07777, 0);
  close_up(w, self);
}

static bool has_name(char **names, size_t count, const char *name) {
  size_t low = 0, high = count;
  while (low < high) {
    size_t middle = (low + high) / 2;
    int order = strcmp(names[middle], name);
    if (order == 0) return true;
    if (order < 0) low = middle + 1;
    else high = middle;
  }
  return false;
}

static void merge(struct walk *w, int up, int low, const char *path, bool opaque, uint32_t parent) {
  size_t count, others = 0;
  char **names = names_in(up, &count);
  if (!names) fail("a folder of the run cannot be read", path);
  for (size_t i = 0; i < count; i++) {
    struct stamp now, before;
    if (!look(up, names[i], &now)) fail("a file of the run cannot be looked at", path);
    bool had = look(low, names[i], &before);
    if (!had && errno != ENOENT) fail("a file cannot be looked at", path);
    char *at = join(path, names[i]);
    if (is_whiteout(&now)) {
      if (had) removed(w, low, names[i], &before, at, parent, 0);
      else free(at);
    } else if (!had) added(w, up, names[i], &now, at, parent, 0);
    else if (is_folder(&now) && is_folder(&before)) merged(w, up, low, names[i], &now, &before, at, opaque, parent);
    else if (is_folder(&now) || is_folder(&before)) replaced(w, up, low, names[i], &now, &before, at, parent);
    else changed(w, up, low, names[i], &now, &before, at, parent);
  }
  char **hidden = opaque ? names_in(low, &others) : NULL;
  for (size_t i = 0; i < others; i++) {
    struct stamp before;
    if (!has_name(names, count, hidden[i]) && look(low, hidden[i], &before))
      removed(w, low, hidden[i], &before, join(path, hidden[i]), parent, 0);
  }
  if (hidden) free_names(hidden, others);
  free_names(names, count);
}

void list_make(struct list *l, int run, char **roots, uint32_t count) {
  *l = (struct list){.roots = roots, .root_count = count, .root_stamps = must(calloc(count + 1, sizeof(struct stamp)))};
  for (uint32_t i = 0; i < count; i++) {
    char name[16];
    struct stamp now, before;
    snprintf(name, sizeof name, "u%u", i);
    struct walk w = {l, (uint16_t)i, changed_at(run, "start")};
    int up = open_private(run, name), low = open(roots[i], O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (up < 0) fail("this run's folder is not whole", name);
    if (low < 0 || !look(low, "", &before) || !look(up, "", &now)) fail("the folder cannot be opened", roots[i]);
    l->root_stamps[i] = before;
    merged(&w, up, low, "", &now, &before, must(strdup("")), false, NO_PARENT);
    close(up);
    close(low);
  }
}
