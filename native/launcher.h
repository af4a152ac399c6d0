/*
 * What the parts of the launcher share. In the order a command meets them: server.c takes its frame from
 * Node, job.c is the command from then on, request.c reads what was asked for, pool.c finds a keeper,
 * sandbox.c makes keepers inside sandboxes, keeper.c watches over the command, start.c starts it, supervisor.c
 * answers the calls a filter cannot judge, starts.c those that start a program (by rules.c), tail.c keeps
 * back output that nobody reads yet; limits.c and cgroup.c hold it to its limits. launcher.c is the program, and
 * tells the whole story.
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
#define FILTER_FD 3   /* a sandbox's seccomp program */
#define CONTROL_FD 8  /* a sandbox's socket to the server */
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

struct field { const uint8_t *data; size_t size; };
struct fields { struct field *list; size_t count; };

/* What is to be started. Everything points into the payload it was read from. */
struct request {
  char **argv, **envp;       /* argv[-1] is free, for a script without a first line */
  size_t argc, envc;
  const char *cwd;
  const char *run;           /* the name of the run whose writes are held, if they are */
  const uint8_t *wrapper;    /* the block that describes the sandbox around it */
  size_t wrapper_size;
  bool wants_input, has_tty, has_owner, has_landlock;
  uint16_t columns, rows;
  uint32_t uid, gid, grace_ms, ahead;
  uint64_t live_bytes, tail_bytes;
  const char *keep_path;     /* a new file for the output that exceeds the live bytes, if it is to be kept */
  uint64_t keep_bytes;       /* where that file ends at the latest, counted from the first byte of the output */
  uint64_t handled[3];       /* landlock_ruleset_attr */
  const uint8_t *seccomp;
  size_t seccomp_size;
  struct fields paths, ports, held, limits, fds;
  bool capped;               /* limits of the whole command: processes, memory, temp folder; 0 is none */
  uint64_t caps[3];
  const char *temp;
  struct fields rules;       /* programs that may not be started (rules.c) */
  struct fields files;       /* of those programs: fingerprint, whether it is hidden, name, path */
};

bool request_read(struct request *r, const uint8_t *p, size_t size);
void request_free(struct request *r);

/* ---- start.c: from a request to a program ---- */

/* What a child that shares our memory until it executes leaves behind when it cannot. */
struct attempt {
  const struct request *request;
  const int *fds;            /* for 0, 1, 2 */
  bool new_session;          /* a terminal at 0 */
  int handed[2];             /* put at CONTROL_FD and SELF_FD, if there are any */
  int listener;              /* a socket for what answers the filter's questions, if there is one */
  int error;
  char step;                 /* where it stopped: c(hdir) u(id) l(andlock) s(eccomp) t(ty) r(limit) x(exec) d(ata) b(ox) */
};

#define NO_ATTEMPT .handed = {-1, -1}, .listener = -1

pid_t start_program(struct attempt *a);
int become_program(void *attempt);
bool become_owner(const struct request *r);
bool drop_capabilities(void);
void install_asking_filter(struct attempt *a);
int install_filter(const uint8_t *program, size_t size, unsigned flags);

/* ---- keeper.c: one command, and whatever it leaves behind ---- */

/*
 * What a keeper says: T(erminal, with its master), B(egun) or F(ailed), Q (waiting or not), P(rograms started, as a
 * file), X (the command ended).
 */
struct report {
  uint8_t type, step, survivors, limit; /* the limit that ended it (limits.c), or 0 */
  int32_t error, status;
  uint32_t peak_kb;
  uint64_t cpu_us;
};

typedef void visit(pid_t pid, void *context);

int keeper_main(int control, bool alone);
int keeper_once(const struct request *r);
void each_descendant(pid_t pid, visit *see, void *context, int depth);
ssize_t send_fds(int socket, const void *bytes, size_t size, const int *fds, size_t count);
ssize_t receive_fds(int socket, void *bytes, size_t size, int fds[3]);

/* ---- sandbox.c: keepers in fresh namespaces ---- */

int sandbox_main(const char *fresh, char **overlay);
bool has_own_pid_max(void);

/* ---- supervisor.c: calls that take a path ---- */

int supervisor_take(int socket);
void supervisor_answer(int listener, const struct request *r);

/* ---- rules.c: which rule denies a command ---- */

bool rule_is_sound(const uint8_t *p, size_t size);
const char *rule_for(const struct fields *rules, const char *name, char *const *words, bool cut);

/* ---- starts.c: every program start, judged ---- */

int starts_take(uint32_t *unlisted);
int starts_check(void);

/* ---- limits.c: what a whole command may use up ---- */

char limits_exceeded(const struct request *r, bool alone);

/* ---- cgroup.c: how many processes there may be at once, for root ---- */

bool cgroup_allow(uint64_t processes);
void cgroup_leave(void);
int cgroup_tell(void);

/* ---- tail.c: output that is kept back ---- */

/* The last bytes of an output nobody has credit for, as records of stream, size, line breaks and data. */
struct tail {
  uint8_t *ring;
  size_t capacity, start, used, last, last_size; /* `last` is where the newest record begins */
  uint8_t last_stream;
  uint32_t last_lines;
  uint64_t dropped[2], lines[2]; /* bytes, and the line breaks among them */
};

void tail_add(struct tail *t, uint64_t keep, uint8_t stream, uint8_t *bytes, uint32_t size);
bool tail_next(struct tail *t, uint8_t *stream, uint32_t *size);
void tail_take(struct tail *t, uint8_t *to, uint32_t size);
void tail_free(struct tail *t);
uint64_t count_lines(const uint8_t *bytes, size_t size);

/* ---- pool.c: keepers that wait for their command ---- */

/* A keeper that has a command. */
struct taken {
  pid_t pid;                 /* of the keeper, or of the sandbox it lives in */
  int control, diagnosis;    /* what the sandbox program had to say */
};

void pool_open(void);
bool pool_take(const struct request *r, bool fresh, struct taken *taken, struct attempt *a);
void pool_plan(const uint8_t *key, size_t size);
void pool_build(void);
int pool_patience(bool busy);
bool pool_owns(pid_t pid);
void pool_reaped(pid_t pid);
void pool_forget(void);
void pool_close(void);

/* ---- job.c: one command as Node sees it ---- */

struct pollfd;

extern struct buffer upstream; /* frames for Node */

void job_obey(uint8_t type, uint32_t id, const uint8_t *p, size_t size);
size_t job_count(void);
size_t job_watch(struct pollfd *p, int64_t now_us);
void job_serve(const struct pollfd *p, int64_t now_us);
int64_t job_deadline(void);
int64_t job_rest(int64_t now_us);
bool job_owns(pid_t pid);
void job_close_all(void);
void set_nonblocking(int fd);

/* ---- server.c: the socket to Node ---- */

int serve(void);
void kill_orphans(void);
