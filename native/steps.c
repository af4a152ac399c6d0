/*
 * From what was chosen to the renames that keep it: all removals first, then what is added and changed
 * from the top down, then the modes and times of the folders around it. A folder that comes or goes as a
 * whole is one rename; one of which only a part was chosen is made, and its parts follow one by one.
 */
#include "held.h"
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>

static void add(struct journal *j, struct step s) {
  if (j->count == j->capacity) j->steps = must(realloc(j->steps, (j->capacity = j->capacity ? 2 * j->capacity : 64) * sizeof *j->steps));
  j->steps[j->count++] = s;
}

static char *text(const char *format, unsigned number, const char *path) {
  char *whole = must(malloc(strlen(path) + 64));
  sprintf(whole, format, number, path);
  return whole;
}

static char *in_upper(const struct effect *e) { return text(e->path[0] ? "u%u/%s" : "u%u%s", e->root, e->path); }

static bool is_chosen(const struct effect *e) { return (e->flags & CHOSEN) && !(e->flags & CONFLICT); }

/* Everything in it too. */
bool steps_take_whole(const struct list *l, uint32_t from) {
  for (uint32_t i = from; i < l->items[from].next; i++)
    if (!is_chosen(&l->items[i]) && !(l->items[i].flags & IMPLIED)) return false;
  return true;
}

static bool is_wanted(const struct list *l, uint32_t from) {
  for (uint32_t i = from; i < l->items[from].next; i++)
    if (is_chosen(&l->items[i])) return true;
  return false;
}

/* git rewrites its index when it only looks: what it says is made from the rest. */
static bool is_cache(const char *path) {
  size_t size = strlen(path), length = strlen(".git/index");
  return size >= length && strcmp(path + size - length, ".git/index") == 0 && (size == length || path[size - length - 1] == '/');
}

static struct step step_of(const struct list *l, uint32_t index, char op) {
  const struct effect *e = &l->items[index];
  return (struct step){.op = (uint8_t)op, .cache = is_cache(e->path), .root = e->root, .effect = index, .new_ino = e->now.ino,
                       .old_ino = e->before.ino, .new_mode = e->now.mode, .old_mode = e->before.mode, .new_mtime = e->now.mtime,
                       .old_mtime = e->before.mtime, .path = must(strdup(e->path)), .source = in_upper(e)};
}

static void plan_removals(struct journal *j, const struct list *l) {
  for (uint32_t i = 0; i < l->count;) {
    const struct effect *e = &l->items[i];
    if (e->kind != 'r' || (e->flags & IMPLIED) || !steps_take_whole(l, i)) {
      i++; /* of a folder that stays, its parts are looked at one by one */
      continue;
    }
    struct step s = step_of(l, i, 'R');
    free(s.source);
    s.source = text("old/%u%s", i, "");
    add(j, s);
    i = e->next;
  }
}

/* An empty folder like the one the command made, for the parts that were chosen. */
static void plan_folder(struct journal *j, const struct list *l, uint32_t index, int run) {
  struct step s = step_of(l, index, 'A');
  struct stamp made;
  free(s.source);
  s.source = text("made/%u%s", index, "");
  if (mkdirat(run, s.source, 0700) < 0 && errno != EEXIST) fail("a folder cannot be made", s.path);
  if (fchmodat(run, s.source, (l->items[index].now.mode & 07777) | 0700, 0) < 0 || !look(run, s.source, &made))
    fail("a folder cannot be made", s.path);
  s.new_ino = made.ino;
  s.shared = 1;
  add(j, s);
}

static void plan_changes(struct journal *j, const struct list *l, int run) {
  for (uint32_t i = 0; i < l->count;) {
    const struct effect *e = &l->items[i];
    bool folder = is_folder(&e->now);
    uint32_t next = i + 1;
    if (e->kind == 'a' && !(e->flags & IMPLIED)) {
      if (steps_take_whole(l, i)) add(j, step_of(l, i, 'A')), next = e->next;
      else if (folder && is_wanted(l, i)) plan_folder(j, l, i, run);
      else next = e->next;
    } else if ((e->kind == 'c' || (e->kind == 'm' && !folder)) && is_chosen(e)) {
      add(j, step_of(l, i, 'X'));
      next = e->next;
    }
    i = next;
  }
}

/*
 * The folders around what was done get the mode and the times that they had for the command. One that is
 * closed to us is opened for as long as the steps take (settle.c), so its mode is a step even if it stays.
 */
static void plan_folders(struct journal *j, const struct list *l) {
  uint32_t *before = must(calloc(l->count + 1, sizeof *before)); /* steps of the effects before this one */
  for (uint32_t i = 0; i < j->count; i++) before[j->steps[i].effect + 1]++;
  for (uint32_t i = 0; i < l->count; i++) before[i + 1] += before[i];
  for (uint32_t i = l->count; i-- > 0;) {
    const struct effect *e = &l->items[i];
    if ((e->kind != 'd' && e->kind != 'm') || !is_folder(&e->now)) continue;
    bool chosen = e->kind == 'm' && is_chosen(e), inside = before[e->next] > before[i];
    if (chosen || (inside && (e->now.mode & e->before.mode & 0700) != 0700)) {
      struct step s = step_of(l, i, 'M');
      if (!chosen) s.new_mode = s.old_mode;
      s.shared = chosen && (e->flags & ATTRIBUTES) != 0;
      add(j, s);
    }
    if (chosen || inside) add(j, step_of(l, i, 'T'));
  }
  free(before);
}

void steps_plan(struct journal *j, struct list *l, int run) {
  *j = (struct journal){0};
  if ((mkdirat(run, "old", 0700) < 0 || mkdirat(run, "made", 0700) < 0) && errno != EEXIST) fail("the run's folder cannot be written", "old");
  plan_removals(j, l);
  plan_changes(j, l, run);
  plan_folders(j, l);
}

/* ---- on disk ---- */

static const char magic[8] = "journal2";

bool journal_write(const struct journal *j, int run) {
  struct buffer b = {0};
  buffer_add(&b, magic, sizeof magic);
  buffer_add(&b, &j->count, 4);
  for (uint32_t i = 0; i < j->count; i++) {
    struct step s = j->steps[i];
    s.path = s.source = NULL;
    buffer_add(&b, &s, sizeof s);
    buffer_add(&b, j->steps[i].path, strlen(j->steps[i].path) + 1);
    buffer_add(&b, j->steps[i].source, strlen(j->steps[i].source) + 1);
  }
  return write_whole(run, "journal", b.data + b.start, b.end - b.start, true);
}

/* Written whole by us and renamed into place, so only its version is looked at. */
void journal_read(struct journal *j, int run) {
  size_t size;
  uint8_t *bytes = read_whole(run, "journal", &size), *at = bytes;
  if (!bytes || size < sizeof magic + 4 || memcmp(bytes, magic, sizeof magic) != 0) {
    errno = EINVAL;
    fail("there is no journal of this run", "journal");
  }
  *j = (struct journal){.count = get32(bytes + sizeof magic)};
  j->steps = must(calloc(j->count + 1, sizeof(struct step)));
  at += sizeof magic + 4;
  for (uint32_t i = 0; i < j->count; i++) {
    memcpy(&j->steps[i], at, sizeof(struct step));
    at += sizeof(struct step);
    j->steps[i].path = (char *)at;
    at += strlen((char *)at) + 1;
    j->steps[i].source = (char *)at;
    at += strlen((char *)at) + 1;
  }
}
