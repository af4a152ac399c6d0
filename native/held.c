/*
 * What can be asked about held runs, each by one call of this program: list what a run did, keep what was
 * chosen, take it back, do it again, drop it, and finish or remove what was left by a kill. Answers are
 * lines of JSON.
 */
#include "held.h"
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/resource.h>

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
    if (look(s->roots[i], "", &st) && st.ino == l->root_stamps[i].ino) continue;
    errno = ESTALE;
    fail("the folder is no longer the one the command ran in", l->roots[i]);
  }
}

static bool has_state(struct settle *s, const char *word) {
  size_t size;
  uint8_t *text = read_whole(s->run, "state", &size);
  bool same = text && strcmp((char *)text, word) == 0;
  free(text);
  return same;
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

/* What small files say, before and after: kept where there are few enough to be read without a wait. */
static void hash_files(struct settle *s) {
  if (s->journal.count > 1000) return;
  for (uint32_t i = 0; i < s->journal.count; i++) {
    struct step *step = &s->journal.steps[i];
    if (step_is_of_folder(step)) continue;
    if (step->op != 'R') step->new_hash = content_hash(s->run, step->source);
    if (step->op != 'A') step->old_hash = content_hash(s->roots[step->root], step->path);
    /* An editor empties a file before it writes it: what is there in between is not what was shown. */
    if (step->op != 'A' && !is_as_shown(s, step)) step->old_hash = 0;
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
    if (step_is_of_folder(step) || s->refused[step->effect] || !step_is_done(s, step)) continue;
    done++;
    for (uint32_t k = step->effect; k < e->next; k++) bytes += S_ISREG(s->list.items[k].before.mode) ? (uint64_t)s->list.items[k].before.size : 0;
  }
  printf("{\"state\":\"%s\",\"steps\":%u,\"bytes\":%llu,\"conflicts\":[", word, done, (unsigned long long)bytes);
  for (uint32_t i = 0; i < s->list.count; i++) {
    const struct effect *e = &s->list.items[i];
    bool asked = e->flags & (CHOSEN | IMPLIED) || s->refused[i];
    if (asked && (s->refused[i] || (e->kind != 'd' && (e->flags & CONFLICT)))) print_path(e, shown++ == 0);
  }
  printf("]}\n");
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
  hash_files(&s);
  before_change();
  if (!journal_write(&s.journal, s.run)) fail("the journal cannot be written", path);
  settle_forward(&s);
  print_outcome(&s, "kept");
  return 0;
}

/* Before the first change: a path that cannot be looked at is an error, not a path that somebody removed. */
static uint64_t look_or_say(struct settle *s, const struct step *step) {
  errno = 0;
  uint64_t there = inode_in_workspace(s, step);
  if (!there && errno == EACCES) fail("a folder on the way to it is closed by its mode (chmod u+rwx it and try again)", step->path);
  return there;
}

/* A folder whose mode is not the one we left it with: somebody has set it since, and that is not ours to overwrite. */
static bool has_other_mode(struct settle *s, const struct step *step, uint32_t left) {
  struct stamp st;
  int fd = step->op == 'M' ? open_step_folder(s, step) : -1;
  bool other = fd >= 0 && look(fd, "", &st) && (st.mode & 07777) != (left & 07777);
  if (fd >= 0) close(fd);
  return other;
}

/* Another file stands there by now, which says the same: put there by an undo of file tools, or saved again as it was. */
static bool is_its_like(struct settle *s, const struct step *step, bool forward) {
  struct stamp st;
  uint64_t hash = forward ? step->old_hash : step->new_hash;
  uint32_t mode = forward ? step->old_mode : step->new_mode;
  int root = s->roots[step->root];
  return hash && look_at(root, step->path, &st) && st.mode == mode && content_hash(root, step->path) == hash;
}

/* What the step would reverse is no longer there as it was left. `forward`: to do it again. */
static bool stands_against(struct settle *s, struct step *step, bool forward, int64_t since) {
  if (step_is_of_folder(step)) return has_other_mode(s, step, forward ? step->old_mode : step->new_mode);
  if (step->cache || step_is_done(s, step) == forward) return false;
  uint64_t there = look_or_say(s, step), *left = forward ? &step->old_ino : &step->new_ino;
  if (step->op == (forward ? 'A' : 'R')) return there != 0;
  if (there == *left && is_untouched(s, step, since)) return false;
  if (!is_its_like(s, step, forward)) return true;
  *left = there; /* known by its inode from here on */
  return false;
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
  spans_read(&s);
  for (uint32_t i = 0; i < s.journal.count; i++) {
    struct step *step = &s.journal.steps[i];
    if (stands_against(&s, step, forward, since)) settle_refuse(&s, step->effect);
  }
  if (s.refusals > 0 || only_look) return print_outcome(&s, from), s.refusals > 0 ? 2 : 0;
  if (!journal_write(&s.journal, s.run)) fail("the journal cannot be written", path);
  settle_set_state(&s, forward ? "redoing" : "undoing");
  if (forward) settle_forward(&s);
  else settle_back(&s);
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

/*
 * Whether the process that listed the run, and asks somebody about it, is still there. Its number alone would not do:
 * numbers are used again, so the time of its start stands beside it.
 */
static bool is_being_decided(int run) {
  char text[64] = {0}, name[64], stat[1024] = {0};
  int pid;
  unsigned long long started, now = 0;
  int fd = openat(run, "owner", O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
  ssize_t size = fd < 0 ? -1 : read(fd, text, sizeof text - 1);
  if (fd >= 0) close(fd);
  if (size <= 0 || sscanf(text, "%d %llu", &pid, &started) != 2 || pid <= 0) return false;
  snprintf(name, sizeof name, "/proc/%d/stat", pid);
  fd = open(name, O_RDONLY | O_CLOEXEC);
  size = fd < 0 ? -1 : read(fd, stat, sizeof stat - 1);
  if (fd >= 0) close(fd);
  const char *rest = size > 0 ? strrchr(stat, ')') : NULL; /* the program's name may hold anything */
  if (!rest) return false;
  for (int field = 0; field < 20 && rest; field++) rest = strchr(rest + 1, ' ');
  return rest && sscanf(rest, "%llu", &now) == 1 && now == started;
}

/* What a run that nobody works on needs: to be finished, or to go. */
static const char *recover_one(int folder, const char *name) {
  struct stamp st;
  struct settle s = {.name = name, .run = open_folder(folder, name)};
  if (s.run < 0 || flock(s.run, LOCK_EX | LOCK_NB) < 0) return NULL; /* somebody works on it */
  bool forward = has_state(&s, "redoing") || (look(s.run, "journal", &st) && !look(s.run, "state", &st));
  bool back = has_state(&s, "undoing");
  if (!forward && !back) {
    if (look(s.run, "state", &st) || is_being_decided(s.run)) return NULL;
    bool born = strncmp(name, "new-", 4) == 0;
    return remove_tree(folder, name) && !born ? "dropped" : NULL;
  }
  list_read(&s.list, s.run);
  journal_read(&s.journal, s.run);
  open_roots(&s);
  if (forward) settle_forward(&s);
  else settle_back(&s);
  return forward ? "kept" : "undone";
}

static int recover(const char *base) {
  int folder = open(base, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
  size_t count = 0;
  char **names = folder < 0 ? NULL : names_in(folder, &count);
  for (size_t i = 0; i < count; i++) {
    struct stamp st;
    if (!look(folder, names[i], &st) || !is_folder(&st)) continue;
    const char *did = recover_one(folder, names[i]);
    if (!did) continue;
    printf("{\"run\":");
    json_text(stdout, names[i]);
    printf(",\"state\":\"%s\"}\n", did);
  }
  return 0;
}

/*
 * One user and one group exist in a sandbox, so a file of anybody else cannot be changed in place there. The first such
 * file among as many as we have time for; the path is the caller's to free.
 */
static char *find_stranger(int folder, const char *path, uid_t uid, gid_t gid, long *left) {
  size_t count = 0;
  char **names = names_in(folder, &count), *found = NULL;
  for (size_t i = 0; i < count && !found && *left > 0; i++, --*left) {
    struct stamp st;
    if (!look(folder, names[i], &st)) continue;
    char *at = must(malloc(strlen(path) + strlen(names[i]) + 2));
    sprintf(at, "%s%s%s", path, path[0] ? "/" : "", names[i]);
    int fd = -1;
    if (st.uid != uid || st.gid != gid) found = must(strdup(at));
    else if (is_folder(&st) && (fd = open_folder(folder, names[i])) >= 0) found = find_stranger(fd, at, uid, gid, left);
    if (fd >= 0) close(fd);
    free(at);
  }
  if (names) free_names(names, count);
  return found;
}

static int strangers(char **roots, int count) {
  long left = 50000;
  for (int i = 0; i < count; i++) {
    int root = open(roots[i], O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    char *found = root < 0 ? NULL : find_stranger(root, "", geteuid(), getegid(), &left);
    if (root >= 0) close(root);
    if (!found) continue;
    printf("{\"root\":%d,\"path\":", i);
    json_text(stdout, found);
    printf("}\n");
    free(found);
    return 0;
  }
  return 0;
}

static bool write_once(const char *path, const char *text) {
  int fd = open(path, O_WRONLY | O_CLOEXEC);
  bool done = fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text);
  if (fd >= 0) close(fd);
  return done;
}

/*
 * A command may take the x bit from a folder in which it changed something; what is in there can then be looked at by
 * nobody but root. In a user namespace of our own modes do not stop us, for files of this user and group and no others.
 * Where none is to be had we go on without: what cannot be looked at is then said (look_or_say), never guessed.
 */
static void pass_own_modes(void) {
  uid_t uid = geteuid();
  gid_t gid = getegid();
  char users[64], groups[64];
  snprintf(users, sizeof users, "%u %u 1", uid, uid);
  snprintf(groups, sizeof groups, "%u %u 1", gid, gid);
  if (uid == 0 || unshare(CLONE_NEWUSER) < 0) return;
  /* Refused (some systems allow it to certain programs only), we are still who we were to every file. */
  if (write_once("/proc/self/setgroups", "deny") && write_once("/proc/self/uid_map", users)) write_once("/proc/self/gid_map", groups);
}

/*
 * `held list RUN ROOT…`, `keep RUN` (which effects: on our input), `undo`, `redo`, `check-undo`, `check-redo`,
 * `drop RUN`, `recover FOLDER`, `strangers ROOT…`.
 */
int held_main(int argc, char **argv) {
  struct rlimit files;
  const char *stop = getenv("CALLGATE_TEST_STOP");
  if (stop) changes_left = atol(stop);
  if (getrlimit(RLIMIT_NOFILE, &files) == 0) files.rlim_cur = files.rlim_max, setrlimit(RLIMIT_NOFILE, &files);
  umask(0077);
  pass_own_modes();
  const char *verb = argc > 0 ? argv[0] : "";
  if (strcmp(verb, "list") == 0 && argc > 2) return list_run(argv[1], argv + 2, (uint32_t)argc - 2);
  if (argc == 2 && strcmp(verb, "keep") == 0) return keep_run(argv[1]);
  if (argc == 2 && strcmp(verb, "undo") == 0) return reverse_run(argv[1], false, false);
  if (argc == 2 && strcmp(verb, "redo") == 0) return reverse_run(argv[1], true, false);
  if (argc == 2 && strcmp(verb, "check-undo") == 0) return reverse_run(argv[1], false, true);
  if (argc == 2 && strcmp(verb, "check-redo") == 0) return reverse_run(argv[1], true, true);
  if (argc == 2 && strcmp(verb, "drop") == 0) return drop_run(argv[1]);
  if (argc == 2 && strcmp(verb, "recover") == 0) return recover(argv[1]);
  if (argc > 1 && strcmp(verb, "strangers") == 0) return strangers(argv + 1, argc - 1);
  fprintf(stderr, "usage: callgate-launcher held list|keep|undo|redo|check-undo|check-redo|drop|recover|strangers …\n");
  return 125;
}
