/*
 * Keepers that wait for their command: made by ourselves for commands without a sandbox, and by nests,
 * each in the sandbox of one set of words. A nest is started when its words first come up.
 */
#include "launcher.h"
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>

#define MAX_NESTS 6 /* over all policies; what was not used for longest makes room */
#define MAX_READY 8

struct waiting { pid_t pid; int control; };

struct nest {
  struct nest *next;         /* the one before it was used later */
  uint8_t *key;              /* the sandbox's words; none: no sandbox, and its keepers are our own children */
  size_t key_size;
  pid_t pid;
  int control, diagnosis;
  uint32_t ahead, count;
  struct waiting ready[MAX_READY]; /* oldest first */
};

static struct nest none = {.control = -1, .diagnosis = -1, .ahead = 1};
static struct nest *nests = &none;
static int self_fd, null_fd;

void pool_open(void) {
  null_fd = open("/dev/null", O_RDWR | O_CLOEXEC);
  self_fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
}

/* Its last socket to us closes: keepers that wait end at once, the nest after the last of those that work. */
static void nest_drop(struct nest *n) {
  struct nest **at = &nests;
  while (*at != n) at = &(*at)->next;
  *at = n->next;
  for (uint32_t i = 0; i < n->count; i++) close(n->ready[i].control);
  close_fd(&n->control);
  close_fd(&n->diagnosis);
  free(n->key);
  free(n);
}

static void drop_oldest(void) {
  size_t count = 0;
  struct nest *oldest = NULL;
  for (struct nest *n = nests; n; n = n->next)
    if (n->key) count++, oldest = n;
  if (count > MAX_NESTS) nest_drop(oldest);
}

/* The sandbox program with a nest in it. NULL and the reason in `a` if it cannot be started. */
static struct nest *nest_start(const uint8_t *key, size_t size, struct attempt *a) {
  struct request r;
  int pair[2];
  *a = (struct attempt){.step = 'b', .error = EINVAL, NO_ATTEMPT};
  if (!request_read(&r, key, size) || socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) < 0) {
    request_free(&r);
    return NULL;
  }
  struct nest *n = must(calloc(1, sizeof *n));
  *n = (struct nest){.next = nests, .key = must(malloc(size)), .key_size = size, .control = pair[0]};
  memcpy(n->key, key, size);
  n->ahead = r.ahead < MAX_READY ? r.ahead : MAX_READY;
  n->diagnosis = memfd_create("callgate-diagnosis", MFD_CLOEXEC);
  int fds[3] = {null_fd, null_fd, n->diagnosis >= 0 ? n->diagnosis : null_fd};
  *a = (struct attempt){.request = &r, .fds = fds, .handed = {pair[1], self_fd}, .listener = -1};
  n->pid = start_program(a);
  a->step = 'b';
  close(pair[1]);
  request_free(&r);
  nests = n;
  drop_oldest();
  if (n->pid > 0) return n;
  nest_drop(n);
  return NULL;
}

/* The nest of these words, used just now. */
static struct nest *nest_find(const uint8_t *key, size_t size) {
  for (struct nest **at = &nests; *at; at = &(*at)->next) {
    struct nest *n = *at;
    if (n->key_size != size || (size > 0 && memcmp(n->key, key, size) != 0)) continue;
    *at = n->next;
    n->next = nests;
    return nests = n;
  }
  return NULL;
}

static pid_t fork_keeper(int control) {
  pid_t pid = fork();
  if (pid == 0) {
    /* Only the control socket may stay: a copy of another command's pipe would hold it open. */
    dup2(control, 3);
    fcntl(3, F_SETFD, FD_CLOEXEC);
    syscall(SYS_CLOSE_RANGE, 4, ~0U, 0);
    _exit(keeper_main(3, false));
  }
  return pid;
}

/* One more keeper; it need not be there yet to be given its command. */
static bool order(struct nest *n, struct waiting *w) {
  int pair[2];
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) < 0) return false;
  *w = (struct waiting){n->pid, pair[0]};
  bool ordered = n->key ? send_fds(n->control, "", 1, &pair[1], 1) == 1 : (w->pid = fork_keeper(pair[1])) > 0;
  int error = errno;
  close(pair[1]);
  if (!ordered) close(pair[0]);
  errno = error;
  return ordered;
}

/* A keeper for this request, one that waits if there is one. `fresh`: of a new nest, because the old one seems dead. */
bool pool_take(const struct request *r, bool fresh, struct taken *taken, struct attempt *a) {
  struct nest *n = nest_find(r->shelter, r->shelter_size);
  struct waiting w;
  if (n && fresh && n->key) nest_drop(n), n = NULL;
  if (!n && !(n = nest_start(r->shelter, r->shelter_size, a))) return false;
  if (n->count > 0) {
    w = n->ready[0];
    memmove(n->ready, n->ready + 1, --n->count * sizeof w);
  } else if (!order(n, &w)) {
    *a = (struct attempt){.step = n->key ? 'b' : 'x', .error = errno, NO_ATTEMPT};
    return !fresh && n->key && pool_take(r, true, taken, a);
  }
  *taken = (struct taken){w.pid, w.control, n->diagnosis < 0 ? -1 : fcntl(n->diagnosis, F_DUPFD_CLOEXEC, 0)};
  if (n->key && n->ahead == 0) nest_drop(n); /* made for this one command */
  return true;
}

/* A nest for these words will soon be needed. */
void pool_plan(const uint8_t *key, size_t size) {
  struct attempt a;
  if (size > 0 && !nest_find(key, size)) nest_start(key, size, &a);
}

static struct nest *wanting(void) {
  for (struct nest *n = nests; n; n = n->next)
    if (n->count < n->ahead) return n;
  return NULL;
}

/* One more of what is wanted. */
void pool_build(void) {
  struct nest *n = wanting();
  if (!n) return;
  if (order(n, &n->ready[n->count])) n->count++;
  else n->ahead = 0;
}

/*
 * Milliseconds to wait before building; -1 if nothing is wanted. A birth takes a part of a short command's
 * time, so it waits for a running one to end, if that is soon; but not when no keeper is left.
 */
int pool_patience(bool busy) {
  struct nest *n = wanting();
  if (!n) return -1;
  return n->count == 0 ? 0 : busy ? 40 : 1;
}

bool pool_owns(pid_t pid) {
  for (struct nest *n = nests; n; n = n->next) {
    if (n->key && n->pid == pid) return true;
    for (uint32_t i = 0; i < n->count; i++)
      if (n->ready[i].pid == pid) return true;
  }
  return false;
}

/* It ended before it was needed. */
void pool_reaped(pid_t pid) {
  for (struct nest *n = nests; n; n = n->next) {
    if (n->key && n->pid == pid) return nest_drop(n);
    for (uint32_t i = 0; !n->key && i < n->count; i++) {
      if (n->ready[i].pid != pid) continue;
      close(n->ready[i].control);
      memmove(n->ready + i, n->ready + i + 1, (--n->count - i) * sizeof *n->ready);
      return;
    }
  }
}

void pool_close(void) {
  while (nests) {
    if (nests->key) nest_drop(nests);
    else {
      for (uint32_t i = 0; i < none.count; i++) close(none.ready[i].control);
      nests = none.next;
    }
  }
}
