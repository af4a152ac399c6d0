/*
 * The server: takes requests from Node, starts a job for each, and is told of every process that ends.
 * It holds no policy and no state but its jobs and the keepers that wait.
 */
#include "launcher.h"
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <time.h>

static struct buffer downstream; /* from Node, not yet a whole frame */
static int signals;

static int64_t now_us(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (int64_t)t.tv_sec * 1000000 + t.tv_nsec / 1000;
}

static bool is_ours(pid_t pid) { return job_owns(pid) || pool_owns(pid); }

static void kill_orphan(pid_t pid, void *context) {
  (void)context;
  if (!is_ours(pid)) kill(pid, SIGKILL);
}

/* A keeper that was killed leaves its processes to us; no job knows them. */
void kill_orphans(void) {
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
/* Every whole frame that has arrived. False if what arrived can be no frame. */
static bool read_frames(void) {
  struct buffer *b = &downstream;
  while (b->end - b->start >= 9) {
    const uint8_t *p = b->data + b->start;
    uint32_t length = get32(p);
    if (length < 5 || length > MAX_FRAME) return false;
    if (b->end - b->start < 4 + (size_t)length) break;
    job_obey(p[4], get32(p + 5), p + 9, length - 5);
    b->start += 4 + (size_t)length;
  }
  return true;
}

/* Whoever is gone: a keeper, a sandbox, or an orphan of a keeper that was killed. */
static void reap(void) {
  struct signalfd_siginfo info;
  while (read(signals, &info, sizeof info) > 0) {}
  for (pid_t pid; (pid = waitpid(-1, NULL, WNOHANG)) > 0;) pool_reaped(pid);
}

/* The shorter of two times; below zero is for ever. */
static int64_t sooner(int64_t a, int64_t b) { return a < 0 || (b >= 0 && b < a) ? b : a; }

/* How many microseconds until the next deadline, or until it is time to make what is wanted ahead. */
static int64_t patience(int64_t now) {
  int64_t wait = pool_patience(job_count() > 0), deadline = job_deadline() * 1000;
  return sooner(wait < 0 ? -1 : wait * 1000, !deadline ? -1 : deadline > now ? deadline - now : 0);
}

/* Waits for something to do; true if nothing came in so long that what is wanted ahead can be made. */
static bool wait_for(struct pollfd *polls, size_t count, int64_t now) {
  int64_t idle = patience(now), rest = job_rest(now), us = sooner(idle, rest);
  struct timespec time = {us / 1000000, us % 1000000 * 1000};
  return ppoll(polls, count, us < 0 ? NULL : &time, NULL) == 0 && us == idle;
}

/* Reaps until no child is left, but not for ever: whoever inherits the rest reaps it too. */
static void wait_for_all(int ms) {
  for (int waited = 0; waited < ms; waited += 2) {
    pid_t pid;
    while ((pid = waitpid(-1, NULL, WNOHANG)) > 0) {}
    if (pid < 0) return;
    kill_orphans();
    usleep(2000);
  }
}

int serve(void) {
  struct pollfd *polls = NULL;
  size_t capacity = 0;
  sigset_t mask;
  sigemptyset(&mask);
  sigaddset(&mask, SIGCHLD);
  sigprocmask(SIG_BLOCK, &mask, NULL);
  signal(SIGPIPE, SIG_IGN);
  prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0);
  prctl(PR_SET_NAME, "callgate");
  signals = signalfd(-1, &mask, SFD_CLOEXEC | SFD_NONBLOCK);
  pool_open();
  fcntl(NODE_FD, F_SETFD, FD_CLOEXEC);
  set_nonblocking(NODE_FD);
  for (;;) {
    if (2 + 4 * job_count() > capacity) polls = must(realloc(polls, (capacity = 4 + 8 * job_count()) * sizeof *polls));
    polls[0] = (struct pollfd){NODE_FD, (short)(POLLIN | (upstream.start < upstream.end ? POLLOUT : 0)), 0};
    polls[1] = (struct pollfd){signals, POLLIN, 0};
    int64_t now = now_us();
    if (wait_for(polls, 2 + job_watch(polls + 2, now), now)) pool_build();
    if (polls[1].revents) reap();
    job_serve(polls + 2, now_us());
    if (polls[0].revents & (POLLIN | POLLHUP | POLLERR)) {
      ssize_t n = read(NODE_FD, buffer_room(&downstream, CHUNK), CHUNK);
      if (n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR)) break;
      if (n > 0) downstream.end += (size_t)n;
      if (!read_frames()) break;
    }
    if (!buffer_flush(&upstream, NODE_FD)) break;
  }
  /* Node is gone: keepers end with their sockets, and a sandbox ends after its last keeper. */
  job_close_all();
  pool_close();
  wait_for_all(500);
  cgroup_leave();
  return 0;
}
