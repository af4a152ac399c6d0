/*
 * callgate-launcher: starts commands for Node.
 *
 * Node forks its whole address space for every spawn; this small process does not. It lives as long as
 * Node does and takes requests over one socket:
 *
 *   Node  <-- frames -->  server  <-- control socket -->  keeper  -->  command
 *
 * Each command gets a keeper of its own: a process that waits for one request, starts the command,
 * reports how it ended and ends whatever the command left behind. A keeper is either forked from the
 * server, or runs inside a sandbox (bubblewrap ... /proc/self/fd/9 keeper) that may have been built
 * before its command was known. Output and input pass through the server, which keeps the tail of what
 * nobody has time to read. When Node dies the socket ends, and with it everything that was started.
 *
 * The protocol is written down in src/runtime/process/launcher-protocol.ts. Nothing that arrives is
 * trusted: a request is checked whole before anything is done, and a keeper's words are only data.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <limits.h>
#include <linux/capability.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <netinet/in.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* Numbers that older headers lack; the same on every architecture. */
#define SYS_LANDLOCK_CREATE 444
#define SYS_LANDLOCK_ADD_RULE 445
#define SYS_LANDLOCK_RESTRICT 446
#define SYS_CLOSE_RANGE 436
#ifndef TIOCGPTPEER
#define TIOCGPTPEER _IO('T', 0x41)
#endif

#define NODE_FD 3     /* the server's socket to Node */
#define CONTROL_FD 8  /* a keeper's socket to the server, inside a sandbox */
#define SELF_FD 9     /* this program, open, for sandboxes that cannot see its file */
#define MAX_FRAME (64u << 20)
#define CHUNK 65536u
#define UPSTREAM_FULL (4u << 20) /* no more output is read while Node has this much to catch up with */
#define MAX_IDLE 6    /* sandboxes kept ready, over all policies */

/* ---------------------------------------------------------------- bytes */

struct buffer { uint8_t *data; size_t start, end, capacity; };

static void *must(void *memory) {
  if (!memory) _exit(70);
  return memory;
}

/* Room for `size` more bytes at the end. */
static uint8_t *buffer_room(struct buffer *b, size_t size) {
  if (b->start == b->end) b->start = b->end = 0;
  if (b->capacity - b->end < size) {
    if (b->start > 0) {
      memmove(b->data, b->data + b->start, b->end - b->start);
      b->end -= b->start;
      b->start = 0;
    }
    if (b->capacity - b->end < size) {
      size_t wanted = b->capacity ? b->capacity : 4096;
      while (wanted - b->end < size) wanted *= 2;
      b->data = must(realloc(b->data, wanted));
      b->capacity = wanted;
    }
  }
  return b->data + b->end;
}

static void buffer_add(struct buffer *b, const void *bytes, size_t size) {
  if (size == 0) return;
  memcpy(buffer_room(b, size), bytes, size);
  b->end += size;
}

static void buffer_free(struct buffer *b) {
  free(b->data);
  *b = (struct buffer){0};
}

/* Writes what the other side takes; false once it will take nothing more. */
static bool buffer_flush(struct buffer *b, int fd) {
  while (b->start < b->end) {
    ssize_t n = write(fd, b->data + b->start, b->end - b->start);
    if (n < 0) return errno == EAGAIN || errno == EINTR;
    b->start += (size_t)n;
  }
  if (b->capacity > (1u << 20)) buffer_free(b);
  return true;
}

static uint32_t get32(const uint8_t *p) { uint32_t v; memcpy(&v, p, 4); return v; }
static uint64_t get64(const uint8_t *p) { uint64_t v; memcpy(&v, p, 8); return v; }
static uint16_t get16(const uint8_t *p) { uint16_t v; memcpy(&v, p, 2); return v; }

/* ---------------------------------------------------------------- requests */

/* What is to be started. Everything points into the payload it was read from. */
struct request {
  char **argv, **envp;       /* argv[-1] is free, for a script without a first line */
  size_t argc, envc;
  const char *cwd;
  const uint8_t *shelter;    /* the block that describes the sandbox around it */
  size_t shelter_size;
  bool wants_input, has_tty, has_owner, has_landlock;
  uint16_t columns, rows;
  uint32_t uid, gid, grace_ms, ahead;
  uint64_t live_bytes, tail_bytes;
  uint64_t handled[3];       /* landlock_ruleset_attr */
  const uint8_t *seccomp;
  size_t seccomp_size;
  struct field { const uint8_t *data; size_t size; } *paths, *ports, *limits, *fds;
  size_t path_count, port_count, limit_count, fd_count;
};

static void request_free(struct request *r) {
  if (r->argv) free(r->argv - 1);
  free(r->envp);
  free(r->paths);
  free(r->ports);
  free(r->limits);
  free(r->fds);
  *r = (struct request){0};
}

static void add_word(char ***list, size_t *count, size_t spare, const uint8_t *word) {
  /* Grows by doubling; `spare` slots lie in front of the list, one for the NULL behind it. */
  if ((*count & (*count + 1)) == 0) {
    char **whole = must(realloc(*list ? *list - spare : NULL, (spare + 2 * *count + 3) * sizeof(char *)));
    *list = whole + spare;
  }
  (*list)[(*count)++] = (char *)(uintptr_t)word;
  (*list)[*count] = NULL;
}

static void add_field(struct field **list, size_t *count, const uint8_t *data, size_t size) {
  *list = must(realloc(*list, (*count + 1) * sizeof(struct field)));
  (*list)[(*count)++] = (struct field){data, size};
}

/* A whole C string: ends with its only NUL. */
static bool is_string(const uint8_t *p, size_t size) { return size > 0 && memchr(p, 0, size) == p + size - 1; }

static bool read_field(struct request *r, uint8_t tag, const uint8_t *p, size_t size) {
  switch (tag) {
  case 'a': return is_string(p, size) ? (add_word(&r->argv, &r->argc, 1, p), true) : false;
  case 'e': return is_string(p, size) ? (add_word(&r->envp, &r->envc, 0, p), true) : false;
  case 'c': r->cwd = (const char *)p; return is_string(p, size);
  case 'H': r->shelter = p; r->shelter_size = size; return size > 0;
  case 'i': r->wants_input = true; return size == 0;
  case 't':
    if (size != 4) return false;
    r->has_tty = true; r->columns = get16(p); r->rows = get16(p + 2);
    return true;
  case 'u':
    if (size != 8) return false;
    r->has_owner = true; r->uid = get32(p); r->gid = get32(p + 4);
    return true;
  case 'b': if (size != 8) return false; r->live_bytes = get64(p); return true;
  case 'T': if (size != 8) return false; r->tail_bytes = get64(p); return r->tail_bytes <= (64u << 20);
  case 'g': if (size != 4) return false; r->grace_ms = get32(p); return true;
  case 'w': if (size != 4) return false; r->ahead = get32(p); return r->ahead <= MAX_IDLE;
  case 'n': return true; /* makes two shelters different; says nothing to us */
  case 'r': if (size != 20) return false; add_field(&r->limits, &r->limit_count, p, size); return true;
  case 'L':
    if (size != 24) return false;
    r->has_landlock = true;
    for (int i = 0; i < 3; i++) r->handled[i] = get64(p + 8 * i);
    return true;
  case 'l':
    if (size < 9 || !is_string(p + 8, size - 8)) return false;
    add_field(&r->paths, &r->path_count, p, size);
    return true;
  case 'p': if (size != 16) return false; add_field(&r->ports, &r->port_count, p, size); return true;
  case 's':
    r->seccomp = p; r->seccomp_size = size;
    return size > 0 && size % sizeof(struct sock_filter) == 0 && size / sizeof(struct sock_filter) <= BPF_MAXINSNS;
  case 'd':
    if (size < 1 || p[0] < 3 || p[0] >= CONTROL_FD) return false;
    add_field(&r->fds, &r->fd_count, p, size);
    return true;
  default: return false;
  }
}

/* Fields are one byte of tag, four of size, and that many bytes. True if all of it makes sense. */
bool request_read(struct request *r, const uint8_t *p, size_t size) {
  *r = (struct request){0};
  while (size > 0) {
    if (size < 5) return false;
    uint32_t length = get32(p + 1);
    if (length > size - 5 || !read_field(r, p[0], p + 5, length)) return false;
    p += 5 + length;
    size -= 5 + length;
  }
  if (r->argc == 0 || r->argv[0][0] == 0) return false;
  if (!r->envp) r->envp = must(calloc(1, sizeof(char *)));
  return r->cwd != NULL;
}

/* ---------------------------------------------------------------- starting one program */

/* What a child that shares our memory until it executes leaves behind when it cannot. */
struct attempt {
  const struct request *request;
  const int *fds;            /* for 0, 1, 2 */
  bool new_session, control; /* a terminal at 0; the control socket and this program are handed on */
  bool in_place;             /* this process itself becomes the program */
  int control_fd, self_fd;
  int error;
  char step;                 /* where it stopped: c(hdir) u(id) l(andlock) s(eccomp) t(ty) r(limit) x(exec) d(ata) */
};

static int failed(struct attempt *a, char step) {
  a->error = errno ? errno : EINVAL;
  a->step = step;
  if (a->in_place) dprintf(2, "callgate-launcher: %s (step %c)\n", strerror(a->error), step);
  _exit(step == 'x' && a->error == ENOENT ? 127 : 126);
}

/* Root without its capabilities: Landlock stops writes, not mounts or module loading. */
static void drop_capabilities(struct attempt *a) {
  struct __user_cap_header_struct head = {_LINUX_CAPABILITY_VERSION_3, 0};
  struct __user_cap_data_struct none[2] = {{0}};
  prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0);
  for (unsigned long capability = 0; capability < 64; capability++) prctl(PR_CAPBSET_DROP, capability, 0, 0, 0);
  if (syscall(SYS_capset, &head, none) < 0) failed(a, 'l');
}

static void restrict_files(struct attempt *a) {
  const struct request *r = a->request;
  struct { uint64_t fs, net, scoped; } attr = {r->handled[0], r->handled[1], r->handled[2]};
  /* Older kernels know a shorter structure; what they do not know must not be asked of them. */
  size_t size = attr.scoped ? 24 : attr.net ? 16 : 8;
  int ruleset = (int)syscall(SYS_LANDLOCK_CREATE, &attr, size, 0);
  if (ruleset < 0) failed(a, 'l');
  for (size_t i = 0; i < r->path_count; i++) {
    struct __attribute__((packed)) { uint64_t access; int32_t fd; } rule;
    int fd = open((const char *)r->paths[i].data + 8, O_PATH | O_CLOEXEC);
    if (fd < 0) continue; /* what is not there needs no rule */
    struct stat st;
    uint64_t access = get64(r->paths[i].data);
    /* Rights over a folder's entries mean nothing for a file, and the kernel refuses them there. */
    if (fstat(fd, &st) == 0 && !S_ISDIR(st.st_mode)) access &= 0x1 | 0x2 | 0x4 | 0x4000 | 0x8000;
    rule.access = access & attr.fs;
    rule.fd = fd;
    if (rule.access && syscall(SYS_LANDLOCK_ADD_RULE, ruleset, 1, &rule, 0) < 0) failed(a, 'l');
    close(fd);
  }
  for (size_t i = 0; i < r->port_count; i++) {
    struct { uint64_t access, port; } rule = {get64(r->ports[i].data + 8), get64(r->ports[i].data)};
    if (syscall(SYS_LANDLOCK_ADD_RULE, ruleset, 2, &rule, 0) < 0) failed(a, 'l');
  }
  if (syscall(SYS_LANDLOCK_RESTRICT, ruleset, 0) < 0) failed(a, 'l');
  close(ruleset);
}

/* As execvp does, with the path list of the environment that is given, and without allocating. */
static void execute(const struct request *r) {
  char **argv = r->argv;
  const char *program = argv[0], *list = "/usr/local/bin:/usr/bin:/bin";
  char path[PATH_MAX];
  int error = ENOENT;
  for (char **e = r->envp; *e; e++)
    if (strncmp(*e, "PATH=", 5) == 0) list = *e + 5;
  bool direct = strchr(program, '/') != NULL;
  for (;;) {
    size_t length = direct ? 0 : strcspn(list, ":");
    if (length + strlen(program) + 2 <= sizeof path) {
      memcpy(path, list, length);
      if (length) path[length++] = '/';
      strcpy(path + length, program);
      execve(path, argv, r->envp);
      if (errno == ENOEXEC) {
        argv[0] = path;
        argv[-1] = "/bin/sh";
        execve("/bin/sh", argv - 1, r->envp);
        argv[0] = (char *)(uintptr_t)program;
      }
      if (errno == EACCES || (errno != ENOENT && errno != ENOTDIR)) error = errno;
      if (errno == E2BIG) break;
    }
    if (direct || list[strcspn(list, ":")] == 0) break;
    list += strcspn(list, ":") + 1;
  }
  errno = error;
}

/* Runs between clone and exec, in the caller's memory: no allocation, no return. */
static int child_main(void *argument) {
  struct attempt *a = argument;
  const struct request *r = a->request;
  sigset_t none;
  sigemptyset(&none);
  for (int s = 1; s < 32; s++) signal(s, SIG_DFL);
  sigprocmask(SIG_SETMASK, &none, NULL);
  setsid();
  /* First out of the way of the numbers they are meant for, then into place. */
  int fds[3];
  for (int i = 0; i < 3; i++)
    if ((fds[i] = fcntl(a->fds[i], F_DUPFD_CLOEXEC, 20)) < 0) failed(a, 'd');
  int control = a->control ? fcntl(a->control_fd, F_DUPFD_CLOEXEC, 20) : -1;
  int self = a->control ? fcntl(a->self_fd, F_DUPFD_CLOEXEC, 20) : -1;
  for (int i = 0; i < 3; i++) dup2(fds[i], i);
  if (a->new_session && ioctl(0, TIOCSCTTY, 0) < 0) failed(a, 't');
  syscall(SYS_CLOSE_RANGE, 3, 19, 0);
  for (size_t i = 0; i < r->fd_count; i++) {
    int fd = memfd_create("callgate", MFD_CLOEXEC);
    const uint8_t *data = r->fds[i].data;
    size_t size = r->fds[i].size - 1;
    if (fd < 0 || write(fd, data + 1, size) != (ssize_t)size || lseek(fd, 0, SEEK_SET) < 0) failed(a, 'd');
    if (fd == data[0]) fcntl(fd, F_SETFD, 0);
    else if (dup2(fd, data[0]) < 0) failed(a, 'd');
    else close(fd);
  }
  if (a->control && (dup2(control, CONTROL_FD) < 0 || dup2(self, SELF_FD) < 0)) failed(a, 'd');
  syscall(SYS_CLOSE_RANGE, 20, ~0U, 0);
  if (chdir(r->cwd) < 0) failed(a, 'c');
  if (r->has_owner && (setgroups(0, NULL) < 0 || setresgid(r->gid, r->gid, r->gid) < 0 || setresuid(r->uid, r->uid, r->uid) < 0)) failed(a, 'u');
  for (size_t i = 0; i < r->limit_count; i++) {
    const uint8_t *p = r->limits[i].data;
    struct rlimit limit = {get64(p + 4), get64(p + 12)};
    if (setrlimit(get32(p), &limit) < 0) failed(a, 'r');
  }
  if (r->has_landlock || r->seccomp) prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
  if (r->has_landlock) {
    drop_capabilities(a);
    restrict_files(a);
  }
  if (r->seccomp) {
    struct sock_fprog program = {(unsigned short)(r->seccomp_size / sizeof(struct sock_filter)), (struct sock_filter *)(uintptr_t)r->seccomp};
    if (syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &program) < 0) failed(a, 's');
  }
  execute(r);
  return failed(a, 'x');
}

/* Starts the program without copying this process; waits until it executes or failed. */
static pid_t start_program(struct attempt *a) {
  static uint8_t stack[64 * 1024 + PATH_MAX] __attribute__((aligned(16)));
  a->error = 0;
  pid_t pid = clone(child_main, stack + sizeof stack, CLONE_VM | CLONE_VFORK | SIGCHLD, a);
  if (pid < 0) {
    a->error = errno;
    a->step = 'x';
  } else if (a->error) {
    waitpid(pid, NULL, 0);
    pid = -1;
  }
  return pid;
}

/* ---------------------------------------------------------------- messages with descriptors */

static ssize_t send_fds(int socket, const void *bytes, size_t size, const int *fds, size_t count) {
  struct iovec part = {(void *)(uintptr_t)bytes, size};
  union { struct cmsghdr align; char bytes[CMSG_SPACE(3 * sizeof(int))]; } control = {0};
  struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1};
  if (count > 0) {
    message.msg_control = control.bytes;
    message.msg_controllen = CMSG_SPACE(count * sizeof(int));
    struct cmsghdr *head = CMSG_FIRSTHDR(&message);
    head->cmsg_level = SOL_SOCKET;
    head->cmsg_type = SCM_RIGHTS;
    head->cmsg_len = CMSG_LEN(count * sizeof(int));
    memcpy(CMSG_DATA(head), fds, count * sizeof(int));
  }
  return sendmsg(socket, &message, MSG_NOSIGNAL);
}

/* Up to three descriptors go into `fds`; -1 where there was none. */
static ssize_t receive_fds(int socket, void *bytes, size_t size, int fds[3]) {
  struct iovec part = {bytes, size};
  union { struct cmsghdr align; char bytes[CMSG_SPACE(3 * sizeof(int))]; } control;
  struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1, .msg_control = control.bytes, .msg_controllen = sizeof control};
  for (int i = 0; i < 3; i++) fds[i] = -1;
  ssize_t n = recvmsg(socket, &message, MSG_CMSG_CLOEXEC);
  struct cmsghdr *head = n >= 0 ? CMSG_FIRSTHDR(&message) : NULL;
  if (head && head->cmsg_level == SOL_SOCKET && head->cmsg_type == SCM_RIGHTS) {
    size_t count = (head->cmsg_len - CMSG_LEN(0)) / sizeof(int);
    memcpy(fds, CMSG_DATA(head), (count < 3 ? count : 3) * sizeof(int));
  }
  return n;
}

/* ---------------------------------------------------------------- the keeper */

/* What a keeper says: F(ailed), T(erminal, with its master), X (the command ended), D(one), Q (waiting or not). */
struct report {
  uint8_t type, step, survivors, spare;
  int32_t error, status;
  uint32_t peak_kb;
  uint64_t cpu_us;
};

struct keeper { int control; pid_t command; bool sheltered; };

static void tell(struct keeper *k, struct report report, int fd) {
  (void)!send_fds(k->control, &report, sizeof report, &fd, fd >= 0 ? 1 : 0);
}

typedef void visit(pid_t pid, void *context);

/* Every child of every thread of `pid`, then their children. */
static void each_descendant(pid_t pid, visit *see, void *context, int depth) {
  char path[64], text[4096];
  snprintf(path, sizeof path, "/proc/%d/task", pid);
  DIR *threads = opendir(path);
  if (!threads) return;
  for (struct dirent *entry; (entry = readdir(threads));) {
    if (entry->d_name[0] == '.') continue;
    snprintf(path, sizeof path, "/proc/%d/task/%.20s/children", pid, entry->d_name);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t n = fd < 0 ? 0 : read(fd, text, sizeof text - 1);
    if (fd >= 0) close(fd);
    text[n > 0 ? n : 0] = 0;
    for (char *at = text, *end; (end = strchr(at, ' ')); at = end + 1) {
      pid_t child = (pid_t)strtol(at, NULL, 10);
      if (child <= 1) continue;
      if (depth < 64) each_descendant(child, see, context, depth + 1);
      see(child, context);
    }
  }
  closedir(threads);
}

static void kill_one(pid_t pid, void *context) {
  (void)context;
  kill(pid, SIGKILL);
}

/* Orphans come back to us as their subreaper, so the looking ends when we have no child left. */
static void kill_descendants(struct keeper *k) {
  for (int round = 0; round < 1000; round++) {
    if (k->command > 0) kill(-k->command, SIGKILL);
    each_descendant(getpid(), kill_one, NULL, 0);
    int status;
    pid_t pid;
    while ((pid = waitpid(-1, &status, WNOHANG)) > 0) {}
    if (pid < 0 && errno == ECHILD) return;
    usleep(round < 20 ? 200 : 2000);
  }
}

/* Sleeping in a read of descriptor 0? */
static void see_waiting(pid_t pid, void *context) {
  char path[64], text[64] = {0};
  snprintf(path, sizeof path, "/proc/%d/syscall", pid);
  int fd = open(path, O_RDONLY | O_CLOEXEC);
  if (fd < 0) return;
  if (read(fd, text, sizeof text - 1) > 0) {
    int number = -1;
    unsigned long first = 1;
    if (sscanf(text, "%d %lx", &number, &first) == 2 && number == SYS_read && first == 0) *(bool *)context = true;
  }
  close(fd);
}

static int open_terminal(const struct request *r, int *master) {
  *master = open("/dev/ptmx", O_RDWR | O_NOCTTY | O_CLOEXEC);
  if (*master < 0) return -1;
  int unlock = 0;
  struct winsize size = {.ws_col = r->columns, .ws_row = r->rows};
  if (ioctl(*master, TIOCSPTLCK, &unlock) < 0 || ioctl(*master, TIOCSWINSZ, &size) < 0) return -1;
  return ioctl(*master, TIOCGPTPEER, O_RDWR | O_NOCTTY | O_CLOEXEC);
}

static void keeper_start(struct keeper *k, const struct request *r, int fds[3]) {
  struct attempt a = {.request = r, .fds = fds, .new_session = r->has_tty};
  int master = -1, slave = -1, tty[3];
  if (r->has_tty) {
    if ((slave = open_terminal(r, &master)) < 0) {
      tell(k, (struct report){.type = 'F', .step = 't', .error = errno}, -1);
      _exit(1);
    }
    tty[0] = tty[1] = tty[2] = slave;
    a.fds = tty;
    tell(k, (struct report){.type = 'T'}, master);
  } else if (!r->wants_input) {
    fds[2] = fds[1];
    fds[1] = fds[0];
    fds[0] = open("/dev/null", O_RDONLY | O_CLOEXEC);
  }
  k->command = start_program(&a);
  if (k->command < 0) {
    tell(k, (struct report){.type = 'F', .step = (uint8_t)a.step, .error = a.error}, -1);
    _exit(1);
  }
  /* A copy of ours would keep the output open for ever. */
  for (int i = 0; i < 3; i++) if (fds[i] >= 0) close(fds[i]);
  if (slave >= 0) close(slave);
  if (master >= 0) close(master);
}

/* Reaps; reports the command's end. Leaves when nothing is left. */
static void keeper_reap(struct keeper *k) {
  int status;
  struct rusage usage;
  struct report end = {0};
  pid_t pid;
  while ((pid = wait4(-1, &status, WNOHANG, &usage)) > 0) {
    if (pid != k->command) continue;
    uint64_t cpu = (uint64_t)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) * 1000000 + (uint64_t)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec);
    end = (struct report){.type = 'X', .status = status, .cpu_us = cpu, .peak_kb = (uint32_t)usage.ru_maxrss};
    k->command = 0;
  }
  bool alone = pid < 0 && errno == ECHILD;
  end.survivors = !alone;
  if (end.type) tell(k, end, -1);
  if (alone) _exit(0);
}

static void keeper_obey(struct keeper *k, const uint8_t message[2]) {
  bool waiting = false;
  switch (message[0]) {
  case 'G':
    if (k->command > 0) kill(-k->command, message[1]);
    return;
  case 'Q':
    each_descendant(getpid(), see_waiting, &waiting, 0);
    tell(k, (struct report){.type = 'Q', .status = waiting}, -1);
    return;
  default: /* K, and the end of the socket */
    if (!k->sheltered) kill_descendants(k); /* a sandbox dies as a whole when its first process does */
    tell(k, (struct report){.type = 'D'}, -1);
    _exit(0);
  }
}

/* Waits for one request, starts it, and stays until everything it started is gone. */
static int keeper_main(int control, bool sheltered) {
  struct keeper k = {.control = control, .sheltered = sheltered};
  prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0);
  prctl(PR_SET_DUMPABLE, 0, 0, 0, 0); /* the command must not be able to reach into us */
  prctl(PR_SET_NAME, "callgate-keeper");
  signal(SIGPIPE, SIG_IGN);
  sigset_t mask;
  sigemptyset(&mask);
  sigaddset(&mask, SIGCHLD);
  sigprocmask(SIG_BLOCK, &mask, NULL);
  int signals = signalfd(-1, &mask, SFD_CLOEXEC | SFD_NONBLOCK);

  uint8_t head[4];
  int fds[3];
  if (receive_fds(control, head, sizeof head, fds) != sizeof head) return 0;
  uint32_t size = get32(head);
  if (size > MAX_FRAME) return 1;
  uint8_t *payload = must(malloc(size + 1));
  for (uint32_t got = 0; got < size;) {
    ssize_t n = read(control, payload + got, size - got);
    if (n <= 0) return 0;
    got += (uint32_t)n;
  }
  struct request r;
  if (!request_read(&r, payload, size)) {
    tell(&k, (struct report){.type = 'F', .step = 'd', .error = EINVAL}, -1);
    return 1;
  }
  keeper_start(&k, &r, fds);
  request_free(&r);
  free(payload);
  for (;;) {
    struct pollfd polls[2] = {{control, POLLIN, 0}, {signals, POLLIN, 0}};
    if (poll(polls, 2, -1) < 0) continue;
    if (polls[1].revents) {
      struct signalfd_siginfo info;
      while (read(signals, &info, sizeof info) > 0) {}
      keeper_reap(&k);
    }
    if (polls[0].revents) {
      uint8_t message[2] = {'K', 0};
      ssize_t n = recv(control, message, sizeof message, MSG_WAITALL);
      if (n != sizeof message) message[0] = 'K';
      keeper_obey(&k, message);
    }
  }
}

/* ---------------------------------------------------------------- the server */

/* The last bytes of an output nobody has credit for, as records of stream, size and data. */
struct tail {
  uint8_t *ring;
  size_t capacity, start, used, last, last_size; /* `last` is where the newest record begins */
  uint8_t last_stream;
  uint64_t dropped[2];
};

struct job {
  struct job *next;
  uint32_t id;
  pid_t pid;                 /* the keeper, or the sandbox around it */
  int control, input, output[2];
  bool sheltered, tty, input_ends, ended, survivors, killed, gone, failed, held_open;
  struct buffer to_keeper, to_input;
  struct report end;
  uint64_t credit, tail_bytes;
  struct tail tail;
  uint32_t grace_ms;
  int64_t deadline;          /* when waiting for what is left ends; 0: not waiting */
  int diagnosis;             /* what the sandbox program had to say */
};

/* A sandbox with a keeper in it that waits for its command. */
struct idle {
  struct idle *next;
  uint8_t *key;
  size_t key_size;
  pid_t pid;
  int control, diagnosis;
};

static struct {
  struct buffer up, down;
  struct job *jobs;
  struct idle *idle;         /* newest first */
  uint8_t *due;              /* the shelter to build next, when there is time */
  size_t due_size;
  uint32_t ahead;
  struct idle *spare;        /* a keeper without a sandbox, forked ahead */
  int self_fd, null_fd, signals;
} server;

static int64_t now_ms(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

static void frame_start(uint8_t type, uint32_t id, size_t size) {
  uint8_t head[9];
  uint32_t length = (uint32_t)size + 5;
  memcpy(head, &length, 4);
  head[4] = type;
  memcpy(head + 5, &id, 4);
  buffer_add(&server.up, head, sizeof head);
}

static void frame(uint8_t type, uint32_t id, const void *bytes, size_t size) {
  frame_start(type, id, size);
  buffer_add(&server.up, bytes, size);
}

/* Step, errno and words of why a command never ran. */
static void frame_failed(uint32_t id, char step, int32_t error, const char *words, size_t size) {
  frame_start('f', id, 5 + size);
  buffer_add(&server.up, &step, 1);
  buffer_add(&server.up, &error, 4);
  buffer_add(&server.up, words, size);
}

/* ---- output that is kept back ---- */

static void ring_copy(struct tail *t, size_t at, void *bytes, size_t size, bool out) {
  at %= t->capacity;
  size_t first = t->capacity - at < size ? t->capacity - at : size;
  if (out) {
    memcpy(bytes, t->ring + at, first);
    memcpy((uint8_t *)bytes + first, t->ring, size - first);
  } else {
    memcpy(t->ring + at, bytes, first);
    memcpy(t->ring, (uint8_t *)bytes + first, size - first);
  }
}

static uint32_t tail_head(struct tail *t, uint8_t *stream) {
  uint8_t head[5];
  ring_copy(t, t->start, head, 5, true);
  *stream = head[0];
  return get32(head + 1);
}

static void tail_add(struct job *j, uint8_t stream, uint8_t *bytes, uint32_t size) {
  struct tail *t = &j->tail;
  if (!t->ring) {
    t->capacity = j->tail_bytes + 2 * CHUNK;
    t->ring = must(malloc(t->capacity));
  }
  bool joins = t->used > 0 && t->last_stream == stream && t->last_size + size <= CHUNK;
  while (t->used + size + 5 > t->capacity) {
    uint8_t old;
    uint32_t gone = tail_head(t, &old);
    if (joins && t->start == t->last) joins = false;
    t->dropped[old] += gone;
    t->start = (t->start + 5 + gone) % t->capacity;
    t->used -= 5 + gone;
  }
  if (!joins) {
    t->last = (t->start + t->used) % t->capacity;
    t->last_size = 0;
    t->last_stream = stream;
    t->used += 5;
  }
  ring_copy(t, t->start + t->used, bytes, size, false);
  t->used += size;
  t->last_size += size;
  uint8_t head[5] = {stream};
  uint32_t length = (uint32_t)t->last_size;
  memcpy(head + 1, &length, 4);
  ring_copy(t, t->last, head, 5, false);
}

static void tail_flush(struct job *j) {
  struct tail *t = &j->tail;
  for (uint8_t stream = 0; stream < 2; stream++) {
    if (!t->dropped[stream]) continue;
    uint8_t body[9] = {stream};
    memcpy(body + 1, &t->dropped[stream], 8);
    frame('d', j->id, body, sizeof body);
    t->dropped[stream] = 0;
  }
  while (t->used > 0) {
    uint8_t stream;
    uint32_t size = tail_head(t, &stream);
    frame_start(stream ? 'e' : 'o', j->id, size);
    ring_copy(t, t->start + 5, buffer_room(&server.up, size), size, true);
    server.up.end += size;
    t->start = (t->start + 5 + size) % t->capacity;
    t->used -= 5 + size;
  }
  free(t->ring);
  *t = (struct tail){0};
}

/* ---- starting ---- */

static void close_fd(int *fd) {
  if (*fd >= 0) close(*fd);
  *fd = -1;
}

static void set_nonblocking(int fd) { fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK); }

/* The sandbox program with a keeper in it; -1 and the reason in `a` if it cannot be started. */
static pid_t start_shelter(const uint8_t *block, size_t size, int *control, int *diagnosis, struct attempt *a) {
  struct request r;
  int pair[2];
  pid_t pid = -1;
  a->step = 'b';
  a->error = EINVAL;
  if (request_read(&r, block, size)) {
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) < 0) a->error = errno;
    else {
      *diagnosis = memfd_create("callgate-diagnosis", MFD_CLOEXEC);
      int fds[3] = {server.null_fd, server.null_fd, *diagnosis >= 0 ? *diagnosis : server.null_fd};
      *a = (struct attempt){.request = &r, .fds = fds, .control = true, .control_fd = pair[1], .self_fd = server.self_fd};
      pid = start_program(a);
      a->step = 'b';
      close(pair[1]);
      if (pid < 0) close(pair[0]);
      else *control = pair[0];
    }
  }
  request_free(&r);
  return pid;
}

static pid_t fork_keeper(int *control) {
  int pair[2];
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) < 0) return -1;
  pid_t pid = fork();
  if (pid == 0) {
    /* Only the control socket may stay: a copy of another command's pipe would hold it open. */
    dup2(pair[1], 3);
    syscall(SYS_CLOSE_RANGE, 4, ~0U, 0);
    _exit(keeper_main(3, false));
  }
  close(pair[1]);
  if (pid < 0) close(pair[0]);
  else *control = pair[0];
  return pid;
}

static void idle_free(struct idle *i) {
  free(i->key);
  free(i);
}

/* A ready sandbox with exactly these words, alive; taken out of the list. */
static struct idle *take_idle(const uint8_t *key, size_t size) {
  for (struct idle **at = &server.idle; *at; at = &(*at)->next) {
    struct idle *i = *at;
    if (i->key_size != size || memcmp(i->key, key, size) != 0) continue;
    *at = i->next;
    return i;
  }
  return NULL;
}

static void drop_idle(struct idle *i) {
  kill(i->pid, SIGKILL);
  close_fd(&i->control);
  close_fd(&i->diagnosis);
  idle_free(i);
}

static size_t count_idle(const uint8_t *key, size_t size) {
  size_t count = 0;
  for (struct idle *i = server.idle; i; i = i->next)
    if (!key || (i->key_size == size && memcmp(i->key, key, size) == 0)) count++;
  return count;
}

static void fork_spare(void) {
  struct idle *i = must(calloc(1, sizeof *i));
  i->diagnosis = i->control = -1;
  i->pid = fork_keeper(&i->control);
  if (i->pid > 0) server.spare = i;
  else idle_free(i);
}

/* One more of what is due; the oldest goes when there are too many. */
static void build_ahead(void) {
  struct attempt a;
  if (!server.due) return;
  struct idle *i = must(calloc(1, sizeof *i));
  i->control = i->diagnosis = -1;
  i->key = must(malloc(server.due_size));
  memcpy(i->key, server.due, i->key_size = server.due_size);
  i->pid = start_shelter(i->key, i->key_size, &i->control, &i->diagnosis, &a);
  bool enough = i->pid < 0;
  if (i->pid < 0) {
    close_fd(&i->diagnosis);
    idle_free(i);
  } else {
    i->next = server.idle;
    server.idle = i;
  }
  if (count_idle(NULL, 0) > MAX_IDLE) {
    struct idle **at = &server.idle;
    while ((*at)->next) at = &(*at)->next;
    drop_idle(*at);
    *at = NULL;
  }
  if (enough || count_idle(server.due, server.due_size) >= server.ahead) {
    free(server.due);
    server.due = NULL;
  }
}

static void plan_ahead(const uint8_t *key, size_t size) {
  struct request r;
  if (request_read(&r, key, size) && r.ahead > count_idle(key, size)) {
    server.due = must(realloc(server.due, size));
    memcpy(server.due, key, server.due_size = size);
    server.ahead = r.ahead;
  }
  request_free(&r);
}

static void job_free(struct job *j) {
  close_fd(&j->control);
  if (j->input != j->output[0]) close_fd(&j->input);
  close_fd(&j->output[0]);
  close_fd(&j->output[1]);
  close_fd(&j->diagnosis);
  buffer_free(&j->to_keeper);
  buffer_free(&j->to_input);
  free(j->tail.ring);
  free(j);
}

static bool open_pipes(struct job *j, const struct request *r, int theirs[3]) {
  int pipes[3][2] = {{-1, -1}, {-1, -1}, {-1, -1}};
  for (int i = r->wants_input ? 0 : 1; i < 3; i++)
    if (pipe2(pipes[i], O_CLOEXEC) < 0) {
      for (int k = 0; k < 3; k++) close_fd(&pipes[k][0]), close_fd(&pipes[k][1]);
      return false;
    }
  theirs[0] = pipes[0][0];
  theirs[1] = pipes[1][1];
  theirs[2] = pipes[2][1];
  j->input = pipes[0][1];
  j->output[0] = pipes[1][0];
  j->output[1] = pipes[2][0];
  if (j->input >= 0) set_nonblocking(j->input);
  set_nonblocking(j->output[0]);
  set_nonblocking(j->output[1]);
  return true;
}

static bool find_keeper(struct job *j, const struct request *r, struct attempt *a) {
  if (!r->shelter && !server.spare) {
    a->step = 'x';
    j->pid = fork_keeper(&j->control);
    a->error = errno;
    return j->pid > 0;
  }
  j->sheltered = r->shelter != NULL;
  struct idle *i = r->shelter ? take_idle(r->shelter, r->shelter_size) : server.spare;
  if (i) {
    if (i == server.spare) server.spare = NULL;
    j->pid = i->pid;
    j->control = i->control;
    j->diagnosis = i->diagnosis;
    idle_free(i);
    return true;
  }
  j->pid = start_shelter(r->shelter, r->shelter_size, &j->control, &j->diagnosis, a);
  return j->pid > 0;
}

static void hand_over(struct job *j, const uint8_t *payload, size_t size, const int theirs[3]) {
  uint32_t length = (uint32_t)size;
  int fds[3];
  size_t count = 0;
  /* Input, output, errors; where the command gets no input, only the last two. */
  for (int i = 0; i < 3; i++) if (theirs[i] >= 0) fds[count++] = theirs[i];
  (void)!send_fds(j->control, &length, 4, fds, count);
  set_nonblocking(j->control);
  buffer_add(&j->to_keeper, payload, size);
  buffer_flush(&j->to_keeper, j->control);
}

static void start_job(uint32_t id, const uint8_t *payload, size_t size) {
  struct request r;
  struct attempt a = {.step = 'd', .error = EINVAL};
  if (!request_read(&r, payload, size)) {
    frame_failed(id, 'd', EINVAL, NULL, 0);
    request_free(&r);
    return;
  }
  struct job *j = must(calloc(1, sizeof *j));
  *j = (struct job){.id = id, .control = -1, .input = -1, .output = {-1, -1}, .diagnosis = -1, .tty = r.has_tty};
  j->credit = r.live_bytes;
  j->tail_bytes = r.tail_bytes;
  j->grace_ms = r.grace_ms;
  int theirs[3] = {-1, -1, -1};
  if ((!r.has_tty && !open_pipes(j, &r, theirs)) || !find_keeper(j, &r, &a)) {
    frame_failed(id, a.step, a.error ? a.error : EMFILE, NULL, 0);
    job_free(j);
  } else {
    j->next = server.jobs;
    server.jobs = j;
    /* The shelter comes first in a request: the command's own fields are the rest. */
    const uint8_t *own = r.shelter ? r.shelter + r.shelter_size : payload;
    hand_over(j, own, (size_t)(payload + size - own), theirs);
    if (r.shelter) plan_ahead(r.shelter, r.shelter_size);
  }
  for (int i = 0; i < 3; i++) close_fd(&theirs[i]);
  request_free(&r);
}

/* ---- what goes on ---- */

static void tell_keeper(struct job *j, char what, uint8_t detail) {
  uint8_t message[2] = {(uint8_t)what, detail};
  if (j->control < 0) return;
  buffer_add(&j->to_keeper, message, sizeof message);
  buffer_flush(&j->to_keeper, j->control);
}

static void kill_job(struct job *j) {
  if (j->killed) return;
  j->killed = true;
  if (j->sheltered) kill(j->pid, SIGKILL);
  else tell_keeper(j, 'K', 0);
}

/* Reads once from an output; a full pipe means more is coming, so it gets a larger one. */
static void pump(struct job *j, uint8_t stream) {
  static uint8_t chunk[CHUNK];
  int *fd = &j->output[stream];
  bool live = j->credit > 0 && j->tail.used == 0;
  uint8_t *to = live ? buffer_room(&server.up, CHUNK + 9) + 9 : chunk;
  ssize_t n = read(*fd, to, live && j->credit < CHUNK ? j->credit : CHUNK);
  if (n < 0 && (errno == EAGAIN || errno == EINTR)) return;
  if (n <= 0) { /* a terminal ends with EIO */
    if (j->input == *fd) j->input = -1;
    close_fd(fd);
    return;
  }
  if (n == CHUNK && !j->tty) fcntl(*fd, F_SETPIPE_SZ, 1 << 20);
  if (!live) {
    tail_add(j, stream, chunk, (uint32_t)n);
    return;
  }
  j->credit -= (uint64_t)n;
  frame_start(stream ? 'e' : 'o', j->id, (size_t)n);
  server.up.end += (size_t)n; /* the bytes already lie behind the head */
}

static void take_report(struct job *j) {
  struct report report;
  int fds[3];
  ssize_t n = receive_fds(j->control, &report, sizeof report, fds);
  if (n < 0 && (errno == EAGAIN || errno == EINTR)) return;
  if (n != sizeof report) {
    close_fd(&j->control);
    return;
  }
  uint8_t waiting = report.status != 0;
  switch (report.type) {
  case 'T':
    if (j->tty && j->output[0] < 0) {
      j->input = j->output[0] = fds[0];
      fds[0] = -1;
      if (j->input >= 0) set_nonblocking(j->input);
    }
    break;
  case 'F':
    if (!j->failed) frame_failed(j->id, (char)report.step, report.error, NULL, 0);
    j->failed = true;
    break;
  case 'X':
    j->end = report;
    j->ended = true;
    j->survivors = report.survivors != 0;
    break;
  case 'Q':
    frame('q', j->id, &waiting, 1);
    break;
  default: break;
  }
  for (int i = 0; i < 3; i++) close_fd(&fds[i]);
}

/* A sandbox that could not be built says why on its standard error. */
static void report_shelter_failure(struct job *j) {
  char words[512];
  ssize_t n = j->diagnosis < 0 ? 0 : pread(j->diagnosis, words, sizeof words, 0);
  frame_failed(j->id, 'b', EPERM, words, n > 0 ? (size_t)n : 0);
}

static void report_end(struct job *j) {
  int status = j->ended ? j->end.status : SIGKILL; /* a keeper that died took the command's end with it */
  uint8_t body[25];
  int32_t code = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  int32_t signal = WIFSIGNALED(status) ? WTERMSIG(status) : 0;
  uint64_t peak = (uint64_t)j->end.peak_kb * 1024;
  memcpy(body, &code, 4);
  memcpy(body + 4, &signal, 4);
  memcpy(body + 8, &j->end.cpu_us, 8);
  memcpy(body + 16, &peak, 8);
  body[24] = j->held_open;
  tail_flush(j);
  frame('x', j->id, body, sizeof body);
}

static bool is_ours(pid_t pid) {
  if (server.spare && server.spare->pid == pid) return true;
  for (struct job *j = server.jobs; j; j = j->next) if (j->pid == pid) return true;
  for (struct idle *i = server.idle; i; i = i->next) if (i->pid == pid) return true;
  return false;
}

static void kill_orphan(pid_t pid, void *context) {
  (void)context;
  if (!is_ours(pid)) kill(pid, SIGKILL);
}

/* A keeper that was killed leaves its processes to us; no job knows them. */
static void kill_orphans(void) {
  char path[64], text[4096];
  snprintf(path, sizeof path, "/proc/self/task/%d/children", getpid());
  int fd = open(path, O_RDONLY | O_CLOEXEC);
  ssize_t n = fd < 0 ? 0 : read(fd, text, sizeof text - 1);
  if (fd >= 0) close(fd);
  text[n > 0 ? n : 0] = 0;
  for (char *at = text, *end; (end = strchr(at, ' ')); at = end + 1) {
    pid_t pid = (pid_t)strtol(at, NULL, 10);
    if (is_ours(pid)) continue;
    each_descendant(pid, kill_orphan, NULL, 0);
    kill_orphan(pid, NULL);
  }
}

/* What to wait for after the command ended; true when there is nothing left to wait for. */
static bool wound_up(struct job *j, int64_t now) {
  bool open = j->output[0] >= 0 || j->output[1] >= 0;
  if (j->survivors && !j->killed) {
    if (j->deadline == 0) j->deadline = now + j->grace_ms;
    if (open && now < j->deadline) return false;
    j->held_open = open;
    kill_job(j);
    j->deadline = 0;
  }
  /* The writers are dead or dying; what they wrote is still read. The limit is for one that cannot die. */
  if (j->deadline == 0) j->deadline = now + 2000;
  bool left = j->survivors && j->control >= 0 && !j->gone;
  return (!open && !left) || now >= j->deadline;
}

/* True when nothing more is to come and Node has been told. */
static bool settle(struct job *j, int64_t now) {
  if (j->failed) {
    kill_job(j);
    return true;
  }
  bool over = j->control < 0;
  if (!j->ended && !over) return false;
  if (!j->ended && j->sheltered) {
    if (!j->gone) return false; /* the sandbox program may still be saying why */
    if (!j->killed && j->diagnosis >= 0 && lseek(j->diagnosis, 0, SEEK_END) > 0) {
      report_shelter_failure(j);
      return true;
    }
  }
  if (!j->ended && !j->sheltered) kill_orphans(); /* the keeper was killed: its processes are ours now */
  if (!wound_up(j, now)) return false;
  report_end(j);
  return true;
}

static void feed_input(struct job *j) {
  if (j->input < 0) return;
  bool open = buffer_flush(&j->to_input, j->input);
  if (j->tty) {
    static const char end_of_input = 4;
    if (j->input_ends && write(j->input, &end_of_input, 1) == 1) j->input_ends = false;
    return;
  }
  if (!open || (j->input_ends && j->to_input.start == j->to_input.end)) {
    buffer_free(&j->to_input);
    close_fd(&j->input);
  }
}

static struct job *find_job(uint32_t id) {
  for (struct job *j = server.jobs; j; j = j->next)
    if (j->id == id) return j;
  return NULL;
}

static void obey(uint8_t type, uint32_t id, const uint8_t *p, size_t size) {
  if (type == 'S') return start_job(id, p, size);
  if (type == 'P') return plan_ahead(p, size);
  struct job *j = find_job(id);
  if (!j) return; /* it ended while this was on its way */
  switch (type) {
  case 'I': buffer_add(&j->to_input, p, size); feed_input(j); break;
  case 'E': j->input_ends = true; feed_input(j); break;
  case 'K': kill_job(j); break;
  case 'Q': tell_keeper(j, 'Q', 0); break;
  case 'G':
    if (size == 1 && !(j->tty && j->input >= 0 && ioctl(j->input, TIOCSIG, (int)p[0]) == 0)) tell_keeper(j, 'G', p[0]);
    break;
  case 'R':
    if (size == 4 && j->tty && j->input >= 0) {
      struct winsize w = {.ws_col = get16(p), .ws_row = get16(p + 2)};
      ioctl(j->input, TIOCSWINSZ, &w);
    }
    break;
  case 'M':
    if (size != 4) break;
    tail_flush(j);
    j->credit += get32(p);
    if (j->credit > (1u << 30)) j->credit = 1u << 30;
    break;
  default: break;
  }
}

/* Every whole frame that has arrived. False if what arrived can be no frame. */
bool read_frames(void) {
  struct buffer *b = &server.down;
  while (b->end - b->start >= 9) {
    const uint8_t *p = b->data + b->start;
    uint32_t length = get32(p);
    if (length < 5 || length > MAX_FRAME) return false;
    if (b->end - b->start < 4 + (size_t)length) break;
    obey(p[4], get32(p + 5), p + 9, length - 5);
    b->start += 4 + (size_t)length;
  }
  return true;
}

/* Whoever is gone: a keeper, a sandbox, or an orphan of a keeper that was killed. */
static void reap(void) {
  struct signalfd_siginfo info;
  while (read(server.signals, &info, sizeof info) > 0) {}
  for (pid_t pid; (pid = waitpid(-1, NULL, WNOHANG)) > 0;) {
    if (server.spare && server.spare->pid == pid) {
      close_fd(&server.spare->control);
      idle_free(server.spare);
      server.spare = NULL;
    }
    for (struct job *j = server.jobs; j; j = j->next)
      if (j->pid == pid) j->gone = true;
    for (struct idle **at = &server.idle; *at; at = &(*at)->next)
      if ((*at)->pid == pid) {
        struct idle *dead = *at;
        *at = dead->next;
        close_fd(&dead->control);
        close_fd(&dead->diagnosis);
        idle_free(dead);
        break;
      }
  }
}

static size_t watch(struct pollfd **polls, size_t *capacity, bool full) {
  size_t count = 2;
  for (struct job *j = server.jobs; j; j = j->next) count += 4;
  if (count > *capacity) *polls = must(realloc(*polls, (*capacity = count * 2) * sizeof(struct pollfd)));
  struct pollfd *p = *polls;
  p[0] = (struct pollfd){NODE_FD, (short)(POLLIN | (server.up.start < server.up.end ? POLLOUT : 0)), 0};
  p[1] = (struct pollfd){server.signals, POLLIN, 0};
  count = 2;
  for (struct job *j = server.jobs; j; j = j->next) {
    p[count++] = (struct pollfd){j->control, (short)(POLLIN | (j->to_keeper.start < j->to_keeper.end ? POLLOUT : 0)), 0};
    p[count++] = (struct pollfd){full ? -1 : j->output[0], POLLIN, 0};
    p[count++] = (struct pollfd){full ? -1 : j->output[1], POLLIN, 0};
    p[count++] = (struct pollfd){j->to_input.start < j->to_input.end ? j->input : -1, POLLOUT, 0};
  }
  return count;
}

static void serve_jobs(const struct pollfd *p) {
  for (struct job *j = server.jobs; j; j = j->next, p += 4) {
    if (p[0].revents & POLLOUT) buffer_flush(&j->to_keeper, j->control);
    if (p[0].revents & (POLLIN | POLLHUP | POLLERR)) take_report(j);
    for (uint8_t s = 0; s < 2; s++) if (p[1 + s].revents && j->output[s] >= 0) pump(j, s);
    feed_input(j);
  }
  int64_t now = now_ms();
  for (struct job **at = &server.jobs; *at;) {
    struct job *j = *at;
    if (!settle(j, now)) {
      at = &j->next;
      continue;
    }
    *at = j->next;
    job_free(j);
  }
}

/*
 * How long to sleep: until the next deadline; a moment, if there is something to build. Building takes
 * as much of the machine as a short command, so it waits for a running one to end, if that is soon; but
 * not when none is left, because then calls come faster than sandboxes are built.
 */
static int patience(void) {
  bool urgent = server.due && count_idle(server.due, server.due_size) == 0;
  bool wanted = server.due || !server.spare;
  int64_t wait = urgent ? 0 : !wanted ? -1 : server.jobs ? 40 : 1, now = now_ms();
  for (struct job *j = server.jobs; j; j = j->next) {
    if (j->deadline == 0) continue;
    int64_t left = j->deadline > now ? j->deadline - now : 0;
    if (wait < 0 || left < wait) wait = left;
  }
  return (int)wait;
}

static int serve(void) {
  struct pollfd *polls = NULL;
  size_t capacity = 0;
  sigset_t mask;
  sigemptyset(&mask);
  sigaddset(&mask, SIGCHLD);
  sigprocmask(SIG_BLOCK, &mask, NULL);
  signal(SIGPIPE, SIG_IGN);
  prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0);
  prctl(PR_SET_NAME, "callgate");
  server.signals = signalfd(-1, &mask, SFD_CLOEXEC | SFD_NONBLOCK);
  server.null_fd = open("/dev/null", O_RDWR | O_CLOEXEC);
  server.self_fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
  fcntl(NODE_FD, F_SETFD, FD_CLOEXEC);
  set_nonblocking(NODE_FD);
  for (;;) {
    bool full = server.up.end - server.up.start > UPSTREAM_FULL;
    size_t count = watch(&polls, &capacity, full);
    int ready = poll(polls, count, patience());
    if (ready == 0) {
      if (!server.spare) fork_spare();
      build_ahead();
    }
    if (polls[1].revents) reap();
    serve_jobs(polls + 2);
    if (polls[0].revents & (POLLIN | POLLHUP | POLLERR)) {
      ssize_t n = read(NODE_FD, buffer_room(&server.down, CHUNK), CHUNK);
      if (n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR)) break;
      if (n > 0) server.down.end += (size_t)n;
      if (!read_frames()) break;
    }
    if (!buffer_flush(&server.up, NODE_FD)) break;
  }
  /* Node is gone. Keepers end their commands when their socket does; sandboxes are ended by us. */
  for (struct job *j = server.jobs; j; j = j->next) if (j->sheltered) kill(j->pid, SIGKILL);
  for (struct idle *i = server.idle; i; i = i->next) kill(i->pid, SIGKILL);
  return 0;
}

/* ---------------------------------------------------------------- single uses */

/* `once FD`: reads one request from FD and becomes it. */
static int once(int fd) {
  struct buffer b = {0};
  struct request r;
  for (ssize_t n; (n = read(fd, buffer_room(&b, CHUNK), CHUNK)) > 0;) b.end += (size_t)n;
  if (!request_read(&r, b.data + b.start, b.end - b.start)) {
    fprintf(stderr, "callgate-launcher: malformed request\n");
    return 125;
  }
  const int fds[3] = {0, 1, 2};
  struct attempt a = {.request = &r, .fds = fds, .in_place = true};
  return child_main(&a);
}

struct link { int a, b; };

static _Noreturn void relay_loop(int listener, const struct sockaddr_un *target) {
  static struct link links[256];
  static struct pollfd polls[513];
  static uint8_t chunk[CHUNK];
  size_t count = 0;
  for (;;) {
    polls[0] = (struct pollfd){count < 256 ? listener : -1, POLLIN, 0};
    for (size_t i = 0; i < count; i++) {
      polls[1 + 2 * i] = (struct pollfd){links[i].a, POLLIN, 0};
      polls[2 + 2 * i] = (struct pollfd){links[i].b, POLLIN, 0};
    }
    if (poll(polls, 1 + 2 * count, -1) < 0) continue;
    for (size_t i = count; i-- > 0;) {
      bool over = false;
      for (int side = 0; side < 2; side++) {
        if (!polls[1 + 2 * i + (size_t)side].revents) continue;
        int from = side ? links[i].b : links[i].a, to = side ? links[i].a : links[i].b;
        ssize_t n = read(from, chunk, sizeof chunk);
        for (ssize_t at = 0, m; at < n; at += m) if ((m = write(to, chunk + at, (size_t)(n - at))) <= 0) { n = 0; break; }
        if (n <= 0) over = true;
      }
      if (!over) continue;
      close(links[i].a);
      close(links[i].b);
      links[i] = links[--count];
    }
    if (!polls[0].revents) continue;
    struct link link = {accept4(listener, NULL, NULL, SOCK_CLOEXEC), socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0)};
    if (link.a >= 0 && link.b >= 0 && connect(link.b, (const struct sockaddr *)target, sizeof *target) == 0) links[count++] = link;
    else close_fd(&link.a), close_fd(&link.b);
  }
}

/* `relay PORT SOCKET -- COMMAND`: connections to that port of the sandbox's own loopback go to the socket. */
static int relay(char **args) {
  struct sockaddr_in here = {.sin_family = AF_INET, .sin_port = htons((uint16_t)atoi(args[0])), .sin_addr = {htonl(INADDR_LOOPBACK)}};
  struct sockaddr_un target = {.sun_family = AF_UNIX};
  int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), yes = 1;
  if (strlen(args[1]) >= sizeof target.sun_path) return 125;
  strcpy(target.sun_path, args[1]);
  setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
  if (listener < 0 || bind(listener, (struct sockaddr *)&here, sizeof here) < 0 || listen(listener, 64) < 0) {
    perror("callgate-launcher: relay");
    return 125;
  }
  /* Twice, so that the relay is nobody's child: it ends with the sandbox. */
  if (fork() == 0) {
    if (fork() != 0) _exit(0);
    signal(SIGPIPE, SIG_IGN);
    setsid();
    prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
    int null = open("/dev/null", O_RDWR);
    for (int i = 0; i < 3; i++) dup2(null, i);
    int kept = dup2(listener, 3);
    syscall(SYS_CLOSE_RANGE, 4, ~0U, 0);
    relay_loop(kept, &target);
  }
  wait(NULL);
  close(listener);
  execvp(args[3], args + 3);
  perror("callgate-launcher: relay");
  return 127;
}

#ifndef CALLGATE_FUZZ
int main(int argc, char **argv) {
  const char *mode = argc > 1 ? argv[1] : "";
  if (strcmp(mode, "serve") == 0) return serve();
  if (strcmp(mode, "keeper") == 0) {
    int control = dup3(CONTROL_FD, 3, O_CLOEXEC);
    syscall(SYS_CLOSE_RANGE, 4, ~0U, 0);
    return control < 0 ? 125 : keeper_main(control, true);
  }
  if (strcmp(mode, "once") == 0 && argc == 3) return once(atoi(argv[2]));
  if (strcmp(mode, "relay") == 0 && argc > 5 && strcmp(argv[4], "--") == 0) return relay(argv + 2);
  if (strcmp(mode, "landlock-abi") == 0) {
    long abi = syscall(SYS_LANDLOCK_CREATE, NULL, 0, 1);
    return printf("%ld\n", abi > 0 ? abi : 0) < 0;
  }
  fprintf(stderr, "usage: callgate-launcher serve | keeper | once FD | relay PORT SOCKET -- COMMAND... | landlock-abi\n");
  return 2;
}
#endif
