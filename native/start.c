/* From a request to a running program, without copying the process that asks for it. */
#include "launcher.h"
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <limits.h>
#include <linux/capability.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>

/* SECCOMP_FILTER_FLAG_NEW_LISTENER and _WAIT_KILLABLE_RECV, which older headers lack. */
#define NEW_LISTENER (1u << 3)
#define WAIT_KILLABLE (1u << 5)
/* Instead of a resource's number: so many processes on top of those there are. */
#define NPROC_ON_TOP 0x100u

static int failed(struct attempt *a, char step) {
  a->error = errno ? errno : EINVAL;
  a->step = step;
  _exit(126);
}

bool become_owner(const struct request *r) {
  return setgroups(0, NULL) == 0 && setresgid(r->gid, r->gid, r->gid) == 0 && setresuid(r->uid, r->uid, r->uid) == 0;
}

/* Whoever holds none cannot undo a mount, nor be given one back by a program it executes. */
bool drop_capabilities(void) {
  struct __user_cap_header_struct head = {_LINUX_CAPABILITY_VERSION_3, 0};
  struct __user_cap_data_struct none[2] = {{0}};
  prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0);
  for (unsigned long capability = 0; capability < 64; capability++) prctl(PR_CAPBSET_DROP, capability, 0, 0, 0);
  return syscall(SYS_capset, &head, none) == 0 && prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0;
}

/* The listener, if the flags ask for one. */
int install_filter(const uint8_t *program, size_t size, unsigned flags) {
  struct sock_fprog filter = {(unsigned short)(size / sizeof(struct sock_filter)), (struct sock_filter *)(uintptr_t)program};
  return (int)syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, flags, &filter);
}

static void restrict_files(struct attempt *a) {
  const struct request *r = a->request;
  struct { uint64_t fs, net, scoped; } attr = {r->handled[0], r->handled[1], r->handled[2]};
  /* Older kernels know a shorter structure; what they do not know must not be asked of them. */
  size_t size = attr.scoped ? 24 : attr.net ? 16 : 8;
  int ruleset = (int)syscall(SYS_LANDLOCK_CREATE, &attr, size, 0);
  if (ruleset < 0) failed(a, 'l');
  for (size_t i = 0; i < r->paths.count; i++) {
    struct __attribute__((packed)) { uint64_t access; int32_t fd; } rule;
    int fd = open((const char *)r->paths.list[i].data + 8, O_PATH | O_CLOEXEC);
    if (fd < 0) continue; /* what is not there needs no rule */
    struct stat st;
    uint64_t access = get64(r->paths.list[i].data);
    /* Rights over a folder's entries mean nothing for a file, and the kernel refuses them there. */
    if (fstat(fd, &st) == 0 && !S_ISDIR(st.st_mode)) access &= 0x1 | 0x2 | 0x4 | 0x4000 | 0x8000;
    rule.access = access & attr.fs;
    rule.fd = fd;
    if (rule.access && syscall(SYS_LANDLOCK_ADD_RULE, ruleset, 1, &rule, 0) < 0) failed(a, 'l');
    close(fd);
  }
  for (size_t i = 0; i < r->ports.count; i++) {
    struct { uint64_t access, port; } rule = {get64(r->ports.list[i].data + 8), get64(r->ports.list[i].data)};
    if (syscall(SYS_LANDLOCK_ADD_RULE, ruleset, 2, &rule, 0) < 0) failed(a, 'l');
  }
  if (syscall(SYS_LANDLOCK_RESTRICT, ruleset, 0) < 0) failed(a, 'l');
  close(ruleset);
}

/* A filter that asks: about calls that take a path, under Landlock, and about program starts. Who answers gets the other end. */
void install_asking_filter(struct attempt *a) {
  const struct request *r = a->request;
  /* Only a deadly signal may end a call that is being answered, where the kernel offers that (5.19). */
  int listener = install_filter(r->seccomp, r->seccomp_size, NEW_LISTENER | WAIT_KILLABLE);
  if (listener < 0 && errno == EINVAL) listener = install_filter(r->seccomp, r->seccomp_size, NEW_LISTENER);
  if (listener < 0 || send_fds(a->listener, "", 1, &listener, 1) != 1) failed(a, 's');
}

/* Threads on the whole machine: the second number of '3/412' in the file. 0 where it cannot be read. */
static uint64_t threads_now(void) {
  char text[128];
  int fd = open("/proc/loadavg", O_RDONLY | O_CLOEXEC);
  ssize_t n = fd < 0 ? -1 : read(fd, text, sizeof text - 1);
  if (fd >= 0) close(fd);
  text[n > 0 ? n : 0] = 0;
  const char *at = strchr(text, '/');
  uint64_t count = 0;
  for (at = at ? at + 1 : ""; *at >= '0' && *at <= '9'; at++) count = count * 10 + (uint64_t)(*at - '0');
  return count;
}

/* Never more than it is: raising a limit is not for everybody. */
static bool set_limit(const uint8_t *p) {
  uint32_t resource = get32(p);
  struct rlimit limit = {get64(p + 4), get64(p + 12)}, now;
  if (resource == NPROC_ON_TOP) {
    /* Outside a user namespace of ours the kernel counts all that the user runs: more than the machine runs it cannot be. */
    uint64_t others = threads_now();
    if (others == 0) return true;
    resource = RLIMIT_NPROC;
    limit.rlim_cur += others;
    limit.rlim_max += others;
  }
  if (getrlimit(resource, &now) == 0 && limit.rlim_max > now.rlim_max) limit.rlim_max = now.rlim_max;
  if (limit.rlim_cur > limit.rlim_max) limit.rlim_cur = limit.rlim_max;
  return setrlimit(resource, &limit) == 0;
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
int become_program(void *argument) {
  struct attempt *a = argument;
  const struct request *r = a->request;
  sigset_t none;
  sigemptyset(&none);
  for (int s = 1; s < 32; s++) signal(s, SIG_DFL);
  sigprocmask(SIG_SETMASK, &none, NULL);
  setsid();
  /* First out of the way of the numbers they are meant for, then into place. */
  int fds[3], handed[2] = {-1, -1};
  for (int i = 0; i < 3; i++)
    if ((fds[i] = fcntl(a->fds[i], F_DUPFD_CLOEXEC, 20)) < 0) failed(a, 'd');
  for (int i = 0; i < 2; i++)
    if (a->handed[i] >= 0 && (handed[i] = fcntl(a->handed[i], F_DUPFD_CLOEXEC, 20)) < 0) failed(a, 'd');
  if (a->listener >= 0) a->listener = fcntl(a->listener, F_DUPFD_CLOEXEC, 20);
  for (int i = 0; i < 3; i++) dup2(fds[i], i);
  if (a->new_session && ioctl(0, TIOCSCTTY, 0) < 0) failed(a, 't');
  syscall(SYS_CLOSE_RANGE, 3, 19, 0);
  for (size_t i = 0; i < r->fds.count; i++) {
    int fd = memfd_create("callgate", MFD_CLOEXEC);
    const uint8_t *data = r->fds.list[i].data;
    size_t size = r->fds.list[i].size - 1;
    if (fd < 0 || write(fd, data + 1, size) != (ssize_t)size || lseek(fd, 0, SEEK_SET) < 0) failed(a, 'd');
    if (fd == data[0]) fcntl(fd, F_SETFD, 0);
    else if (dup2(fd, data[0]) < 0) failed(a, 'd');
    else close(fd);
  }
  for (int i = 0; i < 2; i++)
    if (handed[i] >= 0 && dup2(handed[i], CONTROL_FD + i) < 0) failed(a, 'd');
  if (chdir(r->cwd) < 0) failed(a, 'c');
  if (r->has_owner && !r->has_landlock && !become_owner(r)) failed(a, 'u'); /* the supervisor has done it for both */
  for (size_t i = 0; i < r->limits.count; i++)
    if (!set_limit(r->limits.list[i].data)) failed(a, 'r');
  if (r->has_landlock) {
    prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
    restrict_files(a);
  }
  /* Its first exec is judged too: whoever answers must be able to read this copy of it. */
  if (r->rules.count) prctl(PR_SET_DUMPABLE, 1, 0, 0, 0);
  if (r->seccomp_size) install_asking_filter(a);
  execute(r); /* everything from 20 on closes by itself */
  return failed(a, 'x');
}

/* Starts the program without copying this process; waits until it executes or failed. */
pid_t start_program(struct attempt *a) {
  static uint8_t stack[64 * 1024 + PATH_MAX] __attribute__((aligned(16)));
  a->error = 0;
  pid_t pid = clone(become_program, stack + sizeof stack, CLONE_VM | CLONE_VFORK | SIGCHLD, a);
  if (pid < 0) {
    a->error = errno;
    a->step = 'x';
  } else if (a->error) {
    waitpid(pid, NULL, 0);
    pid = -1;
  }
  return pid;
}
