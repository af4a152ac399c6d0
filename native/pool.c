/*
 * Keepers that wait for their command: made by ourselves for commands without a sandbox, and by the
 * sandbox process of one set of words for those with one. It is started when its words first come up.
 */
#include "launcher.h"
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>

#define MAX_SANDBOXES 6 /* over all policies; what was not used for longest makes room */
#define MAX_READY 8

struct waiting { pid_t pid; int control; };

struct sandbox {
  struct sandbox *next;      /* the one before it was used later */
  uint8_t *key;              /* the sandbox's words; none: no sandbox, and its keepers are our own children */
  size_t key_size;
  pid_t pid;
  int control, diagnosis;
  uint32_t ahead, count;
  struct waiting ready[MAX_READY]; /* oldest first */
};

static struct sandbox none = {.control = -1, .diagnosis = -1, .ahead = 1};
static struct sandbox *sandboxes = &none;
static int self_fd, null_fd;

void pool_open(void) {
  null_fd = open("/dev/null", O_RDWR | O_CLOEXEC);
  self_fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
}

/* Its last socket to us closes: keepers that wait end at once, the sandbox after the last of those that work. */
static void sandbox_drop(struct sandbox *s) {
  struct sandbox **at = &sandboxes;
  while (*at != s) at = &(*at)->next;
  *at = s->next;
  for (uint32_t i = 0; i < s->count; i++) close(s->ready[i].control);
  close_fd(&s->control);
  close_fd(&s->diagnosis);
  free(s->key);
  free(s);
}

static void drop_oldest(void) {
  size_t count = 0;
  struct sandbox *oldest = NULL;
  for (struct sandbox *s = sandboxes; s; s = s->next)
    if (s->key) count++, oldest = s;
  if (count > MAX_SANDBOXES) sandbox_drop(oldest);
}

/* Bubblewrap with a sandbox process in it. NULL and the reason in `a` if it cannot be started. */
static struct sandbox *sandbox_start(const uint8_t *key, size_t size, struct attempt *a) {
  struct request r;
  int pair[2];
  *a = (struct attempt){.step = 'b', .error = EINVAL, NO_ATTEMPT};
  if (!request_read(&r, key, size) || socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) < 0) {
    request_free(&r);
    return NULL;
  }
  struct sandbox *s = must(calloc(1, sizeof *s));
  *s = (struct sandbox){.next = sandboxes, .key = must(malloc(size)), .key_size = size, .control = pair[0]};
  memcpy(s->key, key, size);
  s->ahead = r.ahead < MAX_READY ? r.ahead : MAX_READY;
  s->diagnosis = memfd_create("callgate-diagnosis", MFD_CLOEXEC);
  int fds[3] = {null_fd, null_fd, s->diagnosis >= 0 ? s->diagnosis : null_fd};
  *a = (struct attempt){.request = &r, .fds = fds, .handed = {pair[1], self_fd}, .listener = -1};
  s->pid = start_program(a);
  a->step = 'b';
  close(pair[1]);
  request_free(&r);
  sandboxes = s;
  drop_oldest();
  if (s->pid > 0) return s;
  sandbox_drop(s);
  return NULL;
}

/* The sandbox of these words, used just now. */
static struct sandbox *sandbox_find(const uint8_t *key, size_t size) {
  for (struct sandbox **at = &sandboxes; *at; at = &(*at)->next) {
    struct sandbox *s = *at;
    if (s->key_size != size || (size > 0 && memcmp(s->key, key, size) != 0)) continue;
    *at = s->next;
    s->next = sandboxes;
    return sandboxes = s;
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
static bool order(struct sandbox *s, struct waiting *w) {
  int pair[2];
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) < 0) return false;
  *w = (struct waiting){s->pid, pair[0]};
  bool ordered = s->key ? send_fds(s->control, "", 1, &pair[1], 1) == 1 : (w->pid = fork_keeper(pair[1])) > 0;
  int error = errno;
  close(pair[1]);
  if (!ordered) close(pair[0]);
  errno = error;
  return ordered;
}

/* A keeper for this request, one that waits if there is one. `fresh`: of a new sandbox, because the old one seems dead. */
bool pool_take(const struct request *r, bool fresh, struct taken *taken, struct attempt *a) {
  struct sandbox *s = sandbox_find(r->wrapper, r->wrapper_size);
  struct waiting w;
  if (s && fresh && s->key) sandbox_drop(s), s = NULL;
  if (!s && !(s = sandbox_start(r->wrapper, r->wrapper_size, a))) return false;
  if (s->count > 0) {
    w = s->ready[0];
    memmove(s->ready, s->ready + 1, --s->count * sizeof w);
  } else if (!order(s, &w)) {
    *a = (struct attempt){.step = s->key ? 'b' : 'x', .error = errno, NO_ATTEMPT};
    return !fresh && s->key && pool_take(r, true, taken, a);
  }
  *taken = (struct taken){w.pid, w.control, s->diagnosis < 0 ? -1 : fcntl(s->diagnosis, F_DUPFD_CLOEXEC, 0)};
  if (s->key && s->ahead == 0) sandbox_drop(s); /* made for this one command */
  return true;
}

/* A sandbox for these words will soon be needed. */
void pool_plan(const uint8_t *key, size_t size) {
  struct attempt a;
  if (size > 0 && !sandbox_find(key, size)) sandbox_start(key, size, &a);
}

static struct sandbox *wanting(void) {
  for (struct sandbox *s = sandboxes; s; s = s->next)
    if (s->count < s->ahead) return s;
  return NULL;
}

/* One more of what is wanted. */
void pool_build(void) {
  struct sandbox *s = wanting();
  if (!s) return;
  if (order(s, &s->ready[s->count])) s->count++;
  else s->ahead = 0;
}

/*
 * Milliseconds to wait before building; -1 if nothing is wanted. A birth takes a part of a short command's
 * time, so it waits for a running one to end, if that is soon; but not when no keeper is left.
 */
int pool_patience(bool busy) {
  struct sandbox *s = wanting();
  if (!s) return -1;
  return s->count == 0 ? 0 : busy ? 40 : 1;
}

bool pool_owns(pid_t pid) {
  for (struct sandbox *s = sandboxes; s; s = s->next) {
    if (s->key && s->pid == pid) return true;
    for (uint32_t i = 0; i < s->count; i++)
      if (s->ready[i].pid == pid) return true;
  }
  return false;
}

/* It ended before it was needed. */
void pool_reaped(pid_t pid) {
  for (struct sandbox *s = sandboxes; s; s = s->next) {
    if (s->key && s->pid == pid) return sandbox_drop(s);
    for (uint32_t i = 0; !s->key && i < s->count; i++) {
      if (s->ready[i].pid != pid) continue;
      close(s->ready[i].control);
      memmove(s->ready + i, s->ready + i + 1, (--s->count - i) * sizeof *s->ready);
      return;
    }
  }
}

/* The keepers outside sandboxes that wait: the next command gets one that is born now. */
void pool_forget(void) {
  while (none.count > 0) close(none.ready[--none.count].control);
}

void pool_close(void) {
  while (sandboxes) {
    if (sandboxes->key) sandbox_drop(sandboxes);
    else {
      for (uint32_t i = 0; i < none.count; i++) close(none.ready[i].control);
      sandboxes = none.next;
    }
  }
}
