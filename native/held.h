/*
 * What the parts that hold a command's changes share. overlay.c mounts the overlay that a command writes
 * into; effects.c reads from it what the command did; steps.c plans which of that is kept; settle.c does
 * the steps and takes them back; spans.c tells our own changes from others'; held.c is what can be asked of
 * all this; tree.c walks folders without following links. A run's folder has in it:
 *
 *   u0, w0, …   the overlay of each writable folder: what was written there, and the kernel's own files
 *   start       made when the command began: what changed outside at or after its ctime is a conflict
 *   list        what the command did, as it was shown
 *   made, old   folders that a partial keep needs; what was removed
 *   journal     the steps of keep, on disk before the first of them
 *   began       made before the first step, gone after the last
 *   state       the last word: kept, undoing, undone, redoing; a journal without it is a keep that goes on
 */
#pragma once
#include "launcher.h"
#include <stdio.h>
#include <sys/stat.h>

/* ---- overlay.c ---- */

bool overlay_mount(char **words);
bool overlay_begin(const char *run);

/* ---- tree.c ---- */

/* What was seen of a file, without its name. */
struct stamp {
  uint64_t dev, ino;
  int64_t size, mtime, ctime; /* nanoseconds */
  uint32_t mode, uid, gid, links;
  uint64_t device;
};

bool look(int folder, const char *name, struct stamp *s);
bool look_at(int root, const char *path, struct stamp *s);
int open_beneath(int root, const char *path, int flags);
int open_parent(int root, const char *path, const char **name);
int open_folder(int parent, const char *name);
int open_private(int parent, const char *name);
char **names_in(int folder, size_t *count);
void free_names(char **names, size_t count);
bool remove_tree(int parent, const char *name);
bool write_whole(int folder, const char *name, const void *bytes, size_t size, bool durable);
uint8_t *read_whole(int folder, const char *name, size_t *size);
bool mark_now(int folder, const char *name);
void wait_past(int64_t time);
int64_t changed_at(int folder, const char *name);

void json_text(FILE *out, const char *text);
_Noreturn void fail(const char *what, const char *path);

/* ---- xattrs.c ---- */

struct xattrs { char *names; ssize_t size; bool marked, opaque; }; /* `marked`: overlayfs left something there */

void xattrs_read(struct xattrs *x, int folder, const char *name);
bool xattrs_equal(const struct xattrs *a, int folder_a, const struct xattrs *b, int folder_b, const char *name);
bool xattrs_strip(int folder, const char *name);
bool xattrs_copy(int from, int to);

static inline bool is_folder(const struct stamp *s) { return S_ISDIR(s->mode); }
static inline bool is_whiteout(const struct stamp *s) { return S_ISCHR(s->mode) && s->device == 0; }

/* ---- effects.c, list.c ---- */

enum { CONFLICT = 1, IMPLIED = 2, MARKED = 4, TOUCHED = 8, ATTRIBUTES = 16, CHOSEN = 32 };
#define NO_PARENT UINT32_MAX

/* One path that is not as it was. `kind`: a(dded), c(hanged), r(emoved), m(ode), d (a folder in which something is). */
struct effect {
  uint8_t kind, flags;
  uint16_t root;
  uint32_t parent;           /* the added, removed or replaced folder that it is in */
  uint32_t next;             /* the first one behind everything that is in it */
  uint32_t spare;
  struct stamp now, before;  /* zero where there is none */
  char *path;
};

struct list {
  struct effect *items;
  uint32_t count, capacity;
  char **roots;
  struct stamp *root_stamps;
  uint32_t root_count;
};

void list_make(struct list *l, int run, char **roots, uint32_t count);
bool list_write(const struct list *l, int run);
void list_read(struct list *l, int run);
void list_print(const struct list *l, int run);

/* ---- steps.c ---- */

/*
 * One rename, or one folder's mode and times. `op`: R(emove: away into old/), A(dd: in from `source`),
 * X (exchange with `source`), M(ode of a folder), T(imes of a folder).
 */
struct step {
  uint8_t op, cache, shared; /* `cache`: a file that programs rewrite without changing what it says */
  uint8_t spare;
  uint32_t root, effect;
  uint64_t new_ino, old_ino;
  uint32_t new_mode, old_mode;
  int64_t new_mtime, old_mtime;
  uint64_t new_hash, old_hash; /* of small files; zero: not known */
  char *path, *source;       /* source: below the run's folder */
};

struct journal { struct step *steps; uint32_t count, capacity; };

bool steps_take_whole(const struct list *l, uint32_t from);
void steps_plan(struct journal *j, struct list *l, int run);
bool journal_write(const struct journal *j, int run);
void journal_read(struct journal *j, int run);

/* ---- settle.c ---- */

struct span { int64_t from, until; };

struct settle {
  int run;
  const char *name;
  struct list list;
  struct journal journal;
  int *roots;
  bool *refused;             /* of each effect: a conflict was found at its step */
  uint32_t refusals;
  struct span *spans;
  size_t span_count;
};

extern long changes_left;

void before_change(void);
void settle_refuse(struct settle *s, uint32_t effect);
void settle_set_state(struct settle *s, const char *word);
void settle_forward(struct settle *s);
void settle_back(struct settle *s);
bool step_is_of_folder(const struct step *step);
bool step_is_done(struct settle *s, const struct step *step);
uint64_t inode_in_workspace(struct settle *s, const struct step *step);
bool is_untouched(const struct settle *s, const struct step *step, int64_t since);
int open_step_folder(struct settle *s, const struct step *step);
void open_upper_folders(struct settle *s);
bool is_as_shown(const struct settle *s, const struct step *step);
void look_for_conflicts(struct settle *s);

/* ---- spans.c ---- */

void span_begin(struct settle *s);
void span_end(struct settle *s, int64_t until);
void spans_read(struct settle *s);
bool is_ours_since(const struct settle *s, const struct stamp *st, int64_t since);
uint64_t content_hash(int root, const char *path);

/* ---- held.c ---- */

int held_main(int argc, char **argv);
