/*
 * Every program start of a confined command, judged when it happens. The filter stops execve and execveat
 * and asks here; we read the program's path and its words, find the file as the kernel will, and hold the
 * rules (rules.c) against every name it goes by: as it was typed, as its file is called once all links are
 * followed, as its first word says, as the program whose copy it is, and the interpreters its first line
 * names. A start that no rule denies is let go on.
 *
 * The words lie in the caller's memory, and another thread of it could change them after we looked. For a
 * rule about a whole program that gains nothing: its file is hidden in the sandbox. For rules about words
 * the filter also asks at the first call that the C library of the new program makes (set_tid_address):
 * by then the kernel has its own copy of the words and no other thread is left, and what should not have
 * been started is killed before its first instruction of its own.
 */
#include "launcher.h"
#include "supervisor.h"
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/filter.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#define MAX_WORDS 1024
#define MAX_TEXT (256u << 10) /* of all words together */
#define MAX_LOG (64u << 10)
#define MAX_LOGGED_TEXT 1024u /* of one start */
#define MAX_INTERPRETERS 5    /* as the kernel has it */
#define HEAD_BYTES 4096u

struct words { char *list[MAX_WORDS + 2]; size_t count; bool cut; char text[MAX_TEXT]; size_t used; };

/* What is known about the file that would be executed. `sealed`: its owner, who is the command, lets nobody read it. */
struct program { char path[PATH_MAX]; const char *copy_of; bool folder, sealed; char head[HEAD_BYTES + 1]; size_t size; };

static struct words words; /* one question at a time */
static struct buffer log_;
static uint32_t left_out;

static const char *base_name(const char *path) {
  const char *slash = strrchr(path, '/');
  return slash ? slash + 1 : path;
}

/* FNV-1a over the first page: what Node made of the programs that rules name, for knowing their copies. */
static uint64_t fingerprint(const char *bytes, size_t size) {
  uint64_t hash = 0xcbf29ce484222325u;
  for (size_t i = 0; i < size; i++) hash = (hash ^ (uint8_t)bytes[i]) * 0x100000001b3u;
  return hash;
}

/* Names of programs that are many in one: which one is told by the words. */
static bool is_many_in_one(const char *name) {
  static const char *const known[] = {"busybox", "toybox", "coreutils", NULL};
  for (size_t i = 0; known[i]; i++)
    if (strcmp(known[i], name) == 0) return true;
  return false;
}

/* The dynamic loader runs the file its words name, and the kernel is not asked again. */
static bool is_loader(const char *name) { return strncmp(name, "ld-", 3) == 0 || strncmp(name, "ld.so", 5) == 0 || strncmp(name, "ld64.so", 7) == 0; }

/* These run the program their words name, looked up by themselves, and the kernel is not asked again. */
static bool is_emulator(const char *name) {
  static const char *const known[] = {"valgrind", "qemu-", "drrun", "box64", NULL};
  for (size_t i = 0; known[i]; i++)
    if (strncmp(known[i], name, strlen(known[i])) == 0) return true;
  return false;
}

static bool is_script(const struct program *p) { return p->size > 2 && p->head[0] == '#' && p->head[1] == '!'; }

/* Looks at an open file: where it lies, what it begins with, and whose copy it is. */
static void look_at(const struct call *c, int fd, struct program *p) {
  char link[32];
  struct stat st;
  snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
  ssize_t length = readlink(link, p->path, sizeof p->path - 1);
  p->path[length > 0 ? length : 0] = 0;
  p->copy_of = NULL;
  p->size = 0;
  bool known_kind = fstat(fd, &st) == 0;
  p->folder = known_kind && S_ISDIR(st.st_mode);
  bool regular = known_kind && S_ISREG(st.st_mode);
  int file = regular ? open(link, O_RDONLY | O_CLOEXEC | O_NONBLOCK) : -1;
  p->sealed = regular && file < 0 && st.st_uid == geteuid();
  ssize_t n = file < 0 ? 0 : pread(file, p->head, HEAD_BYTES, 0);
  if (file >= 0) close(file);
  p->size = n > 0 ? (size_t)n : 0;
  p->head[p->size] = 0;
  if (p->size < 4 || memcmp(p->head, "\177ELF", 4) != 0) return;
  uint64_t print = fingerprint(p->head, p->size);
  for (size_t i = 0; i < c->request->files.count; i++) {
    const uint8_t *known = c->request->files.list[i].data;
    if (get64(known) == print) p->copy_of = (const char *)known + 9;
  }
}

/* What `git push` is made of counts as it. */
static char *as_typed_by_people(char *word) {
  static char push[] = "push";
  return strcmp(word, "send-pack") == 0 || strcmp(word, "http-push") == 0 ? push : word;
}

/* The first denying rule over all the names of one program with these words. */
static const char *denied_by_name(const struct call *c, const char *name, const char *path, char *const *args) {
  const struct fields *rules = &c->request->rules;
  const char *rule = rule_for(rules, name, args, words.cut);
  if (!rule && path[0]) rule = rule_for(rules, path, args, words.cut);
  /* git-push is git push; there is always a place in front of the words. */
  bool is_part = strncmp(name, "git-", 4) == 0 && strlen(name) < 64;
  if (!rule && (is_part || strcmp(name, "git") == 0)) {
    char part[64], *meant[MAX_WORDS + 3];
    size_t count = 0;
    if (is_part) meant[count++] = as_typed_by_people(strcpy(part, name + 4));
    for (size_t i = 0; args[i]; i++) meant[count++] = as_typed_by_people(args[i]);
    meant[count] = NULL;
    rule = rule_for(rules, "git", meant, words.cut);
  }
  return rule;
}

static const char *denied(const struct call *c, const struct program *p, const char *typed, char *const *argv, int depth);

/* The program that one of these is told to be by its words: `busybox rm`, `coreutils --coreutils-prog=rm`. */
static const char *denied_part(const struct call *c, char *const *argv, int depth) {
  static const struct program unknown;
  for (size_t i = 1; argv[0] && argv[i]; i++) {
    const char *value = argv[i][0] == '-' ? strchr(argv[i], '=') : NULL;
    if (argv[i][0] == '-' && !value) continue;
    const char *rule = denied(c, &unknown, value ? value + 1 : argv[i], argv + i, depth + 1);
    if (rule || !value) return rule;
  }
  return NULL;
}

/* The file that the loader is told to run, with the words behind it. */
static const char *denied_loaded(const struct call *c, char *const *argv, int depth) {
  for (size_t i = 1; i < 32 && argv[0] && argv[i]; i++) {
    struct program p = {0};
    int fd = argv[i][0] == '-' ? -1 : find_program(c, AT_FDCWD, argv[i], 0);
    if (fd < 0) continue;
    look_at(c, fd, &p);
    close(fd);
    const char *rule = p.folder ? NULL : denied(c, &p, argv[i], argv + i, depth + 1);
    if (rule) return rule;
  }
  return NULL;
}

/* A rule's program by its bare name among the words of one that looks programs up: `valgrind -q git push`. */
static const char *denied_emulated(const struct call *c, char *const *argv) {
  const char *rule = NULL;
  for (size_t i = 1; i < 32 && argv[0] && argv[i] && !rule; i++)
    if (argv[i][0] != '-') rule = denied_by_name(c, base_name(argv[i]), "", argv + i + 1);
  return rule;
}

/*
 * The file of a rule's program among the words of another one, which may run it without asking the kernel again:
 * `node …/npm-cli.js publish`, `qemu-x86_64 /usr/bin/git push`, a loader under another name.
 */
static const char *denied_among_words(const struct call *c, char *const *argv) {
  static struct program p;
  for (size_t i = 1; i < 9 && argv[0] && argv[i]; i++) {
    if (argv[i][0] == '-') continue;
    int fd = find_program(c, AT_FDCWD, argv[i], 0);
    if (fd < 0) continue;
    look_at(c, fd, &p);
    close(fd);
    for (size_t k = 0; k < c->request->files.count; k++) {
      const uint8_t *known = c->request->files.list[k].data;
      const char *name = (const char *)known + 9, *path = name + strlen(name) + 1;
      /* One that is hidden nobody can run so, and it may be named: `ls -l /bin/rm`. */
      if (known[8] || (name != p.copy_of && strcmp(path, p.path) != 0)) continue;
      const char *rule = denied_by_name(c, name, p.path, argv + i + 1);
      if (rule) return rule;
    }
  }
  return NULL;
}

/* The interpreter of a script's first line, with the words the kernel gives it. */
static const char *denied_interpreter(const struct call *c, const struct program *p, const char *typed, char *const *argv, int depth) {
  char line[257] = {0}, *list[MAX_WORDS + 4];
  memcpy(line, p->head + 2, p->size - 2 < 256 ? p->size - 2 : 256);
  line[strcspn(line, "\n")] = 0;
  char *name = line + strspn(line, " \t"), *option = name + strcspn(name, " \t");
  if (*option) *option++ = 0, option += strspn(option, " \t");
  for (size_t n = strlen(option); n > 0 && strchr(" \t", option[n - 1]); n--) option[n - 1] = 0;
  if (!*name) return NULL;
  size_t count = 0;
  list[count++] = name;
  if (*option) list[count++] = option;
  list[count++] = (char *)(uintptr_t)typed;
  for (size_t i = 1; argv[0] && argv[i] && count < MAX_WORDS + 2; i++) list[count++] = argv[i];
  list[count] = NULL;
  struct program found = {0};
  int fd = find_program(c, AT_FDCWD, name, 0);
  if (fd < 0) return NULL;
  look_at(c, fd, &found);
  close(fd);
  return denied(c, &found, name, list, depth + 1);
}

/* The rule that denies this program with these words, the program's own name being the first of them. */
static const char *denied(const struct call *c, const struct program *p, const char *typed, char *const *argv, int depth) {
  const char *first = argv[0] ? argv[0] + (argv[0][0] == '-') : "";
  const char *names[] = {base_name(typed), base_name(p->path), base_name(first), p->copy_of ? p->copy_of : ""};
  char *const *args = argv[0] ? argv + 1 : argv;
  bool many = false, loader = false, emulator = false;
  for (size_t i = 0; i < 4; i++) {
    const char *rule = names[i][0] ? denied_by_name(c, names[i], i == 1 ? p->path : "", args) : NULL;
    if (rule) return rule;
    many |= is_many_in_one(names[i]);
    loader |= is_loader(names[i]);
    emulator |= is_emulator(names[i]);
  }
  if (depth >= MAX_INTERPRETERS) return NULL;
  const char *rule = many ? denied_part(c, argv, depth) : loader ? denied_loaded(c, argv, depth) : NULL;
  if (!rule && is_script(p)) rule = denied_interpreter(c, p, typed, argv, depth);
  if (!rule && emulator) rule = denied_emulated(c, argv);
  if (!rule) rule = denied_among_words(c, argv);
  return rule;
}

/* ---- the record of what was started ---- */

static void record(const char *rule) {
  uint32_t size = 0, name = (uint32_t)strlen(rule) + 1;
  for (size_t i = 0; i < words.count; i++) size += (uint32_t)strlen(words.list[i]) + 1;
  if (size > MAX_LOGGED_TEXT) size = MAX_LOGGED_TEXT;
  if (log_.end - log_.start + size + name + 4 > MAX_LOG) { left_out++; return; }
  uint32_t whole = size + name;
  buffer_add(&log_, &whole, 4);
  buffer_add(&log_, rule, name);
  for (size_t i = 0, room = size; i < words.count && room > 0; i++) {
    size_t length = strlen(words.list[i]) + 1, part = length < room ? length : room;
    buffer_add(&log_, words.list[i], part);
    room -= part;
  }
}

/* The record as a file of its own, which the server reads; -1 if nothing was started since the last one. */
int starts_take(uint32_t *unlisted) {
  *unlisted = left_out;
  left_out = 0;
  if (log_.end == log_.start) return -1;
  int fd = memfd_create("callgate-starts", MFD_CLOEXEC);
  if (fd >= 0) buffer_flush(&log_, fd);
  return fd;
}

/* ---- the two questions ---- */

static void take_word(const char *text, size_t size) {
  if (words.count >= MAX_WORDS || words.used + size + 1 > MAX_TEXT) { words.cut = true; return; }
  char *to = words.text + words.used;
  memcpy(to, text, size);
  to[size] = 0;
  words.used += size + 1;
  words.list[words.count++] = to;
  words.list[words.count] = NULL;
}

static int read_words(const struct call *c, uint64_t at) {
  char text[PATH_MAX];
  uint64_t pointers[64];
  size_t there = 0;
  words.count = words.used = 0;
  words.cut = false;
  words.list[0] = NULL;
  for (size_t i = 0; at && !words.cut; i++) {
    if (i % 64 == 0) {
      ssize_t n = pread(c->memory, pointers, sizeof pointers, (off_t)(at + i * 8));
      /* Near the end of a mapping only a part can be read, and the last pointer has to be in it. */
      there = n < 0 ? 0 : (size_t)n / 8;
    }
    if (i % 64 >= there) return -EFAULT;
    if (!pointers[i % 64]) break;
    int error = read_text(c, pointers[i % 64], text, sizeof text);
    if (error == -EFAULT) return error;
    text[sizeof text - 1] = 0; /* a longer word is no word of a rule */
    take_word(text, strlen(text));
  }
  return 0;
}

/* May the caller go on and execute this? 0, or the error it gets instead. */
int starts_judge(const struct call *c, int folder, uint64_t path_at, uint64_t argv_at, uint64_t flags) {
  static struct program p;
  char typed[PATH_MAX];
  int error = read_text(c, path_at, typed, sizeof typed);
  if (error) return error;
  int fd = find_program(c, folder, typed, flags);
  if (fd < 0) return fd; /* what is not there now must not be there a moment later */
  look_at(c, fd, &p);
  close(fd);
  if ((error = read_words(c, argv_at))) return error;
  if (p.folder) return 0; /* the kernel refuses it */
  if (p.sealed) return -EACCES; /* a copy that nobody can know: whoever owns it can make it readable */
  const char *rule = denied(c, &p, typed, words.list, 0);
  if (!words.count) take_word(typed, strlen(typed));
  record(rule ? rule : "");
  return rule ? -EACCES : 0;
}

/* A program has been loaded: what it is, and its words, can no longer be changed by others. */
int starts_verify(const struct call *c) {
  static struct program p;
  static char text[MAX_TEXT];
  char name[64];
  snprintf(name, sizeof name, "/proc/%d/exe", c->pid);
  int fd = open(name, O_PATH | O_CLOEXEC);
  if (fd < 0) return 0;
  look_at(c, fd, &p);
  close(fd);
  snprintf(name, sizeof name, "/proc/%d/cmdline", c->pid);
  int file = open(name, O_RDONLY | O_CLOEXEC);
  size_t size = 0;
  for (ssize_t n; file >= 0 && size < sizeof text && (n = read(file, text + size, sizeof text - size)) > 0;) size += (size_t)n;
  if (file >= 0) close(file);
  words.count = words.used = 0;
  words.cut = size == sizeof text;
  words.list[0] = NULL;
  for (size_t at = 0; at < size && !words.cut; at += strnlen(text + at, size - at) + 1) take_word(text + at, strnlen(text + at, size - at));
  const char *rule = denied(c, &p, p.path, words.list, 0);
  if (!rule) return 0;
  record(rule);
  kill((pid_t)c->question->pid, SIGKILL);
  return -EPERM;
}

/* ---- whether it can be had here ---- */

/* Puts the start of one program to itself, reads its words and lets it go on; 0 if all of that works. */
int starts_check(void) {
  static const struct sock_filter program[] = {
    BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
    BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_execve, 0, 1),
    BPF_STMT(BPF_RET | BPF_K, 0x7fc00000),
    BPF_STMT(BPF_RET | BPF_K, 0x7fff0000),
  };
  struct request r = {.seccomp = (const uint8_t *)program, .seccomp_size = sizeof program};
  int asking[2], status = -1;
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, asking) < 0) return 1;
  pid_t pid = fork();
  if (pid == 0) {
    struct attempt a = {.request = &r, .listener = asking[1]};
    prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
    install_asking_filter(&a);
    execl("/proc/self/exe", "callgate-launcher", "nothing", NULL);
    _exit(3);
  }
  close(asking[1]);
  int listener = supervisor_take(asking[0]);
  if (pid > 0 && listener >= 0) supervisor_answer(listener, &r);
  if (listener >= 0) close(listener);
  waitpid(pid, &status, 0);
  return WIFEXITED(status) && WEXITSTATUS(status) == 0 ? 0 : 1;
}
