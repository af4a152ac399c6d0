/*
 * The keeper: waits for one command, starts it, and stays until everything it started is gone. In a
 * sandbox it is the first process of a pid namespace; without one it is subreaper of what it starts.
 */
#include "held.h"
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>

#ifndef TIOCGPTPEER
#define TIOCGPTPEER _IO('T', 0x41)
#endif

ssize_t send_fds(int socket, const void *bytes, size_t size, const int *fds, size_t count) {
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
ssize_t receive_fds(int socket, void *bytes, size_t size, int fds[3]) {
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

struct keeper {
  int control;               /* none when it keeps one command for the command line */
  pid_t command;
  bool alone;                /* everything in this pid namespace is the command's */
  int listener;              /* where the filter asks */
  const struct request *request;
};

static void tell(struct keeper *k, struct report report, int fd) {
  if (k->control >= 0) (void)!send_fds(k->control, &report, sizeof report, &fd, fd >= 0 ? 1 : 0);
}

/*
 * Every child of every thread of `pid`, then their children; 0 is this process, whose number may be
 * another one in the /proc it sees.
 */
void each_descendant(pid_t pid, visit *see, void *context, int depth) {
  char folder[32], path[80], text[4096];
  if (pid == 0) strcpy(folder, "/proc/self/task");
  else snprintf(folder, sizeof folder, "/proc/%d/task", pid);
  DIR *threads = opendir(folder);
  if (!threads) return;
  for (struct dirent *entry; (entry = readdir(threads));) {
    if (entry->d_name[0] == '.') continue;
    snprintf(path, sizeof path, "%s/%.20s/children", folder, entry->d_name);
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

/* Orphans come back to us, so the looking ends when we have no child left. */
static void kill_all(struct keeper *k) {
  for (int round = 0; round < 1000; round++) {
    if (k->alone) kill(-1, SIGKILL);
    else {
      if (k->command > 0) kill(-k->command, SIGKILL);
      each_descendant(0, kill_one, NULL, 0);
    }
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

/* What was started since this was last told. */
static void tell_starts(struct keeper *k) {
  uint32_t unlisted;
  int list = k->request && k->request->rules.count ? starts_take(&unlisted) : -1;
  if (list < 0) return;
  tell(k, (struct report){.type = 'P', .status = (int32_t)unlisted}, list);
  close(list);
}

static _Noreturn void give_up(struct keeper *k, char step, int error) {
  tell_starts(k);
  tell(k, (struct report){.type = 'F', .step = (uint8_t)step, .error = error}, -1);
  if (k->control < 0) dprintf(2, "callgate-launcher: %s (step %c)\n", strerror(error), step);
  _exit(step == 'x' && error == ENOENT ? 127 : 126);
}

/*
 * Starts the program as a copy of this process, so that we are awake when it executes: that is the first
 * thing the filter asks about.
 */
static pid_t start_judged(struct keeper *k, struct attempt *a, int asking[2]) {
  struct attempt *shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  int done[2];
  if (shared == MAP_FAILED || pipe2(done, O_CLOEXEC) < 0) give_up(k, 'x', errno);
  *shared = *a;
  pid_t pid = fork();
  if (pid == 0) {
    /* Closes when the program executes, or when this copy of us ends. */
    if (fcntl(done[1], F_DUPFD_CLOEXEC, 20) < 0) _exit(126);
    become_program(shared);
  }
  if (pid < 0) give_up(k, 'x', errno);
  close(done[1]);
  close_fd(&asking[1]);
  k->listener = supervisor_take(asking[0]);
  for (bool over = false; !over;) {
    struct pollfd polls[2] = {{done[0], POLLIN, 0}, {k->listener, POLLIN, 0}};
    if (poll(polls, 2, -1) < 0) continue;
    if (polls[1].revents & POLLIN) supervisor_answer(k->listener, k->request);
    over = polls[0].revents != 0;
  }
  close(done[0]);
  a->error = shared->error;
  a->step = shared->step;
  munmap(shared, sizeof *shared);
  if (a->error) waitpid(pid, NULL, 0);
  return a->error ? -1 : pid;
}

static void keeper_start(struct keeper *k, const struct request *r, int fds[3]) {
  struct attempt a = {.request = r, .fds = fds, .new_session = r->has_tty, NO_ATTEMPT};
  int master = -1, slave = -1, tty[3], asking[2] = {-1, -1};
  if (r->has_tty) {
    if ((slave = open_terminal(r, &master)) < 0) give_up(k, 't', errno);
    tty[0] = tty[1] = tty[2] = slave;
    a.fds = tty;
    tell(k, (struct report){.type = 'T'}, master);
  } else if (!r->wants_input) {
    fds[2] = fds[1];
    fds[1] = fds[0];
    fds[0] = open("/dev/null", O_RDONLY | O_CLOEXEC);
  }
  if (r->has_landlock) {
    /* As the command will be, so that what we do for it is what it could do itself. */
    if ((r->has_owner && !become_owner(r)) || !drop_capabilities()) give_up(k, 'u', errno);
    prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
  }
  if (r->seccomp_size) {
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, asking) < 0) give_up(k, 's', errno);
    a.listener = asking[1];
  }
  bool judged = r->rules.count > 0;
  k->command = judged ? start_judged(k, &a, asking) : start_program(&a);
  if (k->command < 0) give_up(k, a.step, a.error);
  if (r->seccomp_size && !judged) k->listener = supervisor_take(asking[0]);
  if (r->seccomp_size && k->listener < 0) give_up(k, 's', EPROTO);
  tell(k, (struct report){.type = 'B'}, -1);
  /* A copy of ours would keep the output open for ever. */
  for (int i = 0; i < 3; i++) if (fds[i] >= 0 && k->control >= 0) close(fds[i]);
  for (int i = 0; i < 2; i++) close_fd(&asking[i]);
  close_fd(&slave);
  close_fd(&master);
}

/* Ends as its only command did. */
static _Noreturn void end_like(struct keeper *k, int status) {
  kill_all(k);
  if (WIFEXITED(status)) _exit(WEXITSTATUS(status));
  signal(WTERMSIG(status), SIG_DFL);
  sigset_t all;
  sigfillset(&all);
  sigprocmask(SIG_UNBLOCK, &all, NULL);
  raise(WTERMSIG(status));
  _exit(128 + WTERMSIG(status));
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
    if (k->control < 0) end_like(k, status);
  }
  bool nobody = pid < 0 && errno == ECHILD;
  end.survivors = !nobody;
  if (end.type || nobody) tell_starts(k);
  if (end.type) tell(k, end, -1);
  if (nobody) _exit(0);
}

static void keeper_obey(struct keeper *k, const uint8_t message[2]) {
  bool waiting = false;
  switch (message[0]) {
  case 'G':
    if (k->command > 0) kill(-k->command, message[1]);
    return;
  case 'Q':
    each_descendant(0, see_waiting, &waiting, 0);
    tell(k, (struct report){.type = 'Q', .status = waiting}, -1);
    return;
  default: /* K, and the end of the socket */
    kill_all(k);
    tell_starts(k);
    _exit(0);
  }
}

static void keeper_signal(struct keeper *k, int signals) {
  struct signalfd_siginfo info;
  while (read(signals, &info, sizeof info) > 0)
    if (info.ssi_signo != SIGCHLD && k->command > 0) kill(-k->command, (int)info.ssi_signo);
  keeper_reap(k);
}

static int keeper_open(const int *numbers, size_t count) {
  prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0);
  prctl(PR_SET_DUMPABLE, 0, 0, 0, 0); /* the command must not be able to reach into us */
  prctl(PR_SET_NAME, "callgate-keeper");
  signal(SIGPIPE, SIG_IGN);
  signal(SIGCHLD, SIG_DFL);
  sigset_t mask;
  sigemptyset(&mask);
  for (size_t i = 0; i < count; i++) sigaddset(&mask, numbers[i]);
  sigprocmask(SIG_BLOCK, &mask, NULL);
  return signalfd(-1, &mask, SFD_CLOEXEC | SFD_NONBLOCK);
}

#define LOOK_EVERY_MS 100

/* It has used up more than it may: ended as a whole, and said so. */
static void hold_to_limits(struct keeper *k) {
  char limit = limits_exceeded(k->request, k->alone);
  if (!limit) return;
  const char *what = limit == 'p' ? "many processes" : limit == 'm' ? "much memory" : "much in the temp folder";
  if (k->control < 0) dprintf(2, "callgate-launcher: ended: too %s\n", what);
  kill_all(k);
  tell_starts(k);
  tell(k, (struct report){.type = 'X', .status = SIGKILL, .limit = (uint8_t)limit}, -1);
  _exit(128 + SIGKILL);
}

static int64_t keeper_now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

static _Noreturn void keeper_watch(struct keeper *k, int signals) {
  int64_t last = keeper_now();
  for (;;) {
    struct pollfd polls[3] = {{k->control, POLLIN, 0}, {signals, POLLIN, 0}, {k->listener, POLLIN, 0}};
    int ready = poll(polls, 3, k->request->capped ? LOOK_EVERY_MS : -1);
    /* A command that has ended does not wait for a look; one that ends processes all the time does not put it off for ever. */
    const bool busy = ready > 0 && polls[1].revents;
    if (k->request->capped && keeper_now() - last >= (busy ? 2 * LOOK_EVERY_MS : LOOK_EVERY_MS)) {
      hold_to_limits(k);
      last = keeper_now();
    }
    if (ready <= 0) continue;
    if (polls[2].revents & POLLIN) supervisor_answer(k->listener, k->request);
    else if (polls[2].revents) close_fd(&k->listener); /* nobody is left who could ask */
    if (polls[1].revents) keeper_signal(k, signals);
    if (!polls[0].revents) continue;
    uint8_t message[2] = {'K', 0};
    if (recv(k->control, message, sizeof message, MSG_WAITALL) != sizeof message) message[0] = 'K';
    keeper_obey(k, message);
  }
}

/* Waits for one request, starts it, and stays until everything it started is gone. */
int keeper_main(int control, bool alone) {
  struct keeper k = {.control = control, .alone = alone, .listener = -1};
  int signals = keeper_open((const int[]){SIGCHLD}, 1);
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
  if (!request_read(&r, payload, size)) give_up(&k, 'd', EINVAL);
  if (!overlay_begin(r.run)) give_up(&k, 'b', errno);
  k.request = &r;
  keeper_start(&k, &r, fds);
  keeper_watch(&k, signals);
}

/* Keeps one command that has our own input and output, and ends as it does. */
int keeper_once(const struct request *r) {
  struct keeper k = {.control = -1, .listener = -1, .request = r};
  struct request with_input = *r;
  with_input.wants_input = true;
  int signals = keeper_open((const int[]){SIGCHLD, SIGINT, SIGTERM, SIGHUP, SIGQUIT}, 5);
  keeper_start(&k, &with_input, (int[]){0, 1, 2});
  keeper_watch(&k, signals);
}
