/*
 * What the parts of the launcher share: request.c reads requests, start.c turns one into a running
 * program, keeper.c watches over it, pool.c keeps keepers and sandboxes ready, tail.c keeps back output
 * that nobody reads yet, server.c talks to Node, launcher.c is the program.
 */
#pragma once
#define _GNU_SOURCE
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/types.h>
#include <unistd.h>

/* Numbers that older headers lack; the same on every architecture. */
#define SYS_LANDLOCK_CREATE 444
#define SYS_LANDLOCK_ADD_RULE 445
#define SYS_LANDLOCK_RESTRICT 446
#define SYS_CLOSE_RANGE 436

#define NODE_FD 3     /* the server's socket to Node */
#define CONTROL_FD 8  /* a keeper's socket to the server, inside a sandbox */
#define SELF_FD 9     /* this program, open, for sandboxes that cannot see its file */
#define MAX_FRAME (64u << 20)
#define CHUNK 65536u

/* ---- request.c: bytes, and what is to be started ---- */

struct buffer { uint8_t *data; size_t start, end, capacity; };

void *must(void *memory);
uint8_t *buffer_room(struct buffer *b, size_t size);
void buffer_add(struct buffer *b, const void *bytes, size_t size);
void buffer_free(struct buffer *b);
bool buffer_flush(struct buffer *b, int fd);
void close_fd(int *fd);

static inline uint16_t get16(const uint8_t *p) { uint16_t v; memcpy(&v, p, 2); return v; }
static inline uint32_t get32(const uint8_t *p) { uint32_t v; memcpy(&v, p, 4); return v; }
static inline uint64_t get64(const uint8_t *p) { uint64_t v; memcpy(&v, p, 8); return v; }

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

bool request_read(struct request *r, const uint8_t *p, size_t size);
void request_free(struct request *r);

/* ---- start.c: from a request to a program ---- */

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

pid_t start_program(struct attempt *a);
int become_program(void *attempt);

/* ---- keeper.c: one command, and whatever it leaves behind ---- */

/* What a keeper says: T(erminal, with its master), B(egun) or F(ailed), Q (waiting or not), X (the command ended), D(one). */
struct report {
  uint8_t type, step, survivors, spare;
  int32_t error, status;
  uint32_t peak_kb;
  uint64_t cpu_us;
};

typedef void visit(pid_t pid, void *context);

int keeper_main(int control, bool sheltered);
void each_descendant(pid_t pid, visit *see, void *context, int depth);
ssize_t send_fds(int socket, const void *bytes, size_t size, const int *fds, size_t count);
ssize_t receive_fds(int socket, void *bytes, size_t size, int fds[3]);

/* ---- tail.c: output that is kept back ---- */

/* The last bytes of an output nobody has credit for, as records of stream, size and data. */
struct tail {
  uint8_t *ring;
  size_t capacity, start, used, last, last_size; /* `last` is where the newest record begins */
  uint8_t last_stream;
  uint64_t dropped[2];
};

void tail_add(struct tail *t, uint64_t keep, uint8_t stream, uint8_t *bytes, uint32_t size);
bool tail_next(struct tail *t, uint8_t *stream, uint32_t *size);
void tail_take(struct tail *t, uint8_t *to, uint32_t size);
void tail_free(struct tail *t);

/* ---- pool.c: keepers that wait for their command ---- */

/* A sandbox with a keeper in it that waits for its command. */
struct idle {
  struct idle *next;
  uint8_t *key;
  size_t key_size;
  pid_t pid;
  int control, diagnosis;
};

void pool_open(void);
bool pool_take(const struct request *r, bool fresh, struct idle *taken, struct attempt *a);
void pool_plan(const uint8_t *key, size_t size);
void pool_build(void);
int pool_patience(bool busy);
bool pool_owns(pid_t pid);
void pool_reaped(pid_t pid);
void pool_kill(void);
void kill_shelter(pid_t pid);

/* ---- server.c: the socket to Node ---- */

int serve(void);
