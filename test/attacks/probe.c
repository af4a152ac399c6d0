/*
 * Tries to get out of a sandbox in every way we know, and to do what a sandbox must leave possible.
 * One line per probe: "name ok", "name errno N" or "name signal N". Each runs in a process of its
 * own, so one that is killed stops no other. What each outcome should be is the test's business.
 *
 *   probe WORKSPACE OUTSIDE SECRET HOST_PID TCP_PORT PATH_SOCKET AGENT_SOCKET ABSTRACT_NAME UDP_PORT
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/audit.h>
#include <netinet/in.h>
#include <arpa/inet.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/time.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <termios.h>
#include <time.h>
#include <unistd.h>

static const char *ws, *outside, *secret, *path_socket, *agent_socket, *abstract_name;
static int host_pid, tcp_port, udp_port, starter, inherited;

static char buffer[4096];
static const char *in(const char *folder, const char *name) {
  static char paths[8][4096];
  static int next;
  char *path = paths[next++ % 8];
  snprintf(path, 4096, "%s/%s", folder, name);
  return path;
}

/* 0 or -errno, for calls that answer -1. */
static int result(long value) { return value < 0 ? -errno : 0; }

static int put(const char *path, int flags) {
  int fd = open(path, flags, 0644);
  if (fd < 0) return -errno;
  return write(fd, "x", 1) == 1 ? 0 : -errno;
}
static int create(const char *path) { return put(path, O_WRONLY | O_CREAT | O_TRUNC); }
static int can_read(const char *path) {
  int fd = open(path, O_RDONLY);
  if (fd < 0) return -errno;
  return read(fd, buffer, 64) > 0 ? 0 : -ENODATA;
}
static int can_open(const char *path, int flags) { return result(open(path, flags)); }
static int finished(pid_t pid) {
  int status;
  if (pid < 0) return -errno;
  waitpid(pid, &status, 0);
  return WIFEXITED(status) && WEXITSTATUS(status) == 0 ? 0 : -ECHILD;
}

/* files: must work */
static int write_workspace(void) { return create(in(ws, "made")); }
static int mkdir_workspace(void) { return result(mkdir(in(ws, "folder"), 0755)); }
static int write_temp(void) { return create("/tmp/made"); }
static int write_dev_null(void) { return put("/dev/null", O_WRONLY); }
static int write_shm(void) {
  snprintf(buffer, sizeof buffer, "/dev/shm/probe-%d-%d", getuid(), getpid());
  int answer = create(buffer);
  unlink(buffer);
  return answer;
}
static int read_passwd(void) { return can_read("/etc/passwd"); }
static int read_git(void) { return can_read(in(ws, ".git/config")); }
static int fork_exec(void) {
  pid_t pid = fork();
  if (pid == 0) execl("/bin/true", "true", NULL), _exit(1);
  return finished(pid);
}

/* files: must fail */
static int write_outside(void) { return create(in(outside, "made")); }
static int append_outside(void) { return put(in(outside, "victim"), O_WRONLY | O_APPEND); }
static int truncate_outside(void) { return result(truncate(in(outside, "victim"), 0)); }
static int unlink_outside(void) { return result(unlink(in(outside, "victim"))); }
static int chmod_outside(void) { return result(chmod(in(outside, "victim"), 0777)); }
static int utimes_outside(void) { return result(utimes(in(outside, "victim"), NULL)); }
static int mkdir_outside(void) { return result(mkdir(in(outside, "folder"), 0755)); }
static int symlink_outside(void) { return result(symlink("/etc", in(outside, "link"))); }
static int write_through_link(void) { return create(in(ws, "out-link/through")); }
static int hardlink_outside(void) {
  if (link(in(outside, "victim"), in(ws, "hard")) < 0) return -errno;
  return put(in(ws, "hard"), O_WRONLY | O_APPEND);
}
static int rename_outside(void) {
  create(in(ws, "mine"));
  return result(rename(in(ws, "mine"), in(outside, "mine")));
}
static int rename_from_outside(void) { return result(rename(in(outside, "victim"), in(ws, "stolen"))); }
static int exchange_outside(void) {
  create(in(ws, "mine"));
  return result(syscall(SYS_renameat2, AT_FDCWD, in(ws, "mine"), AT_FDCWD, in(outside, "victim"), 2));
}
static int write_etc(void) { return create("/etc/callgate-probe"); }
static int write_home_bashrc(void) { return create(in(getenv("HOME") ? getenv("HOME") : "/root", ".callgate-probe")); }
static int dotdot_outside(void) {
  char path[4096];
  snprintf(path, sizeof path, "%s/../outside/dotdot", ws);
  return create(path);
}
static int proc_root_outside(void) {
  snprintf(buffer, sizeof buffer, "/proc/self/root%s/via-proc", outside);
  return create(buffer);
}
static int chattr_outside(void) {
  int fd = open(in(outside, "victim"), O_RDONLY), flags = 0x10;
  return fd < 0 ? -errno : result(ioctl(fd, 0x40086602, &flags)); /* FS_IOC_SETFLAGS, immutable */
}
static int flags_outside(void) {
  int fd = open(in(outside, "victim"), O_RDONLY), flags = 0x40;
  return fd < 0 ? -errno : result(ioctl(fd, 0x40086602, &flags)); /* FS_IOC_SETFLAGS, no dump: the owner may */
}
/* attributes, in every way the kernel knows; a file that is open for reading is enough for some */
static int chmod_workspace(void) {
  create(in(ws, "mode"));
  struct stat st;
  if (chmod(in(ws, "mode"), 0711) < 0 || stat(in(ws, "mode"), &st) < 0) return -errno;
  return (st.st_mode & 0777) == 0711 ? 0 : -EINVAL;
}
static int chmod_by_descriptor(void) {
  int fd = open(in(ws, "mode"), O_RDWR | O_CREAT, 0644);
  return fd < 0 ? -errno : result(fchmod(fd, 0700));
}
static int chmod_by_detour(void) { /* as the C library does for links */
  int fd = open(in(ws, "mode"), O_PATH | O_NOFOLLOW);
  snprintf(buffer, sizeof buffer, "/proc/self/fd/%d", fd);
  return fd < 0 ? -errno : result(chmod(buffer, 0711));
}
static int touch_workspace(void) {
  struct timespec when[2] = {{1000, 0}, {1000, 0}};
  struct stat st;
  create(in(ws, "time"));
  if (chdir(ws) || utimensat(AT_FDCWD, "time", when, 0) < 0 || stat("time", &st) < 0) return -errno;
  return st.st_mtime == 1000 ? 0 : -EINVAL;
}
static int touch_link(void) { /* the link's own time, not that of what it leads to */
  return result(utimensat(AT_FDCWD, in(ws, "out-link"), NULL, AT_SYMLINK_NOFOLLOW));
}
static int chown_to_self(void) {
  create(in(ws, "own"));
  return result(chown(in(ws, "own"), getuid(), getgid()));
}
static int chmod_through_link(void) { return result(chmod(in(ws, "out-link/victim"), 0777)); }
static int chmod_relative(void) { return chdir(ws) ? -errno : result(chmod("../outside/victim", 0777)); }
static int chmod_proc_root(void) {
  snprintf(buffer, sizeof buffer, "/proc/self/root%s/victim", outside);
  return result(chmod(buffer, 0777));
}
static int chmod_proc_cwd(void) {
  if (chdir(outside)) return -errno;
  return result(chmod("/proc/self/cwd/victim", 0777));
}
static int chmod_in_folder(void) {
  int folder = open(outside, O_PATH);
  return folder < 0 ? -errno : result(syscall(SYS_fchmodat, folder, "victim", 0777));
}
static int chmod_empty_path(void) {
  int fd = open(in(outside, "victim"), O_PATH);
  return fd < 0 ? -errno : result(syscall(452, fd, "", 0777, AT_EMPTY_PATH)); /* fchmodat2 */
}
static int fchmod_outside(void) {
  int fd = open(in(outside, "victim"), O_RDONLY);
  return fd < 0 ? -errno : result(fchmod(fd, 0777));
}
static int fchmod_detour_outside(void) {
  int fd = open(in(outside, "victim"), O_PATH);
  snprintf(buffer, sizeof buffer, "/proc/self/fd/%d", fd);
  return fd < 0 ? -errno : result(chmod(buffer, 0777));
}
static int chown_outside(void) { return result(chown(in(outside, "victim"), getuid(), getgid())); }
static int lchown_outside(void) { return result(lchown(in(outside, "victim"), getuid(), getgid())); }
static int fchown_outside(void) {
  int fd = open(in(outside, "victim"), O_RDONLY);
  return fd < 0 ? -errno : result(fchown(fd, getuid(), getgid()));
}
static int fchownat_outside(void) {
  int fd = open(in(outside, "victim"), O_PATH);
  return fd < 0 ? -errno : result(fchownat(fd, "", getuid(), getgid(), AT_EMPTY_PATH));
}
static int futimens_outside(void) {
  int fd = open(in(outside, "victim"), O_RDONLY);
  return fd < 0 ? -errno : result(futimens(fd, NULL));
}
static int utimensat_outside(void) { return result(utimensat(AT_FDCWD, in(outside, "victim"), NULL, 0)); }
#ifdef SYS_utime
static int old_utime_outside(void) { return result(syscall(SYS_utime, in(outside, "victim"), NULL)); }
#else
static int old_utime_outside(void) { return -ENOSYS; }
#endif

/* Whoever judges a call by its path must not be fooled by a path that changes after the look. */
static char *racing, racing_inside[4096], racing_outside[4096];
static void *swap_paths(void *arg) {
  for (;;) strcpy(racing, racing_inside), strcpy(racing, racing_outside);
  return arg;
}
static int race(const char *inside, const char *victim, char *path, int (*attack)(void)) {
  pthread_t thread;
  racing = strcpy(path, strcpy(racing_inside, inside));
  strcpy(racing_outside, victim);
  if (pthread_create(&thread, NULL, swap_paths, NULL)) return -errno;
  int answer = -EACCES;
  struct timespec start, now;
  clock_gettime(CLOCK_MONOTONIC, &start);
  do {
    answer = attack();
    clock_gettime(CLOCK_MONOTONIC, &now);
  } while (answer != 0 && (now.tv_sec - start.tv_sec) * 1000 + (now.tv_nsec - start.tv_nsec) / 1000000 < 300);
  return answer;
}
static int chmod_racing(void) {
  struct stat st;
  if (chmod(racing, 0751) < 0) return -errno;
  return stat(racing_outside, &st) == 0 && (st.st_mode & 0777) == 0751 ? 0 : -EACCES;
}
static int race_chmod(void) {
  static char path[4096];
  return race(in(ws, "mode"), in(outside, "victim"), path, chmod_racing);
}

static int setxattr_outside(void) { return result(syscall(SYS_setxattr, in(outside, "victim"), "user.x", "y", 1, 0)); }

/* protected names */
static int write_git_config(void) { return put(in(ws, ".git/config"), O_WRONLY | O_APPEND); }
static int create_git_hook(void) { return create(in(ws, ".git/hooks-pre-commit")); }
static int rename_git(void) { return result(rename(in(ws, ".git"), in(ws, ".git-old"))); }
static int exchange_git(void) {
  mkdir(in(ws, "fake-git"), 0755);
  return result(syscall(SYS_renameat2, AT_FDCWD, in(ws, "fake-git"), AT_FDCWD, in(ws, ".git"), 2));
}
static int unlink_git_config(void) { return result(unlink(in(ws, ".git/config"))); }
static int hardlink_git_config(void) {
  if (link(in(ws, ".git/config"), in(ws, "config-twin")) < 0) return -errno;
  return put(in(ws, "config-twin"), O_WRONLY | O_APPEND);
}
static int chmod_git_config(void) { return result(chmod(in(ws, ".git/config"), 0777)); }
static int umount_git(void) {
  if (umount2(in(ws, ".git"), MNT_DETACH) < 0) return -errno;
  return write_git_config();
}

/* masked reads */
static int read_secret(void) { return can_read(secret); }
static int read_secret_proc_root(void) {
  snprintf(buffer, sizeof buffer, "/proc/self/root%s", secret);
  return can_read(buffer);
}
static int copy_secret_by_link(void) {
  if (link(secret, in(ws, "secret-twin")) < 0) return -errno;
  return can_read(in(ws, "secret-twin"));
}

/* kernel files */
static int write_sysctl(void) {
  int fd = open("/proc/sys/vm/swappiness", O_RDWR);
  if (fd < 0) return -errno;
  ssize_t n = read(fd, buffer, sizeof buffer);
  lseek(fd, 0, SEEK_SET);
  return result(write(fd, buffer, n > 0 ? n : 0)); /* the value it has: harmless if it works */
}
static int open_core_pattern(void) { return can_open("/proc/sys/kernel/core_pattern", O_WRONLY); }
static int open_sysrq(void) { return can_open("/proc/sysrq-trigger", O_WRONLY); }
static int open_scsi_switch(void) { return can_open("/proc/scsi/scsi", O_WRONLY); }
static int open_irq_switch(void) { return can_open("/proc/irq/default_smp_affinity", O_WRONLY); }
static int open_kcore(void) { return can_read("/proc/kcore"); }
static int open_kmsg(void) { return can_open("/dev/kmsg", O_WRONLY); }
static int open_disk(void) {
  return can_read("/dev/vda") == 0 || can_read("/dev/sda") == 0 || can_read("/dev/nvme0n1") == 0 ? 0 : -ENOENT;
}
static int open_mem(void) { return can_open("/dev/mem", O_RDONLY); }
static int make_device(void) {
  if (mknod(in(ws, "null-twin"), S_IFCHR | 0666, makedev(1, 3)) < 0) return -errno;
  return can_open(in(ws, "null-twin"), O_RDWR);
}
static int make_cgroup(void) {
  return mkdir("/sys/fs/cgroup/callgate-probe", 0755) == 0 || mkdir("/sys/fs/cgroup/unified/callgate-probe", 0755) == 0
             ? 0 : -errno;
}
static int write_sys(void) { return can_open("/sys/kernel/mm/transparent_hugepage/enabled", O_WRONLY); }

/* processes */
static int see_host_process(void) {
  snprintf(buffer, sizeof buffer, "/proc/%d/cmdline", host_pid);
  return can_read(buffer);
}
static int read_host_environ(void) {
  snprintf(buffer, sizeof buffer, "/proc/%d/environ", host_pid);
  return can_read(buffer);
}
static int enter_host_root(void) {
  snprintf(buffer, sizeof buffer, "/proc/%d/root%s/from-root", host_pid, outside);
  return create(buffer);
}
static int open_host_memory(void) {
  snprintf(buffer, sizeof buffer, "/proc/%d/mem", host_pid);
  return can_open(buffer, O_RDWR);
}
static int signal_host(void) { return result(kill(host_pid, 0)); }
static int open_reaper_memory(void) { return can_open("/proc/1/mem", O_RDWR); }
static int open_starter_memory(void) { /* whoever started us inside: the reaper, or the launcher's keeper */
  snprintf(buffer, sizeof buffer, "/proc/%d/mem", starter);
  return can_open(buffer, O_RDWR);
}
static int use_inherited_descriptor(void) { return inherited ? 0 : -EBADF; }
static int trace_child(void) {
  pid_t pid = fork();
  if (pid == 0) pause(), _exit(0);
  int answer = result(ptrace(PTRACE_ATTACH, pid, 0, 0));
  kill(pid, SIGKILL), waitpid(pid, NULL, 0);
  return answer;
}
static int read_child_memory(void) {
  struct iovec local = {buffer, 8}, remote = {buffer, 8};
  return result(syscall(SYS_process_vm_readv, getppid(), &local, 1, &remote, 1, 0));
}
static int write_child_memory(void) {
  struct iovec local = {buffer, 8}, remote = {buffer, 8};
  return result(syscall(SYS_process_vm_writev, getppid(), &local, 1, &remote, 1, 0));
}
static int take_descriptor(void) {
  int fd = syscall(434, getppid(), 0); /* pidfd_open */
  return fd < 0 ? -errno : result(syscall(438, fd, 0, 0));
}
static int gain_privileges(void) { return prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) == 1 ? -EPERM : 0; }
static int hold_capability(void) {
  struct { uint32_t version; int pid; } header = {0x20080522, 0};
  struct { uint32_t effective, permitted, inheritable; } data[2] = {{0}};
  syscall(SYS_capget, &header, data);
  return data[0].effective | data[0].permitted | data[1].effective | data[1].permitted ? 0 : -EPERM;
}

/* namespaces and mounts */
static int unshare_user(void) { return result(unshare(CLONE_NEWUSER)); }
static int unshare_user_mount(void) { return result(unshare(CLONE_NEWUSER | CLONE_NEWNS)); }
static int unshare_net(void) { return result(unshare(CLONE_NEWNET)); }
static int clone_user(void) {
  pid_t pid = syscall(SYS_clone, CLONE_NEWUSER | SIGCHLD, 0, 0, 0, 0);
  if (pid == 0) _exit(0);
  return finished(pid);
}
static int clone3_user(void) {
  uint64_t args[11] = {CLONE_NEWUSER, 0, 0, 0, SIGCHLD};
  pid_t pid = syscall(435, args, sizeof args);
  if (pid == 0) _exit(0);
  return finished(pid);
}
static int join_namespace(void) {
  int fd = open("/proc/self/ns/mnt", O_RDONLY);
  return fd < 0 ? -errno : result(setns(fd, 0));
}
static int remount_root(void) { return result(mount("none", "/", NULL, MS_REMOUNT | MS_BIND, NULL)); }
static int mount_tmpfs(void) { return result(mount("tmpfs", "/mnt", "tmpfs", 0, NULL)); }
static int bind_over_git(void) { return result(mount("/etc", in(ws, ".git"), NULL, MS_BIND, NULL)); }
static int mount_proc(void) { return result(mount("proc", "/mnt", "proc", 0, NULL)); }
static int change_root(void) { return result(chroot(ws)); }
static int pivot(void) { return result(syscall(SYS_pivot_root, ws, ws)); }
static int clone_tree(void) { return result(syscall(428, AT_FDCWD, "/", 1)); }
static int open_filesystem(void) { return result(syscall(430, "tmpfs", 0)); }
static int set_mount_attributes(void) {
  uint64_t attr[4] = {0, 1, 0, 0};
  return result(syscall(442, AT_FDCWD, "/", 0, attr, sizeof attr));
}
static int move_a_mount(void) { return result(syscall(429, AT_FDCWD, "/proc", AT_FDCWD, "/mnt", 0)); }
static int open_by_handle(void) {
  struct { unsigned bytes; int type; unsigned char data[128]; } handle = {128, 0, {0}};
  int id;
  if (syscall(SYS_name_to_handle_at, AT_FDCWD, "/etc", &handle, &id, 0) < 0) return -errno;
  int fd = open("/etc", O_RDONLY);
  return result(syscall(SYS_open_by_handle_at, fd, &handle, O_RDONLY));
}

/* kernel doors */
static int io_uring(void) { char params[256] = {0}; return result(syscall(425, 4, params)); }
static int load_bpf(void) { char attr[128] = {0}; *(int *)attr = 1; ((int *)attr)[1] = 4; ((int *)attr)[2] = 4; ((int *)attr)[3] = 1; return result(syscall(SYS_bpf, 0, attr, 72)); }
static int key_join(void) { return result(syscall(SYS_keyctl, 1, NULL)); }
static int key_add(void) { return result(syscall(SYS_add_key, "user", "callgate", "x", 1, -3)); }
static int perf(void) { uint32_t attr[32] = {1, 128}; return result(syscall(SYS_perf_event_open, attr, 0, -1, -1, 0)); }
static int userfault(void) { return result(syscall(SYS_userfaultfd, 1)); }
static int fanotify(void) { return result(syscall(SYS_fanotify_init, 0, 0)); }
static int kernel_log(void) { return result(syscall(SYS_syslog, 3, buffer, 16)); }
static int set_hostname(void) { return result(sethostname("probe", 5)); }
static int set_clock(void) {
  struct timespec now;
  clock_gettime(CLOCK_REALTIME, &now);
  return result(clock_settime(CLOCK_REALTIME, &now));
}
static int swap_off(void) { return result(syscall(SYS_swapoff, "/nonexistent")) == -ENOENT ? 0 : -EPERM; }
static int load_module(void) { return syscall(SYS_init_module, "", 0UL, "") == 0 || errno == ENOEXEC ? 0 : -errno; }
static int kexec(void) { return result(syscall(SYS_kexec_load, 0, 0, NULL, 0)); }
static int acct_off(void) { return result(syscall(SYS_acct, NULL)); }
static int push_input(void) {
  int master = posix_openpt(O_RDWR | O_NOCTTY);
  if (master < 0 || grantpt(master) || unlockpt(master)) return -errno;
  int slave = open(ptsname(master), O_RDWR);
  return slave < 0 ? -errno : result(ioctl(slave, TIOCSTI, "x"));
}
static int push_input_wide(void) { /* the kernel looks at 32 bits of the request only, so must the filter */
  int master = posix_openpt(O_RDWR | O_NOCTTY);
  if (master < 0 || grantpt(master) || unlockpt(master)) return -errno;
  int slave = open(ptsname(master), O_RDWR);
  return slave < 0 ? -errno : result(syscall(SYS_ioctl, slave, (1UL << 32) | TIOCSTI, "x"));
}
#ifdef __x86_64__
static int old_calls(void) { /* int 0x80: getpid by the 32-bit table */
  long answer;
  __asm__ volatile("int $0x80" : "=a"(answer) : "a"(20) : "memory");
  return answer > 0 ? 0 : -ENOSYS;
}
static int x32_calls(void) {
  return result(syscall(0x40000000 | SYS_unshare, CLONE_NEWUSER));
}
#else
static int old_calls(void) { return -ENOSYS; }
static int x32_calls(void) { return -ENOSYS; }
#endif

/* network */
static int socket_of(int family, int type, int protocol) { return result(socket(family, type, protocol)); }
static int vsock(void) { return socket_of(40, SOCK_STREAM, 0); }
static int packet_socket(void) { return socket_of(17, SOCK_RAW, 0x300); }
static int raw_socket(void) { return socket_of(AF_INET, SOCK_RAW, 1); }
static int crypto_socket(void) { return socket_of(38, SOCK_SEQPACKET, 0); }
static int bluetooth_socket(void) { return socket_of(31, SOCK_RAW, 1); }
static int xdp_socket(void) { return socket_of(44, SOCK_RAW, 0); }
static int connect_tcp(const char *address) {
  int fd = socket(AF_INET, SOCK_STREAM, 0);
  struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons(tcp_port)};
  inet_pton(AF_INET, address, &to.sin_addr);
  return fd < 0 ? -errno : result(connect(fd, (void *)&to, sizeof to));
}
static int connect_host(void) { return connect_tcp("127.0.0.1"); }
static int connect_host_address(void) { return connect_tcp(getenv("HOST_ADDRESS") ? getenv("HOST_ADDRESS") : "127.0.0.1"); }
static int connect_metadata(void) {
  int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
  struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons(80)};
  inet_pton(AF_INET, "169.254.169.254", &to.sin_addr);
  if (fd < 0) return -errno;
  return connect(fd, (void *)&to, sizeof to) == 0 || errno == EINPROGRESS ? 0 : -errno;
}
static int send_udp(void) {
  int fd = socket(AF_INET, SOCK_DGRAM, 0);
  struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons(udp_port)};
  to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  if (fd < 0) return -errno;
  if (sendto(fd, "x", 1, 0, (void *)&to, sizeof to) < 0) return -errno;
  struct pollfd wait = {fd, POLLIN, 0};
  return poll(&wait, 1, 300) == 1 && recv(fd, buffer, 1, 0) == 1 ? 0 : -ETIMEDOUT; /* the host echoes */
}
static int connect_path(const char *path) {
  int fd = socket(AF_UNIX, SOCK_STREAM, 0);
  struct sockaddr_un to = {.sun_family = AF_UNIX};
  strncpy(to.sun_path, path, sizeof to.sun_path - 1);
  return fd < 0 ? -errno : result(connect(fd, (void *)&to, sizeof to));
}
static int connect_path_socket(void) { return connect_path(path_socket); }
static int connect_agent_socket(void) { return connect_path(agent_socket); }
static int connect_docker(void) { return connect_path("/var/run/docker.sock"); }
static int connect_bus(void) { return connect_path("/run/dbus/system_bus_socket"); }
static int connect_through_link(void) {
  snprintf(buffer, sizeof buffer, "%s/socket-link-%d", ws, getpid());
  return symlink(path_socket, buffer) ? -errno : connect_path(buffer);
}
static int connect_proc_root(void) {
  static char path[4096];
  snprintf(path, sizeof path, "/proc/self/root%s", path_socket);
  return strlen(path) > 107 ? -ENAMETOOLONG : connect_path(path);
}
static int connect_by_detour(void) {
  int fd = open(path_socket, O_PATH);
  snprintf(buffer, sizeof buffer, "/proc/self/fd/%d", fd);
  return fd < 0 ? -errno : connect_path(buffer);
}
static int send_to_path(void) { /* a datagram names its receiver itself */
  int fd = socket(AF_UNIX, SOCK_DGRAM, 0);
  struct sockaddr_un to = {.sun_family = AF_UNIX};
  strncpy(to.sun_path, path_socket, sizeof to.sun_path - 1);
  if (fd < 0) return -errno;
  if (sendto(fd, "x", 1, 0, (void *)&to, sizeof to) == 0) return 0;
  return errno == EPROTOTYPE ? 0 : -errno; /* it was found: only its kind was another */
}
static struct sockaddr_un racing_address = {.sun_family = AF_UNIX};
static int connect_racing(void) {
  int fd = socket(AF_UNIX, SOCK_STREAM, 0), answer = result(connect(fd, (void *)&racing_address, sizeof racing_address));
  close(fd);
  return answer;
}
static int race_connect(void) { /* between a socket of our own, which nobody listens on, and the host's */
  int server = socket(AF_UNIX, SOCK_STREAM, 0);
  struct sockaddr_un at = {.sun_family = AF_UNIX};
  if (server < 0 || chdir(ws)) return -errno;
  strcpy(at.sun_path, "racer.sock");
  unlink("racer.sock");
  if (bind(server, (void *)&at, sizeof at)) return -errno;
  return race("racer.sock", path_socket, racing_address.sun_path, connect_racing);
}
static int connect_abstract(void) {
  int fd = socket(AF_UNIX, SOCK_STREAM, 0);
  struct sockaddr_un to = {.sun_family = AF_UNIX};
  strncpy(to.sun_path + 1, abstract_name, sizeof to.sun_path - 2);
  if (fd < 0) return -errno;
  /* Node up to 20 binds abstract names padded to the full length, later ones as long as they are. */
  if (connect(fd, (void *)&to, sizeof to) == 0) return 0;
  return result(connect(fd, (void *)&to, offsetof(struct sockaddr_un, sun_path) + 1 + strlen(abstract_name)));
}
static int serve_loopback(void) {
  int server = socket(AF_INET, SOCK_STREAM, 0), client = socket(AF_INET, SOCK_STREAM, 0);
  struct sockaddr_in at = {.sin_family = AF_INET};
  socklen_t size = sizeof at;
  at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  if (server < 0 || bind(server, (void *)&at, sizeof at) || listen(server, 1)) return -errno;
  getsockname(server, (void *)&at, &size);
  return result(connect(client, (void *)&at, sizeof at));
}
static int serve_unix(void) {
  int server = socket(AF_UNIX, SOCK_STREAM, 0);
  struct sockaddr_un at = {.sun_family = AF_UNIX};
  if (chdir(ws)) return -errno; /* the path may be too long for a socket's address */
  strcpy(at.sun_path, "served.sock");
  unlink("served.sock");
  if (server < 0 || bind(server, (void *)&at, sizeof at) || listen(server, 1)) return -errno;
  return connect_path("served.sock");
}
static int connect_absolute(void) {
  int server = socket(AF_UNIX, SOCK_STREAM, 0), client = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  struct sockaddr_un at = {.sun_family = AF_UNIX};
  if (chdir(ws) || strlen(ws) > 90) return -errno;
  strcpy(at.sun_path, "absolute.sock");
  unlink("absolute.sock");
  if (server < 0 || bind(server, (void *)&at, sizeof at) || listen(server, 1)) return -errno;
  snprintf(at.sun_path, sizeof at.sun_path, "%s/absolute.sock", ws);
  if (connect(client, (void *)&at, sizeof at)) return -errno;
  int other = accept(server, NULL, NULL);
  if (write(client, "hello", 5) != 5 || read(other, buffer, 5) != 5 || memcmp(buffer, "hello", 5)) return -EIO;
  return fcntl(client, F_GETFD) == FD_CLOEXEC ? 0 : -EINVAL;
}
static int list_interfaces(void) { return socket_of(AF_NETLINK, SOCK_RAW, 0); }

#define P(name) {#name, name}
static const struct { const char *name; int (*run)(void); } probes[] = {
  P(write_workspace), P(mkdir_workspace), P(write_temp), P(write_dev_null), P(write_shm), P(read_passwd), P(read_git), P(fork_exec),
  P(chmod_workspace), P(chmod_by_descriptor), P(chmod_by_detour), P(touch_workspace), P(touch_link), P(chown_to_self),
  P(chmod_through_link), P(chmod_relative), P(chmod_proc_root), P(chmod_proc_cwd), P(chmod_in_folder), P(chmod_empty_path), P(fchmod_outside), P(fchmod_detour_outside),
  P(chown_outside), P(lchown_outside), P(fchown_outside), P(fchownat_outside), P(futimens_outside), P(utimensat_outside), P(old_utime_outside), P(race_chmod), P(flags_outside),
  P(write_outside), P(append_outside), P(truncate_outside), P(unlink_outside), P(chmod_outside), P(utimes_outside), P(mkdir_outside),
  P(symlink_outside), P(write_through_link), P(hardlink_outside), P(rename_outside), P(rename_from_outside), P(exchange_outside),
  P(write_etc), P(write_home_bashrc), P(dotdot_outside), P(proc_root_outside), P(chattr_outside), P(setxattr_outside),
  P(write_git_config), P(create_git_hook), P(rename_git), P(exchange_git), P(unlink_git_config), P(hardlink_git_config), P(chmod_git_config), P(umount_git),
  P(read_secret), P(read_secret_proc_root), P(copy_secret_by_link),
  P(write_sysctl), P(open_core_pattern), P(open_sysrq), P(open_scsi_switch), P(open_irq_switch), P(open_kcore), P(open_kmsg), P(open_disk), P(open_mem), P(make_device), P(make_cgroup), P(write_sys),
  P(see_host_process), P(read_host_environ), P(enter_host_root), P(open_host_memory), P(signal_host), P(open_reaper_memory), P(open_starter_memory), P(use_inherited_descriptor),
  P(trace_child), P(read_child_memory), P(write_child_memory), P(take_descriptor), P(gain_privileges), P(hold_capability),
  P(unshare_user), P(unshare_user_mount), P(unshare_net), P(clone_user), P(clone3_user), P(join_namespace), P(remount_root), P(mount_tmpfs), P(bind_over_git),
  P(mount_proc), P(change_root), P(pivot), P(clone_tree), P(open_filesystem), P(set_mount_attributes), P(move_a_mount), P(open_by_handle),
  P(io_uring), P(load_bpf), P(key_join), P(key_add), P(perf), P(userfault), P(fanotify), P(kernel_log), P(set_hostname), P(set_clock), P(swap_off), P(load_module), P(kexec), P(acct_off),
  P(push_input), P(push_input_wide), P(old_calls), P(x32_calls),
  P(vsock), P(packet_socket), P(raw_socket), P(crypto_socket), P(bluetooth_socket), P(xdp_socket), P(connect_host), P(connect_host_address), P(connect_metadata), P(send_udp),
  P(connect_path_socket), P(connect_agent_socket), P(connect_docker), P(connect_bus), P(connect_through_link), P(connect_proc_root), P(connect_by_detour), P(send_to_path), P(race_connect), P(connect_abstract), P(serve_loopback), P(serve_unix), P(connect_absolute), P(list_interfaces),
};

int main(int argc, char **argv) {
  if (argc != 10) return 64;
  starter = getppid();
  for (int fd = 3; fd < 1024; fd++) inherited |= fcntl(fd, F_GETFD) >= 0;
  ws = argv[1], outside = argv[2], secret = argv[3], host_pid = atoi(argv[4]), tcp_port = atoi(argv[5]);
  path_socket = argv[6], agent_socket = argv[7], abstract_name = argv[8], udp_port = atoi(argv[9]);
  for (unsigned i = 0; i < sizeof probes / sizeof *probes; i++) {
    fflush(stdout);
    int pipes[2], answer = -1, status;
    if (pipe(pipes)) return 65;
    pid_t pid = fork();
    if (pid == 0) {
      alarm(5);
      answer = probes[i].run();
      if (write(pipes[1], &answer, sizeof answer) < 0) _exit(1);
      _exit(0);
    }
    close(pipes[1]);
    int got = read(pipes[0], &answer, sizeof answer);
    close(pipes[0]);
    waitpid(pid, &status, 0);
    if (got != sizeof answer) printf("%s signal %d\n", probes[i].name, WIFSIGNALED(status) ? WTERMSIG(status) : 0);
    else if (answer == 0) printf("%s ok\n", probes[i].name);
    else printf("%s errno %d\n", probes[i].name, -answer);
  }
  return 0;
}
