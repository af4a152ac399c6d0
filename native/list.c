/* The list of what a run did: on disk, as it was shown, and for Node, one line of JSON for each. */
#include "held.h"
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>

static const char magic[8] = "effects1";

bool list_write(const struct list *l, int run) {
  struct buffer b = {0};
  buffer_add(&b, magic, sizeof magic);
  buffer_add(&b, &l->root_count, 4);
  buffer_add(&b, &l->count, 4);
  for (uint32_t i = 0; i < l->root_count; i++) {
    buffer_add(&b, &l->root_stamps[i], sizeof(struct stamp));
    buffer_add(&b, l->roots[i], strlen(l->roots[i]) + 1);
  }
  for (uint32_t i = 0; i < l->count; i++) {
    struct effect e = l->items[i];
    e.path = NULL;
    buffer_add(&b, &e, sizeof e);
    buffer_add(&b, l->items[i].path, strlen(l->items[i].path) + 1);
  }
  buffer_add(&b, magic, sizeof magic);
  return write_whole(run, "list", b.data + b.start, b.end - b.start, false);
}

static const uint8_t *take(const uint8_t **at, const uint8_t *end, size_t size) {
  if ((size_t)(end - *at) < size) errno = EINVAL, fail("a file of the run is not whole", "list");
  *at += size;
  return *at - size;
}

static char *take_text(const uint8_t **at, const uint8_t *end) {
  const uint8_t *zero = memchr(*at, 0, (size_t)(end - *at));
  return must(strdup((const char *)take(at, end, zero ? (size_t)(zero - *at) + 1 : SIZE_MAX)));
}

void list_read(struct list *l, int run) {
  size_t size;
  uint8_t *bytes = read_whole(run, "list", &size);
  if (!bytes) fail("there is no list of this run", "list");
  const uint8_t *at = bytes, *end = bytes + size;
  *l = (struct list){0};
  if (memcmp(take(&at, end, sizeof magic), magic, sizeof magic) != 0) errno = EINVAL, fail("this run's list is of another version", "list");
  l->root_count = get32(take(&at, end, 4));
  l->count = get32(take(&at, end, 4));
  l->roots = must(calloc(l->root_count + 1, sizeof(char *)));
  l->root_stamps = must(calloc(l->root_count + 1, sizeof(struct stamp)));
  l->items = must(calloc(l->count + 1, sizeof(struct effect)));
  for (uint32_t i = 0; i < l->root_count; i++) {
    memcpy(&l->root_stamps[i], take(&at, end, sizeof(struct stamp)), sizeof(struct stamp));
    l->roots[i] = take_text(&at, end);
  }
  for (uint32_t i = 0; i < l->count; i++) {
    memcpy(&l->items[i], take(&at, end, sizeof(struct effect)), sizeof(struct effect));
    l->items[i].path = take_text(&at, end);
  }
  free(bytes);
}

/* ---- for Node: one line for each ---- */

static const char *type_of(uint32_t mode) {
  return S_ISREG(mode) ? "file" : S_ISDIR(mode) ? "folder" : S_ISLNK(mode) ? "link" : S_ISFIFO(mode) ? "pipe" : S_ISSOCK(mode) ? "socket" : "device";
}

static void print_target(const char *key, int root, const char *path) {
  char target[4096];
  const char *name;
  int parent = open_parent(root, path, &name);
  ssize_t n = parent < 0 ? -1 : readlinkat(parent, name, target, sizeof target - 1);
  if (parent >= 0) close(parent);
  if (n < 0) return;
  target[n] = 0;
  printf(",\"%s\":", key);
  json_text(stdout, target);
}

static void print_effect(const struct effect *e, uint32_t index, int up, int low) {
  const char *kinds = "acrm", *words[] = {"added", "changed", "removed", "mode"};
  const struct stamp *is = e->kind == 'r' ? &e->before : &e->now;
  printf("{\"index\":%u,\"root\":%u,\"path\":", index, e->root);
  json_text(stdout, e->path[0] ? e->path : ".");
  printf(",\"kind\":\"%s\",\"type\":\"%s\"", words[strchr(kinds, e->kind) - kinds], type_of(is->mode));
  if (e->kind == 'c' && (e->now.mode ^ e->before.mode) & S_IFMT) printf(",\"typeBefore\":\"%s\"", type_of(e->before.mode));
  if (e->now.ino && S_ISREG(e->now.mode)) printf(",\"size\":%lld", (long long)e->now.size);
  if (e->before.ino && S_ISREG(e->before.mode)) printf(",\"sizeBefore\":%lld", (long long)e->before.size);
  if (e->now.ino) printf(",\"mode\":%u", e->now.mode & 07777);
  if (e->before.ino) printf(",\"modeBefore\":%u", e->before.mode & 07777);
  if (e->now.ino && S_ISLNK(e->now.mode)) print_target("target", up, e->path);
  if (e->before.ino && S_ISLNK(e->before.mode)) print_target("targetBefore", low, e->path);
  if (e->before.links > 1 && !is_folder(&e->before)) printf(",\"otherNames\":%u", e->before.links - 1);
  if (e->parent != NO_PARENT) printf(",\"inside\":%u", e->parent);
  if (e->flags & TOUCHED) printf(",\"touched\":true");
  if (e->flags & ATTRIBUTES) printf(",\"attributes\":true");
  if (e->flags & IMPLIED) printf(",\"implied\":true");
  if (e->flags & CONFLICT) printf(",\"conflict\":true");
  printf("}\n");
}

void list_print(const struct list *l, int run) {
  int up = -1, low = -1;
  for (uint32_t i = 0, root = UINT32_MAX; i < l->count; i++) {
    const struct effect *e = &l->items[i];
    if (e->root != root) {
      char name[16];
      snprintf(name, sizeof name, "u%u", root = e->root);
      close_fd(&up);
      close_fd(&low);
      up = open_folder(run, name);
      low = open(l->roots[root], O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    }
    if (e->kind != 'd') print_effect(e, i, up, low);
  }
  printf("{\"end\":true}\n");
}
