/*
 * What the kernel alone takes for `sh -c true`: spawned, in namespaces with mounts of its own, and in such that were
 * made ahead. Nothing is read, judged or recorded. As root: cc -O2 -o /tmp/floor bench/sandbox-floor.c && /tmp/floor
 */
#define _GNU_SOURCE
#include <sched.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mount.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define ROUNDS 200

extern char **environ;
static char *command[] = {"sh", "-c", "true", NULL};

static double now_us(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec * 1e6 + (double)t.tv_nsec / 1e3;
}

/* The namespaces and mounts that each of our commands has for its own. With a pipe, waits there until it is wanted. */
static pid_t start_in_box(int ready, int wanted) {
  int flags = CLONE_NEWNS | CLONE_NEWPID | CLONE_NEWIPC | CLONE_NEWUTS | CLONE_NEWCGROUP | CLONE_NEWNET | SIGCHLD;
  pid_t pid = (pid_t)syscall(SYS_clone, flags, 0, 0, 0, 0);
  if (pid != 0) return pid;
  char byte = 0;
  if (mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0 || mount("tmpfs", "/dev/shm", "tmpfs", 0, NULL) < 0 ||
      mount("devpts", "/dev/pts", "devpts", 0, "newinstance") < 0 || mount("proc", "/proc", "proc", 0, NULL) < 0)
    _exit(1);
  if (ready >= 0 && (write(ready, &byte, 1) != 1 || read(wanted, &byte, 1) != 1)) _exit(1);
  pid_t child = vfork();
  if (child == 0) {
    execv("/bin/sh", command);
    _exit(1);
  }
  int status = 1;
  waitpid(child, &status, 0);
  _exit(status != 0);
}

static double once(int way) {
  int ready[2], wanted[2], status = 1;
  char byte = 0;
  pid_t pid = -1;
  if (pipe(ready) < 0 || pipe(wanted) < 0) exit(1);
  double from = now_us();
  if (way == 0 && posix_spawn(&pid, "/bin/sh", NULL, NULL, command, environ) != 0) exit(1);
  if (way == 1) pid = start_in_box(-1, -1);
  if (way == 2) {
    pid = start_in_box(ready[1], wanted[0]);
    if (read(ready[0], &byte, 1) != 1) exit(1);
    usleep(300);
    from = now_us();
    if (write(wanted[1], &byte, 1) != 1) exit(1);
  }
  if (waitpid(pid, &status, 0) != pid || status != 0) exit(1);
  double took = now_us() - from;
  for (int i = 0; i < 2; i++) close(ready[i]), close(wanted[i]);
  usleep(1500); /* what the end of a namespace leaves to the kernel's threads is not for the next one */
  return took;
}

static int by_size(const void *a, const void *b) {
  double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

int main(void) {
  static const char *names[] = {"spawned", "namespaces, mounts, exec, end", "the same, made ahead"};
  static double took[3][ROUNDS];
  for (int round = 0; round < ROUNDS; round++)
    for (int way = 0; way < 3; way++) took[way][round] = once(way);
  for (int way = 0; way < 3; way++) {
    qsort(took[way], ROUNDS, sizeof(double), by_size);
    printf("%-30s %5.0f us (p10 %.0f, p90 %.0f)\n", names[way], took[way][ROUNDS / 2], took[way][ROUNDS / 10], took[way][ROUNDS * 9 / 10]);
  }
}
