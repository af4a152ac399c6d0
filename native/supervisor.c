/*
 * The supervisor: answers the system calls that Landlock does not see and a filter cannot judge, because what
 * they touch is named by a pointer: modes, owners and times of files, and connecting to sockets by path.
 *
 * The filter stops such a call and asks here. We copy its arguments, find the file ourselves and hold it
 * open (O_PATH), look where it really lies, and then do what was asked to that very file and answer with
 * the outcome. The command's own call is never let through: its other threads could have put another
 * path into its memory after we looked. We run as the same user as the command, without capabilities,
 * so nothing is done for it that it could not have done itself.
 */
#include "supervisor.h"
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/vfs.h>

/* As linux/seccomp.h and linux/openat2.h have them from 5.9 on, for older headers. */
struct reply { uint64_t id; int64_t value; int32_t error; uint32_t flags; };
struct add_fd { uint64_t id; uint32_t flags, source, target, target_flags; };
#define RECEIVE _IOWR('!', 0, struct question)
#define SEND _IOWR('!', 1, struct reply)
#define IS_VALID _IOW('!', 2, uint64_t)
#define ADD_FD _IOW('!', 3, struct add_fd)
#define ADD_FD_IN_PLACE 1u
#define SYS_OPENAT2 437
#define SYS_FCHMODAT2 452
#define NO_MAGIC_LINKS 2u
#define WRITE_FILE 2u /* of Landlock's rights */

#define CONTINUE 1u
#define SET_FLAGS _IOW('!', 4, uint64_t)
#define SYNC_WAKE_UP 1u

static uint64_t argument(const struct call *c, int index) { return c->question->data.args[index]; }

/* Copies a C string out of the caller, page by page: the next page may not be there. */
int read_text(const struct call *c, uint64_t at, char *to, size_t room) {
  for (size_t got = 0; got < room;) {
    size_t step = 4096 - (at + got) % 4096;
    if (step > room - got) step = room - got;
    ssize_t n = pread(c->memory, to + got, step, (off_t)(at + got));
    if (n <= 0) return -EFAULT;
    if (memchr(to + got, 0, (size_t)n)) return 0;
    got += (size_t)n;
  }
  return -ENAMETOOLONG;
}

/* A descriptor of the caller's, or its current folder, as one of ours that only names it. */
static int borrow(const struct call *c, int fd) {
  char name[64];
  if (fd == AT_FDCWD) snprintf(name, sizeof name, "/proc/%d/cwd", c->pid);
  else snprintf(name, sizeof name, "/proc/%d/fd/%d", c->pid, fd);
  int ours = open(name, O_PATH | O_CLOEXEC);
  return ours >= 0 ? ours : errno == ENOENT ? -EBADF : -errno;
}

#define PROC_MAGIC 0x9fa0
#define MOST_LINKS 40

/* Whether a link lies in /proc, where links may lead to whatever a process has open. */
static bool is_magic(int folder) {
  struct statfs fs;
  return fstatfs(folder, &fs) == 0 && fs.f_type == PROC_MAGIC;
}

/*
 * openat2 with RESOLVE_NO_MAGICLINKS, part by part: for places where a filter has taken openat2 away, as it has from
 * us inside bubblewrap. ELOOP for a link in /proc, and for too many links.
 */
static int open_by_parts(int base, const char *path, bool follow) {
  char left[PATH_MAX], link[PATH_MAX];
  if (strlen(path) >= sizeof left) return -ENAMETOOLONG;
  strcpy(left, path);
  int at = base == AT_FDCWD ? open("/", O_PATH | O_CLOEXEC) : fcntl(base, F_DUPFD_CLOEXEC, 0);
  char *rest = left;
  for (int links = 0; at >= 0;) {
    while (*rest == '/') rest++;
    if (*rest == 0) return at;
    size_t length = strcspn(rest, "/");
    bool last = rest[length + strspn(rest + length, "/")] == 0;
    char part[NAME_MAX + 1];
    if (length > NAME_MAX) { close(at); return -ENAMETOOLONG; }
    memcpy(part, rest, length);
    part[length] = 0;
    ssize_t size = last && !follow ? -1 : readlinkat(at, part, link, sizeof link - 1);
    if (size < 0) {
      int next = openat(at, part, O_PATH | O_NOFOLLOW | O_CLOEXEC), error = errno;
      close(at);
      if (next < 0) return -error;
      at = next;
      rest += length;
      continue;
    }
    link[size] = 0;
    if (is_magic(at) || ++links > MOST_LINKS) { close(at); return -ELOOP; }
    char joined[2 * PATH_MAX];
    snprintf(joined, sizeof joined, "%s/%s", link, rest + length);
    if (strlen(joined) >= sizeof left) { close(at); return -ENAMETOOLONG; }
    strcpy(left, joined);
    rest = left;
    if (link[0] != '/') continue;
    close(at);
    at = open("/", O_PATH | O_CLOEXEC);
  }
  return -errno;
}

/* The file that a path names for the caller, held open; `flags` as the *at calls take them. */
static int find(const struct call *c, int folder, const char *path, uint64_t flags) {
  int number, end = 0;
  if (path[0] == 0) return flags & AT_EMPTY_PATH ? borrow(c, folder) : -ENOENT;
  /* The C library's own detour to what a descriptor stands for. */
  if (sscanf(path, "/proc/self/fd/%d%n", &number, &end) == 1 && path[end] == 0) return borrow(c, number);
  int base = path[0] == '/' ? AT_FDCWD : borrow(c, folder);
  if (base < 0 && base != AT_FDCWD) return base;
  /* Other magic links would lead into our own process instead of the caller's. */
  struct { uint64_t flags, mode, resolve; } how = {O_PATH | O_CLOEXEC | (flags & AT_SYMLINK_NOFOLLOW ? O_NOFOLLOW : 0), 0, NO_MAGIC_LINKS};
  int fd = (int)syscall(SYS_OPENAT2, base, path, &how, sizeof how), error = errno;
  if (fd < 0 && error == ENOSYS) {
    fd = open_by_parts(base, path, !(flags & AT_SYMLINK_NOFOLLOW));
    if (fd < 0) error = -fd;
  }
  if (base >= 0) close(base);
  return fd >= 0 ? fd : error == ELOOP ? -EACCES : -error;
}

/*
 * The file that would be executed. Links that mean the process that follows them are read as the caller's;
 * where one lies hidden behind another link, nobody can say what it leads to, and it is refused.
 */
int find_program(const struct call *c, int folder, const char *path, uint64_t flags) {
  static const struct { const char *typed, *meant; } own[] = {
    {"/proc/self/", ""}, {"/proc/thread-self/", ""}, {"/dev/fd/", "fd/"}, {"/dev/stdin", "fd/0"}, {"/dev/stdout", "fd/1"}, {"/dev/stderr", "fd/2"},
  };
  char there[PATH_MAX];
  int fd = find(c, folder, path, flags);
  for (size_t i = 0; fd == -EACCES && i < sizeof own / sizeof *own; i++) {
    size_t length = strlen(own[i].typed);
    if (strncmp(path, own[i].typed, length) != 0) continue;
    int size = snprintf(there, sizeof there, "/proc/%d/%s%s", c->pid, own[i].meant, path + length);
    int found = size < (int)sizeof there ? open(there, O_PATH | O_CLOEXEC) : -1;
    return found < 0 ? -errno : found;
  }
  return fd;
}

static bool is_below(const char *path, const uint8_t *folder, size_t size) {
  size_t length = size - 1;
  if (length == 1) return true; /* the root */
  return strncmp(path, (const char *)folder, length) == 0 && (path[length] == '/' || path[length] == 0);
}

/* Does it lie in a writable place, and not in one that is held? */
static bool may_change(const struct call *c, int fd) {
  char link[32], path[PATH_MAX];
  snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
  ssize_t size = readlink(link, path, sizeof path - 1);
  if (size <= 0) return false;
  path[size] = 0;
  const struct request *r = c->request;
  for (size_t i = 0; i < r->held.count; i++)
    if (is_below(path, r->held.list[i].data, r->held.list[i].size)) return false;
  for (size_t i = 0; i < r->paths.count; i++) {
    const struct field *rule = &r->paths.list[i];
    if ((get64(rule->data) & WRITE_FILE) && is_below(path, rule->data + 8, rule->size - 8)) return true;
  }
  return false;
}

/* The process may have ended meanwhile and its number may be another's: then nothing is done. */
static bool is_still_asking(const struct call *c) {
  uint64_t id = c->question->id;
  return ioctl(c->listener, IS_VALID, &id) == 0;
}

static int outcome(int value) { return value < 0 ? -errno : 0; }

/* Modes, owners and times, of the file that `folder`, `path` and `flags` name. */
struct change { int folder; bool by_path; uint64_t path, flags; char what; uint64_t first, second; };

static int change(const struct call *c, const struct change *how) {
  char path[PATH_MAX] = "", link[32];
  struct timespec times[2];
  bool by_clock = how->first == 0;
  int error = how->by_path ? read_text(c, how->path, path, sizeof path) : 0;
  if (error) return error;
  if (how->what == 't' && !by_clock && pread(c->memory, times, sizeof times, (off_t)how->first) != sizeof times) return -EFAULT;
  int fd = find(c, how->folder, path, how->by_path ? how->flags : AT_EMPTY_PATH);
  if (fd < 0) return fd;
  snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
  if (!is_still_asking(c)) error = -ESRCH;
  else if (!may_change(c, fd)) error = -EACCES;
  else if (how->what == 'm' && (how->first & 06000)) error = -EPERM; /* nothing that runs as its owner is left behind */
  else if (how->what == 'm') error = outcome(chmod(link, (mode_t)how->first & 07777));
  else if (how->what == 'o') error = outcome(fchownat(fd, "", (uid_t)how->first, (gid_t)how->second, AT_EMPTY_PATH));
  else error = outcome(utimensat(AT_FDCWD, link, by_clock ? NULL : times, 0));
  close(fd);
  return error;
}

/* Flags of the caller's descriptor; -1 if it is no socket. */
static int socket_flags(const struct call *c, int fd) {
  char name[64], text[256] = {0};
  snprintf(name, sizeof name, "/proc/%d/fd/%d", c->pid, fd);
  if (readlink(name, text, sizeof text - 1) < 0 || strncmp(text, "socket:", 7) != 0) return -1;
  snprintf(name, sizeof name, "/proc/%d/fdinfo/%d", c->pid, fd);
  int info = open(name, O_RDONLY | O_CLOEXEC);
  ssize_t n = info < 0 ? -1 : read(info, text, sizeof text - 1);
  if (info >= 0) close(info);
  const char *flags = n > 0 ? strstr(text, "flags:") : NULL;
  return flags ? (int)strtol(flags + 6, NULL, 8) : -1;
}

/* Connects a socket of ours and puts it where the caller's was: its own cannot be reached in every container. */
static int connect_for(const struct call *c, const char *link, int flags) {
  static const int types[] = {SOCK_STREAM, SOCK_SEQPACKET};
  struct sockaddr_un to = {.sun_family = AF_UNIX};
  strcpy(to.sun_path, link);
  int error = -EPROTOTYPE;
  for (size_t i = 0; i < 2 && error == -EPROTOTYPE; i++) {
    int ours = socket(AF_UNIX, types[i] | (flags & O_NONBLOCK ? SOCK_NONBLOCK : 0), 0);
    error = outcome(connect(ours, (struct sockaddr *)&to, sizeof to));
    struct add_fd add = {c->question->id, ADD_FD_IN_PLACE, (uint32_t)ours, (uint32_t)argument(c, 0), flags & O_CLOEXEC};
    if (error == 0 && ioctl(c->listener, ADD_FD, &add) < 0) error = -errno;
    close(ours);
  }
  return error;
}

static void send_reply(const struct call *c, int error) {
  struct reply reply = {.id = c->question->id, .error = error};
  ioctl(c->listener, SEND, &reply); /* the caller may be gone, and then nobody waits for it */
}

/* True if the answer comes later, from a process of its own: a full queue of the listener's may make it wait. */
static bool connect_later(const struct call *c, int *error) {
  struct sockaddr_un to = {0};
  size_t size = argument(c, 2);
  char path[sizeof to.sun_path + 1] = {0}, link[32];
  *error = -EINVAL;
  if (size <= offsetof(struct sockaddr_un, sun_path) || size > sizeof to) return false;
  *error = -EFAULT;
  if (pread(c->memory, &to, size, (off_t)argument(c, 1)) != (ssize_t)size) return false;
  *error = -EACCES; /* a name without a path may be anybody's */
  if (to.sun_family != AF_UNIX || to.sun_path[0] == 0) return false;
  memcpy(path, to.sun_path, sizeof to.sun_path);
  *error = -ENOTSOCK;
  int flags = socket_flags(c, (int)argument(c, 0));
  if (flags < 0) return false;
  int fd = find(c, AT_FDCWD, path, 0);
  *error = fd < 0 ? fd : !is_still_asking(c) ? -ESRCH : may_change(c, fd) ? 0 : -EACCES;
  bool later = *error == 0;
  pid_t helper = later ? fork() : -1;
  if (helper == 0) {
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    send_reply(c, connect_for(c, link, flags));
    _exit(0);
  }
  if (later && helper < 0) *error = -EAGAIN, later = false;
  if (fd >= 0) close(fd);
  return later;
}

static int judge(const struct call *c) {
  const __u64 *a = c->question->data.args;
  int first = (int)a[0];
  switch (c->question->data.nr) {
  case SYS_fchmod: return change(c, &(struct change){first, false, 0, 0, 'm', a[1], 0});
  case SYS_fchown: return change(c, &(struct change){first, false, 0, 0, 'o', a[1], a[2]});
  case SYS_fchmodat: return change(c, &(struct change){first, true, a[1], 0, 'm', a[2], 0});
  case SYS_FCHMODAT2: return change(c, &(struct change){first, true, a[1], a[3], 'm', a[2], 0});
  case SYS_fchownat: return change(c, &(struct change){first, true, a[1], a[4], 'o', a[2], a[3]});
  case SYS_utimensat: return change(c, &(struct change){first, a[1] != 0, a[1], a[3], 't', a[2], 0});
#ifdef SYS_chmod
  case SYS_chmod: return change(c, &(struct change){AT_FDCWD, true, a[0], 0, 'm', a[1], 0});
  case SYS_chown: return change(c, &(struct change){AT_FDCWD, true, a[0], 0, 'o', a[1], a[2]});
  case SYS_lchown: return change(c, &(struct change){AT_FDCWD, true, a[0], AT_SYMLINK_NOFOLLOW, 'o', a[1], a[2]});
#endif
  default: return -ENOSYS;
  }
}

/* Calls that are let through once they have been looked at; false: they are done here, or refused. */
static bool is_start(const struct call *c, int *error) {
  const __u64 *a = c->question->data.args;
  switch (c->question->data.nr) {
  case SYS_execve: *error = starts_judge(c, AT_FDCWD, a[0], a[1], 0); return true;
  case SYS_execveat: *error = starts_judge(c, (int)a[0], a[1], a[2], a[4]); return true;
  case SYS_set_tid_address: *error = starts_verify(c); return true;
  default: return false;
  }
}

/* The number that a process has in the /proc we see, which may be that of an outer namespace. */
struct wanted { pid_t inside, seen; };

static void see_number(pid_t pid, void *context) {
  struct wanted *w = context;
  char name[64], text[4096] = {0};
  snprintf(name, sizeof name, "/proc/%d/status", pid);
  int fd = w->seen ? -1 : open(name, O_RDONLY | O_CLOEXEC);
  if (fd < 0) return;
  ssize_t n = read(fd, text, sizeof text - 1);
  close(fd);
  char *line = n > 0 ? strstr(text, "\nNSpid:") : NULL;
  if (!line) return;
  line[1 + strcspn(line + 1, "\n")] = 0;
  if (atoi(strrchr(line, '\t') + 1) == w->inside) w->seen = pid;
}

static pid_t number_of(uint32_t pid) {
  char self[32] = {0};
  struct wanted w = {(pid_t)pid, 0};
  if (readlink("/proc/self", self, sizeof self - 1) > 0 && atoi(self) == getpid()) return (pid_t)pid;
  each_descendant(0, see_number, &w, 0);
  return w.seen;
}

/* What the program that was started has sent. */
int supervisor_take(int socket) {
  uint8_t byte;
  int fds[3];
  if (receive_fds(socket, &byte, 1, fds) != 1) return -1;
  ioctl(fds[0], SET_FLAGS, SYNC_WAKE_UP); /* quicker where the kernel knows it (6.6), and nothing else */
  return fds[0];
}

/* One question, one answer. */
void supervisor_answer(int listener, const struct request *r) {
  struct question question = {0};
  if (ioctl(listener, RECEIVE, &question) < 0) return; /* it was killed while it asked */
  char name[64];
  struct call c = {.listener = listener, .question = &question, .request = r, .pid = number_of(question.pid)};
  snprintf(name, sizeof name, "/proc/%d/mem", c.pid);
  c.memory = open(name, O_RDONLY | O_CLOEXEC);
  int error = -EPERM; /* a process that hides its memory gets nothing done by others, and starts nothing */
  bool later = false, start = false;
  if (c.memory >= 0) {
    if (question.data.nr == SYS_connect) later = connect_later(&c, &error);
    else if (!(start = is_start(&c, &error))) error = judge(&c);
    close(c.memory);
  }
  if (later) return;
  struct reply reply = {.id = question.id, .error = error, .flags = start && error == 0 ? CONTINUE : 0};
  ioctl(listener, SEND, &reply); /* the caller may be gone, and then nobody waits for it */
}
