/*
 * Keeps what a held command did, takes it back, and finishes what was interrupted.
 *
 * Every step is one rename that can be seen to be done from the inode that a name has, so whoever comes
 * after a kill goes on where it stopped. A file that is replaced is exchanged with the command's in one
 * call: there is never a moment without it, and what was there lies afterwards where the command's had
 * been, which is all that undo needs. What is not as it was shown is left alone and named as a conflict;
 * this is looked at before the first step, at every step, and once more after the last.
 */
#include "held.h"
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/syscall.h>

#define NOREPLACE 1u
#define EXCHANGE 2u

/* The tests end us before the Nth change of the disk. */
long changes_left = -1;

void before_change(void) {
  if (changes_left >= 0 && changes_left-- == 0) raise(SIGKILL);
}

static int rename_at(int from, const char *name, int to, const char *new_name, unsigned flags) {
  before_change();
  return (int)syscall(SYS_renameat2, from, name, to, new_name, flags);
}

/* A folder that moves is written to (its ..), which its mode may forbid; then it is opened for that moment. */
static bool move(int from, const char *name, int to, const char *new_name, unsigned flags) {
  if (rename_at(from, name, to, new_name, flags) == 0) return true;
  struct stamp a, b;
  if (errno != EACCES || !look(from, name, &a)) return false;
  bool other = look(to, new_name, &b) && is_folder(&b) && flags == EXCHANGE;
  if (!is_folder(&a) && !other) return errno = EACCES, false;
  if (is_folder(&a)) fchmodat(from, name, (a.mode & 07777) | 0700, 0);
  if (other) fchmodat(to, new_name, (b.mode & 07777) | 0700, 0);
  bool done = rename_at(from, name, to, new_name, flags) == 0;
  int error = errno;
  if (is_folder(&a)) fchmodat(done ? to : from, done ? new_name : name, a.mode & 07777, 0);
  if (other) fchmodat(done ? from : to, done ? name : new_name, b.mode & 07777, 0);
  errno = error;
  return done;
}

void settle_refuse(struct settle *s, uint32_t effect) {
  if (!s->refused[effect]) s->refusals++;
  s->refused[effect] = true;
}

static bool is_same(const struct stamp *a, const struct stamp *b) {
  return a->dev == b->dev && a->ino == b->ino && a->size == b->size && a->mtime == b->mtime && a->ctime == b->ctime &&
    a->mode == b->mode && a->uid == b->uid && a->gid == b->gid;
}

/* Is this descriptor still the folder that the path leads to? Somebody may have moved it away under us. */
static bool is_in_place(int root, const char *path, int parent) {
  const char *name;
  struct stamp a, b;
  int again = open_parent(root, path, &name);
  bool same = again >= 0 && look(again, "", &a) && look(parent, "", &b) && a.ino == b.ino && a.dev == b.dev;
  if (again >= 0) close(again);
  return same;
}

/* One rename between the workspace and the run's folder; `in`: into the workspace. It is taken back if it went astray. */
static bool transfer(struct settle *s, const struct step *step, bool in, unsigned flags) {
  const char *name, *source;
  int root = s->roots[step->root];
  int outside = open_parent(root, step->path, &name), inside = open_parent(s->run, step->source, &source);
  bool done = false;
  if (outside >= 0 && inside >= 0) {
    done = in ? move(inside, source, outside, name, flags) : move(outside, name, inside, source, flags);
    if (done && !is_in_place(root, step->path, outside)) {
      if (in) move(outside, name, inside, source, flags);
      else move(inside, source, outside, name, flags);
      done = false;
    }
  }
  if (outside >= 0) close(outside);
  if (inside >= 0) close(inside);
  return done;
}

uint64_t inode_in_workspace(struct settle *s, const struct step *step) {
  struct stamp st;
  return look_at(s->roots[step->root], step->path, &st) ? st.ino : 0;
}

static uint64_t inode_in_run(struct settle *s, const struct step *step) {
  struct stamp st;
  return look_at(s->run, step->source, &st) ? st.ino : 0;
}

/* Seen from the disk. R and X: the run has what was there before. A: it no longer has what came. */
bool step_is_done(struct settle *s, const struct step *step) {
  uint64_t there = inode_in_run(s, step);
  return step->op == 'A' ? there == 0 : there == step->old_ino;
}

static void do_step(struct settle *s, const struct step *step) {
  if (step_is_done(s, step)) return;
  uint64_t there = inode_in_workspace(s, step);
  bool as_shown = step->op == 'A' ? there == 0 : there == step->old_ino;
  bool done = as_shown && transfer(s, step, step->op != 'R', step->op == 'X' ? EXCHANGE : NOREPLACE);
  if (!done) return settle_refuse(s, step->effect);
  /* What came out must be what was shown: another may have been put there in the last moment. */
  if (step->op == 'A' || inode_in_run(s, step) == step->old_ino) return;
  transfer(s, step, step->op == 'X', step->op == 'X' ? EXCHANGE : NOREPLACE);
  settle_refuse(s, step->effect);
}

static void undo_step(struct settle *s, const struct step *step) {
  if (!step_is_done(s, step)) return;
  uint64_t there = inode_in_workspace(s, step);
  bool as_left = step->op == 'R' ? there == 0 : there == step->new_ino || (step->cache && there != 0);
  if (!as_left || !transfer(s, step, step->op != 'A', step->op == 'X' ? EXCHANGE : NOREPLACE)) settle_refuse(s, step->effect);
}

/* ---- folders ---- */

int open_step_folder(struct settle *s, const struct step *step) {
  return open_beneath(s->roots[step->root], step->path, O_PATH | O_DIRECTORY);
}

static void set_folder(struct settle *s, const struct step *step, bool forward) {
  char link[32], saved[32];
  int fd = open_step_folder(s, step);
  if (fd < 0) return; /* gone since: nothing of it can be set */
  snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
  before_change();
  if (step->op == 'T') {
    int64_t time = forward ? step->new_mtime : step->old_mtime;
    struct timespec times[2] = {{.tv_nsec = UTIME_OMIT}, {time / 1000000000, time % 1000000000}};
    utimensat(AT_FDCWD, link, times, 0);
  } else {
    if (step->shared) {
      snprintf(saved, sizeof saved, "made/m%u", step->effect);
      int from = open_beneath(s->run, forward ? step->source : saved, O_PATH | O_DIRECTORY);
      if (from >= 0) xattrs_copy(from, fd), close(from);
    }
    chmod(link, (forward ? step->new_mode : step->old_mode) & 07777);
  }
  close(fd);
}

/* Folders that are closed to us are opened while we work in them; their own steps come last and close them. */
static void open_folders(struct settle *s) {
  for (uint32_t i = s->journal.count; i-- > 0;) {
    const struct step *step = &s->journal.steps[i];
    struct stamp st;
    char link[32];
    int fd = step->op == 'M' ? open_step_folder(s, step) : -1;
    if (fd < 0) continue;
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    if (look(fd, "", &st) && (st.mode & 0700) != 0700) chmod(link, (st.mode & 07777) | 0700);
    close(fd);
  }
}

/* The same in the run's own folder, where nobody minds that they stay open; one that moves as a whole keeps its mode. */
void open_upper_folders(struct settle *s) {
  const struct list *l = &s->list;
  for (uint32_t i = 0; i < l->count; i++) {
    const struct effect *e = &l->items[i];
    if (!is_folder(&e->now) || (e->now.mode & 0700) == 0700) continue;
    if ((e->kind == 'a' && steps_take_whole(l, i)) || (e->flags & IMPLIED) || e->kind == 'c') continue;
    char upper[16], link[32];
    snprintf(upper, sizeof upper, "u%u", e->root);
    int top = open_folder(s->run, upper), fd = top < 0 ? -1 : open_beneath(top, e->path, O_PATH | O_DIRECTORY);
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    if (fd >= 0) chmod(link, (e->now.mode & 07777) | 0700), close(fd);
    if (top >= 0) close(top);
  }
}

bool step_is_of_folder(const struct step *step) { return step->op == 'M' || step->op == 'T'; }

static void set_folders(struct settle *s, bool forward) {
  for (uint32_t i = 0; i < s->journal.count; i++)
    if (step_is_of_folder(&s->journal.steps[i])) set_folder(s, &s->journal.steps[i], forward);
}

/* ---- is it as it was? ---- */

/* Nothing in this folder, itself left out, was changed at or after that time. */
static bool is_untouched_within(const struct settle *s, int folder, int64_t since) {
  size_t count;
  char **names = names_in(folder, &count);
  bool untouched = names != NULL || errno == EACCES;
  for (size_t i = 0; names && untouched && i < count; i++) {
    struct stamp st;
    untouched = look(folder, names[i], &st) && is_ours_since(s, &st, since);
    int fd = untouched && is_folder(&st) ? open_folder(folder, names[i]) : -1;
    if (fd >= 0) untouched = is_untouched_within(s, fd, since), close(fd);
  }
  if (names) free_names(names, count);
  return untouched;
}

bool is_untouched(const struct settle *s, const struct step *step, int64_t since) {
  struct stamp st;
  int root = s->roots[step->root];
  if (!look_at(root, step->path, &st) || !is_ours_since(s, &st, since)) return false;
  int fd = is_folder(&st) ? open_beneath(root, step->path, O_RDONLY | O_DIRECTORY) : -1;
  bool untouched = fd < 0 || is_untouched_within(s, fd, since);
  if (fd >= 0) close(fd);
  return untouched;
}

/* Has nobody changed, since it was listed, what this step replaces or removes? */
bool is_as_shown(const struct settle *s, const struct step *step) {
  struct stamp st;
  return look_at(s->roots[step->root], step->path, &st) && is_same(&st, &s->list.items[step->effect].before);
}

/* Before the first step: is everything that was chosen as it was when it was shown? */
void look_for_conflicts(struct settle *s) {
  struct list *l = &s->list;
  for (uint32_t i = 0; i < l->count; i++) {
    struct effect *e = &l->items[i];
    struct stamp st;
    const struct effect *above = e->parent == NO_PARENT ? NULL : &l->items[e->parent];
    bool within = above && (above->kind == 'a' || (above->kind == 'c' && is_folder(&above->now)));
    if (within) continue;
    bool there = look_at(s->roots[e->root], e->path, &st);
    if (e->kind == 'd' || (e->kind == 'm' && is_folder(&e->now))) {
      /* What lies in a folder has its own entries; of the folder itself only the mode is somebody's to set. */
      if (there && e->kind == 'm' && st.mode != e->before.mode) e->flags |= CONFLICT;
      if (there) e->before.mode = st.mode;
      continue;
    }
    if (e->kind == 'a' ? there : !there || !is_same(&st, &e->before)) e->flags |= CONFLICT;
  }
  for (uint32_t i = 0; i < l->count; i++)
    for (uint32_t p = l->items[i].parent; (l->items[i].flags & CONFLICT) && p != NO_PARENT; p = l->items[p].parent) l->items[p].flags |= CONFLICT;
}

/* After the last step: somebody who had a file open may have written into what we put away. That goes back. */
static void look_back(struct settle *s, int64_t start) {
  for (uint32_t i = 0; i < s->journal.count; i++) {
    const struct step *step = &s->journal.steps[i];
    const struct stamp *before = &s->list.items[step->effect].before;
    struct stamp st;
    if ((step->op != 'R' && step->op != 'X') || s->refused[step->effect]) continue;
    if (!look_at(s->run, step->source, &st) || st.ino != step->old_ino) continue;
    bool same = is_folder(&st) || (st.size == before->size && st.mtime == before->mtime);
    if (!same && step->old_hash) same = content_hash(s->run, step->source) == step->old_hash;
    int fd = same && is_folder(&st) ? open_beneath(s->run, step->source, O_RDONLY | O_DIRECTORY) : -1;
    if (fd >= 0) same = is_untouched_within(s, fd, start), close(fd);
    if (same) continue;
    transfer(s, step, true, step->op == 'X' ? EXCHANGE : NOREPLACE);
    settle_refuse(s, step->effect);
  }
}

/* ---- all of it ---- */

void settle_set_state(struct settle *s, const char *word) {
  before_change();
  if (!write_whole(s->run, "state", word, strlen(word), true)) fail("the run's state cannot be written", s->name);
}

/* Whoever changes a file after this gives it a later time than our last word has. */
static void end_steps(struct settle *s, const char *word) {
  settle_set_state(s, word);
  int64_t until = changed_at(s->run, "state");
  span_end(s, until);
  wait_past(until);
}

void settle_forward(struct settle *s) {
  span_begin(s);
  open_folders(s);
  for (uint32_t i = 0; i < s->journal.count; i++)
    if (!step_is_of_folder(&s->journal.steps[i])) do_step(s, &s->journal.steps[i]);
  look_back(s, changed_at(s->run, "start"));
  set_folders(s, true);
  end_steps(s, "kept");
}

void settle_back(struct settle *s) {
  span_begin(s);
  open_folders(s);
  for (uint32_t i = s->journal.count; i-- > 0;)
    if (!step_is_of_folder(&s->journal.steps[i])) undo_step(s, &s->journal.steps[i]);
  set_folders(s, false);
  end_steps(s, "undone");
}
