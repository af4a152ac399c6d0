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

struct settle {
  int run;
  const char *name;
  struct list list;
  struct journal journal;
  int *roots;
  bool *refused;             /* of each effect: a conflict was found at its step */
  uint32_t refusals;
};

/* The tests end us before the Nth change of the disk. */
static long changes_left = -1;

static void before_change(void) {
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

static void refuse(struct settle *s, uint32_t effect) {
  if (!s->refused[effect]) s->refusals++;
  s->refused[effect] = true;
}

static bool is_same(const struct stamp *a, const struct stamp *b) {
  return a->dev == b->dev && a->ino == b->ino && a->size == b->size && a->mtime == b->mtime && a->ctime == b->ctime && a->mode == b->mode && a->uid == b->uid && a->gid == b->gid;
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

static uint64_t inode_in_workspace(struct settle *s, const struct step *step) {
  struct stamp st;
  return look_at(s->roots[step->root], step->path, &st) ? st.ino : 0;
}

static uint64_t inode_in_run(struct settle *s, const struct step *step) {
  struct stamp st;
  return look_at(s->run, step->source, &st) ? st.ino : 0;
}

/* Seen from the disk. R and X: the run has what was there before. A: it no longer has what came. */
static bool is_done(struct settle *s, const struct step *step) {
  uint64_t there = inode_in_run(s, step);
  return step->op == 'A' ? there == 0 : there == step->old_ino;
}

static void do_step(struct settle *s, const struct step *step) {
  if (is_done(s, step)) return;
  uint64_t there = inode_in_workspace(s, step);
  bool as_shown = step->op == 'A' ? there == 0 : there == step->old_ino;
  bool done = as_shown && transfer(s, step, step->op != 'R', step->op == 'X' ? EXCHANGE : NOREPLACE);
  if (!done) return refuse(s, step->effect);
  /* What came out must be what was shown: another may have been put there in the last moment. */
  if (step->op == 'A' || inode_in_run(s, step) == step->old_ino) return;
  transfer(s, step, step->op == 'X', step->op == 'X' ? EXCHANGE : NOREPLACE);
  refuse(s, step->effect);
}

static void undo_step(struct settle *s, const struct step *step) {
  if (!is_done(s, step)) return;
  uint64_t there = inode_in_workspace(s, step);
  bool as_left = step->op == 'R' ? there == 0 : there == step->new_ino || (step->cache && there != 0);
  if (!as_left || !transfer(s, step, step->op != 'A', step->op == 'X' ? EXCHANGE : NOREPLACE)) refuse(s, step->effect);
}

/* ---- folders ---- */

static int open_step_folder(struct settle *s, const struct step *step) {
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
static void open_upper_folders(struct settle *s) {
  const struct list *l = &s->list;
  for (uint32_t i = 0; i < l->count; i++) {
    const struct effect *e = &l->items[i];
    if (!is_folder(&e->now) || (e->now.mode & 0700) == 0700 || (e->kind == 'a' && steps_take_whole(l, i)) || (e->flags & IMPLIED) || e->kind == 'c') continue;
    char upper[16], link[32];
    snprintf(upper, sizeof upper, "u%u", e->root);
    int top = open_folder(s->run, upper), fd = top < 0 ? -1 : open_beneath(top, e->path, O_PATH | O_DIRECTORY);
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    if (fd >= 0) chmod(link, (e->now.mode & 07777) | 0700), close(fd);
    if (top >= 0) close(top);
  }
}

static bool is_of_folder(const struct step *step) { return step->op == 'M' || step->op == 'T'; }

static void set_folders(struct settle *s, bool forward) {
  for (uint32_t i = 0; i < s->journal.count; i++)
    if (is_of_folder(&s->journal.steps[i])) set_folder(s, &s->journal.steps[i], forward);
}

/* ---- is it as it was? ---- */

/* Nothing in this folder, itself left out, was changed at or after that time. */
static bool is_untouched_within(int folder, int64_t since) {
  size_t count;
  char **names = names_in(folder, &count);
  bool untouched = names != NULL || errno == EACCES;
  for (size_t i = 0; names && untouched && i < count; i++) {
    struct stamp st;
    untouched = look(folder, names[i], &st) && st.ctime < since;
    int fd = untouched && is_folder(&st) ? open_folder(folder, names[i]) : -1;
    if (fd >= 0) untouched = is_untouched_within(fd, since), close(fd);
  }
  if (names) free_names(names, count);
  return untouched;
}

static bool is_untouched(int root, const char *path, int64_t since) {
  struct stamp st;
  if (!look_at(root, path, &st) || st.ctime >= since) return false;
  int fd = is_folder(&st) ? open_beneath(root, path, O_RDONLY | O_DIRECTORY) : -1;
  bool untouched = fd < 0 || is_untouched_within(fd, since);
  if (fd >= 0) close(fd);
  return untouched;
}

/* Before the first step: is everything that was chosen as it was when it was shown? */
static void look_for_conflicts(struct settle *s) {
  struct list *l = &s->list;
  for (uint32_t i = 0; i < l->count; i++) {
    struct effect *e = &l->items[i];
    struct stamp st;
    bool within = e->parent != NO_PARENT && (l->items[e->parent].kind == 'a' || (l->items[e->parent].kind == 'c' && is_folder(&l->items[e->parent].now)));
    if (e->kind == 'd' || within || (e->kind == 'm' && is_folder(&e->now))) continue;
    bool there = look_at(s->roots[e->root], e->path, &st);
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
    int fd = same && is_folder(&st) ? open_beneath(s->run, step->source, O_RDONLY | O_DIRECTORY) : -1;
    if (fd >= 0) same = is_untouched_within(fd, start), close(fd);
    if (same) continue;
    transfer(s, step, true, step->op == 'X' ? EXCHANGE : NOREPLACE);
    refuse(s, step->effect);
  }
}

/* ---- what can be asked for ---- */

static void open_run(struct settle *s, const char *path) {
  s->name = strrchr(path, '/') ? strrchr(path, '/') + 1 : path;
  s->run = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
  if (s->run < 0) fail("there is no such run", path);
  alarm(20); /* the command's last process lets go of the lock when it ends */
  if (flock(s->run, LOCK_EX) < 0) fail("the command still runs", path);
  alarm(0);
}

static void open_roots(struct settle *s) {
  struct list *l = &s->list;
  s->roots = must(calloc(l->root_count + 1, sizeof(int)));
  s->refused = must(calloc(l->count + 1, sizeof(bool)));
  for (uint32_t i = 0; i < l->root_count; i++) {
    struct stamp st;
    s->roots[i] = open(l->roots[i], O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (s->roots[i] < 0) fail("the folder cannot be opened", l->roots[i]);
    if (!look(s->roots[i], "", &st) || st.ino != l->root_stamps[i].ino) errno = ESTALE, fail("the folder is no longer the one the command ran in", l->roots[i]);
  }
}

static bool has_state(struct settle *s, const char *word) {
  size_t size;
  uint8_t *text = read_whole(s->run, "state", &size);
  bool same = text && strcmp((char *)text, word) == 0;
  free(text);
  return same;
}

static void set_state(struct settle *s, const char *word) {
  before_change();
  if (!write_whole(s->run, "state", word, strlen(word), true)) fail("the run's state cannot be written", s->name);
}

static void strip_chosen(struct settle *s) {
  for (uint32_t i = 0; i < s->list.count; i++) {
    const struct effect *e = &s->list.items[i];
    const char *name;
    if (!e->now.ino || e->kind == 'd' || !(e->flags & MARKED) || !(e->flags & (CHOSEN | IMPLIED))) continue;
    char upper[16];
    snprintf(upper, sizeof upper, "u%u", e->root);
    int top = open_folder(s->run, upper), parent = top < 0 || !e->path[0] ? -1 : open_parent(top, e->path, &name);
    if (parent >= 0) xattrs_strip(parent, name), close(parent);
    if (top >= 0) close(top);
  }
}

/* The attributes a folder had, for undo. */
static void save_attributes(struct settle *s) {
  for (uint32_t i = 0; i < s->journal.count; i++) {
    const struct step *step = &s->journal.steps[i];
    char saved[32];
    if (step->op != 'M' || !step->shared) continue;
    snprintf(saved, sizeof saved, "made/m%u", step->effect);
    if (mkdirat(s->run, saved, 0700) < 0 && errno != EEXIST) fail("the run's folder cannot be written", saved);
    int from = open_step_folder(s, step), to = open_folder(s->run, saved);
    if (from >= 0 && to >= 0) xattrs_copy(from, to);
    if (from >= 0) close(from);
    if (to >= 0) close(to);
  }
}

static void read_choice(struct list *l) {
  char word[32];
  while (scanf("%31s", word) == 1) {
    unsigned from, to;
    int got = strcmp(word, "all") == 0 ? (from = 0, to = l->count - 1, 2) : sscanf(word, "%u-%u", &from, &to);
    if (got == 1) to = from;
    if (got < 1 || l->count == 0 || to >= l->count || from > to) errno = EINVAL, fail("there is no such effect", word);
    for (; from <= to; from++) l->items[from].flags |= CHOSEN;
  }
}

static void print_path(const struct effect *e, bool first) {
  printf("%s{\"root\":%u,\"path\":", first ? "" : ",", e->root);
  json_text(stdout, e->path[0] ? e->path : ".");
  printf("}");
}

/* What was done, and what was left alone because somebody else had been there. */
static void print_outcome(struct settle *s, const char *word) {
  uint64_t bytes = 0;
  uint32_t done = 0, shown = 0;
  for (uint32_t i = 0; i < s->journal.count; i++) {
    const struct step *step = &s->journal.steps[i];
    const struct effect *e = &s->list.items[step->effect];
    if (is_of_folder(step) || s->refused[step->effect] || !is_done(s, step)) continue;
    done++;
    for (uint32_t k = step->effect; k < e->next; k++) bytes += S_ISREG(s->list.items[k].before.mode) ? (uint64_t)s->list.items[k].before.size : 0;
  }
  printf("{\"state\":\"%s\",\"steps\":%u,\"bytes\":%llu,\"conflicts\":[", word, done, (unsigned long long)bytes);
  for (uint32_t i = 0; i < s->list.count; i++) {
    const struct effect *e = &s->list.items[i];
    bool asked = e->flags & (CHOSEN | IMPLIED) || s->refused[i];
    if (e->kind != 'd' && asked && ((e->flags & CONFLICT) || s->refused[i])) print_path(e, shown++ == 0);
  }
  printf("]}\n");
}

/*
 * Looks at whatever was moved. The kernel gives a file that somebody has looked at a finer time when it is
 * changed next, so that a change right after our last step bears a later time than the state we write.
 */
static void look_at_all(struct settle *s) {
  struct stamp st;
  for (uint32_t i = 0; i < s->journal.count; i++) look_at(s->roots[s->journal.steps[i].root], s->journal.steps[i].path, &st);
}

static void go_forward(struct settle *s) {
  open_folders(s);
  for (uint32_t i = 0; i < s->journal.count; i++)
    if (!is_of_folder(&s->journal.steps[i])) do_step(s, &s->journal.steps[i]);
  look_back(s, changed_at(s->run, "start"));
  set_folders(s, true);
  look_at_all(s);
  set_state(s, "kept");
}

static void go_back(struct settle *s) {
  open_folders(s);
  for (uint32_t i = s->journal.count; i-- > 0;)
    if (!is_of_folder(&s->journal.steps[i])) undo_step(s, &s->journal.steps[i]);
  set_folders(s, false);
  look_at_all(s);
  set_state(s, "undone");
}

static int list_run(const char *path, char **roots, uint32_t count) {
  struct settle s = {0};
  struct stamp st;
  open_run(&s, path);
  if (look(s.run, "list", &st)) list_read(&s.list, s.run); /* it was shown as it was then */
  else {
    list_make(&s.list, s.run, roots, count);
    if (!list_write(&s.list, s.run)) fail("the list cannot be written", path);
  }
  list_print(&s.list, s.run);
  return 0;
}

static int keep_run(const char *path) {
  struct settle s = {0};
  struct stamp st;
  open_run(&s, path);
  if (look(s.run, "journal", &st)) errno = EEXIST, fail("this run was decided before", path);
  list_read(&s.list, s.run);
  open_roots(&s);
  read_choice(&s.list);
  look_for_conflicts(&s);
  open_upper_folders(&s);
  steps_plan(&s.journal, &s.list, s.run);
  strip_chosen(&s);
  save_attributes(&s);
  before_change();
  if (!journal_write(&s.journal, s.run)) fail("the journal cannot be written", path);
  go_forward(&s);
  print_outcome(&s, "kept");
  return 0;
}

/* A step that was done, whose outcome is no longer there as keep left it. */
static bool stands_against_undo(struct settle *s, const struct step *step, int64_t since) {
  if (is_of_folder(step) || step->cache || !is_done(s, step)) return false;
  if (step->op == 'R') return inode_in_workspace(s, step) != 0;
  return inode_in_workspace(s, step) != step->new_ino || !is_untouched(s->roots[step->root], step->path, since);
}

static bool stands_against_redo(struct settle *s, const struct step *step, int64_t since) {
  if (is_of_folder(step) || step->cache || is_done(s, step)) return false;
  if (step->op == 'A') return inode_in_workspace(s, step) != 0;
  return inode_in_workspace(s, step) != step->old_ino || !is_untouched(s->roots[step->root], step->path, since);
}

/* All of it, or nothing and the reasons. */
static int reverse_run(const char *path, bool forward, bool only_look) {
  struct settle s = {0};
  const char *from = forward ? "undone" : "kept";
  open_run(&s, path);
  if (!has_state(&s, from)) errno = EINVAL, fail(forward ? "this run was not undone" : "this run was not kept", path);
  list_read(&s.list, s.run);
  journal_read(&s.journal, s.run);
  open_roots(&s);
  int64_t since = changed_at(s.run, "state") + 1; /* our own last step may bear the same time */
  for (uint32_t i = 0; i < s.journal.count; i++) {
    const struct step *step = &s.journal.steps[i];
    if (forward ? stands_against_redo(&s, step, since) : stands_against_undo(&s, step, since)) refuse(&s, step->effect);
  }
  if (s.refusals > 0 || only_look) return print_outcome(&s, from), s.refusals > 0 ? 2 : 0;
  set_state(&s, forward ? "redoing" : "undoing");
  if (forward) go_forward(&s);
  else go_back(&s);
  print_outcome(&s, forward ? "kept" : "undone");
  return 0;
}

static int drop_run(const char *path) {
  struct settle s = {0};
  open_run(&s, path);
  struct stamp st;
  bool keeping = look(s.run, "journal", &st) && !look(s.run, "state", &st);
  if (keeping || has_state(&s, "undoing") || has_state(&s, "redoing")) errno = EBUSY, fail("this run has to be finished first", path);
  char *parent = must(strdup(path));
  char *slash = strrchr(parent, '/');
  if (!slash) errno = EINVAL, fail("give the whole path", path);
  *slash = 0;
  int folder = open(parent, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (folder < 0 || !remove_tree(folder, slash + 1)) fail("the run cannot be removed", path);
  printf("{\"state\":\"dropped\"}\n");
  return 0;
}

/* What a run that nobody works on needs: to be finished, or to go. */
static const char *recover_one(int folder, const char *base, const char *name) {
  struct stamp st;
  struct settle s = {.name = name, .run = open_folder(folder, name)};
  if (s.run < 0 || flock(s.run, LOCK_EX | LOCK_NB) < 0) return NULL; /* somebody works on it */
  bool forward = has_state(&s, "redoing") || (look(s.run, "journal", &st) && !look(s.run, "state", &st));
  bool back = has_state(&s, "undoing");
  (void)base;
  if (!forward && !back) {
    if (look(s.run, "state", &st)) return NULL;
    bool born = strncmp(name, "new-", 4) == 0;
    return remove_tree(folder, name) && !born ? "dropped" : NULL;
  }
  list_read(&s.list, s.run);
  journal_read(&s.journal, s.run);
  open_roots(&s);
  if (forward) go_forward(&s);
  else go_back(&s);
  return forward ? "kept" : "undone";
}

static int recover(const char *base) {
  int folder = open(base, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
  size_t count = 0;
  char **names = folder < 0 ? NULL : names_in(folder, &count);
  for (size_t i = 0; i < count; i++) {
    struct stamp st;
    if (!look(folder, names[i], &st) || !is_folder(&st)) continue;
    const char *did = recover_one(folder, base, names[i]);
    if (!did) continue;
    printf("{\"run\":");
    json_text(stdout, names[i]);
    printf(",\"state\":\"%s\"}\n", did);
  }
  return 0;
}

/* `held list RUN ROOT…`, `keep RUN` (which effects: on our input), `undo`, `redo`, `check`, `drop RUN`, `recover FOLDER`. */
int held_main(int argc, char **argv) {
  struct rlimit files;
  const char *stop = getenv("CALLGATE_TEST_STOP");
  if (stop) changes_left = atol(stop);
  if (getrlimit(RLIMIT_NOFILE, &files) == 0) files.rlim_cur = files.rlim_max, setrlimit(RLIMIT_NOFILE, &files);
  umask(0077);
  const char *verb = argc > 0 ? argv[0] : "";
  if (strcmp(verb, "list") == 0 && argc > 2) return list_run(argv[1], argv + 2, (uint32_t)argc - 2);
  if (argc == 2 && strcmp(verb, "keep") == 0) return keep_run(argv[1]);
  if (argc == 2 && strcmp(verb, "undo") == 0) return reverse_run(argv[1], false, false);
  if (argc == 2 && strcmp(verb, "redo") == 0) return reverse_run(argv[1], true, false);
  if (argc == 2 && strcmp(verb, "check") == 0) return reverse_run(argv[1], false, true);
  if (argc == 2 && strcmp(verb, "drop") == 0) return drop_run(argv[1]);
  if (argc == 2 && strcmp(verb, "recover") == 0) return recover(argv[1]);
  fprintf(stderr, "usage: callgate-launcher held list|keep|undo|redo|check|drop|recover …\n");
  return 125;
}
