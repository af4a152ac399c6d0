/* What the two parts of the supervisor share: a question the filter has put, and how what it names is found. */
#pragma once
#include "launcher.h"
#include <linux/seccomp.h>

/* As linux/seccomp.h has it, for older headers. */
struct question { uint64_t id; uint32_t pid, flags; struct seccomp_data data; };

struct call {
  int listener, memory;      /* the caller's memory */
  pid_t pid;                 /* the caller's, in the /proc we see */
  const struct question *question;
  const struct request *request;
};

int read_text(const struct call *c, uint64_t at, char *to, size_t room);
int find_program(const struct call *c, int folder, const char *path, uint64_t flags);
int starts_judge(const struct call *c, int folder, uint64_t path_at, uint64_t argv_at, uint64_t flags);
int starts_verify(const struct call *c);
