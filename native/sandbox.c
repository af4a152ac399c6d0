/*
 * The sandbox process: lives in a sandbox that bubblewrap has built, still with that sandbox's capabilities, and
 * gives birth to keepers. Each is the first process of namespaces of its own (processes, network, IPC,
 * mounts), so every command finds a fresh sandbox; but the folders, masks and devices were mounted once,
 * for all of them, which is what building a sandbox costs. Commands never see it: it is outside
 * their pid namespace, and what a keeper inherits is given up before a command is read.
 */
#include "held.h"
#include <errno.h>
#include <fcntl.h>
#include <net/if.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <sys/wait.h>

static uint8_t filter[4096 * 8];
static size_t filter_size;

static bool raise_loopback(void) {
  int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  struct ifreq loopback = {.ifr_name = "lo", .ifr_flags = IFF_UP | IFF_RUNNING};
  bool up = fd >= 0 && ioctl(fd, SIOCSIFFLAGS, &loopback) == 0;
  if (fd >= 0) close(fd);
  return up;
}

/* Only since Linux 6.14 has each pid namespace a largest number of its own. */
bool has_own_pid_max(void) {
  struct utsname kernel;
  unsigned major = 0, minor = 0;
  return uname(&kernel) == 0 && sscanf(kernel.release, "%u.%u", &major, &minor) == 2 && (major > 6 || (major == 6 && minor >= 14));
}

/*
 * No more processes than this can exist in a keeper's pid namespace at once, root's included. On older kernels the
 * file is the whole machine's, and root could write it.
 */
static void cap_processes(const char *number) {
  if (!number || !has_own_pid_max()) return;
  int fd = open("/proc/sys/kernel/pid_max", O_WRONLY | O_CLOEXEC);
  if (fd < 0) return; /* an outer /proc is read-only; limits.c still watches */
  (void)!write(fd, number, strlen(number));
  close(fd);
}

/* What must not be shared with the next command: processes, shared memory, terminals. */
static bool mount_own(const char *fresh) {
  const unsigned long safe = MS_NOSUID | MS_NOEXEC;
  /* Where a workspace lies in it, it was mounted with the sandbox, which then serves one command only. */
  if (!strchr(fresh, 's') && mount("tmpfs", "/dev/shm", "tmpfs", MS_NOSUID | MS_NODEV, "mode=1777") < 0) return false;
  if (mount("devpts", "/dev/pts", "devpts", safe, "newinstance,ptmxmode=0666,mode=620") < 0) return false;
  if (!strchr(fresh, 'p')) return true;
  if (mount("proc", "/proc", "proc", safe | MS_NODEV, NULL) < 0) return false;
  cap_processes(strpbrk(fresh, "123456789"));
  /* The kernel's switches there ask for the global uid 0, not for a capability that could be dropped. */
  return !strchr(fresh, 'r') || mount("none", "/proc", NULL, MS_REMOUNT | MS_BIND | MS_RDONLY | safe | MS_NODEV, NULL) == 0;
}

static _Noreturn void become_keeper(int control, const char *fresh, char **overlay) {
  dup2(control, 3);
  fcntl(3, F_SETFD, FD_CLOEXEC);
  syscall(SYS_CLOSE_RANGE, 4, ~0U, 0);
  bool sound = (!strchr(fresh, 'n') || raise_loopback()) && mount_own(fresh) && overlay_mount(overlay) && drop_capabilities() &&
               install_filter(filter, filter_size, 0) == 0;
  if (!sound) {
    struct report failed = {.type = 'F', .step = 'b', .error = errno};
    (void)!send_fds(3, &failed, sizeof failed, NULL, 0);
    _exit(1);
  }
  _exit(keeper_main(3, true));
}

/*
 * `fresh`: what each gets for its own: n(etwork), p(roc), r(ead-only /proc, for root), not s(hared memory), then a
 * number of processes; `overlay`: what is held (overlay.c).
 */
int sandbox_main(const char *fresh, char **overlay) {
  for (ssize_t n; filter_size < sizeof filter; filter_size += (size_t)n) {
    n = read(FILTER_FD, filter + filter_size, sizeof filter - filter_size);
    if (n <= 0) break;
  }
  if (filter_size == 0) return 125;
  prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
  prctl(PR_SET_NAME, "callgate-box");
  signal(SIGCHLD, SIG_IGN); /* nobody asks how they ended */
  /* A second lock beside the filter: no more user namespaces below this one. Not to be had where /proc is the outer one. */
  int limit = open("/proc/sys/user/max_user_namespaces", O_WRONLY | O_CLOEXEC);
  if (limit >= 0 && (write(limit, "0", 1) != 1 || close(limit) < 0)) return 125;
  unsigned long flags = CLONE_NEWNS | CLONE_NEWPID | CLONE_NEWIPC | CLONE_NEWUTS | CLONE_NEWCGROUP | (strchr(fresh, 'n') ? CLONE_NEWNET : 0);
  uint8_t byte;
  int fds[3];
  while (receive_fds(CONTROL_FD, &byte, 1, fds) == 1) {
    if (fds[0] < 0) continue;
    if (syscall(SYS_clone, flags | SIGCHLD, 0, 0, 0, 0) == 0) become_keeper(fds[0], fresh, overlay);
    close(fds[0]); /* a keeper that could not be made is seen by the end of its socket */
  }
  while (wait(NULL) > 0 || errno == EINTR) {} /* nobody wants more of them; those that work live on */
  return 0;
}
