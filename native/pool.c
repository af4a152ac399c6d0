/* Keepers that wait for their command: one without a sandbox, and some inside sandboxes that were asked for. */
#include "launcher.h"
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>

#define MAX_IDLE 6 /* sandboxes kept ready, over all policies */

static struct idle *spare;  /* without a sandbox */
static struct idle *ready;  /* in sandboxes, newest first */
static uint8_t *due;        /* the sandbox to build next */
static size_t due_size;
static uint32_t due_count;
static int self_fd, null_fd;

void pool_open(void) {
  null_fd = open("/dev/null", O_RDWR | O_CLOEXEC);
  self_fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
}

static bool is_key(const struct idle *i, const uint8_t *key, size_t size) {
  return i->key_size == size && memcmp(i->key, key, size) == 0;
}

static size_t count_ready(const uint8_t *key, size_t size) {
  size_t count = 0;
  for (struct idle *i = ready; i; i = i->next)
    if (!key || is_key(i, key, size)) count++;
  return count;
}

static void idle_free(struct idle *i) {
  close_fd(&i->control);
  close_fd(&i->diagnosis);
  free(i->key);
  free(i);
}

/* The sandbox program with a keeper in it. False and the reason in `a` if it cannot be started. */
static bool start_shelter(const uint8_t *block, size_t size, struct idle *i, struct attempt *a) {
  struct request r;
  int pair[2];
  *a = (struct attempt){.step = 'b', .error = EINVAL};
  bool sound = request_read(&r, block, size);
  if (sound && socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) < 0) {
    a->error = errno;
    sound = false;
  }
  if (sound) {
    i->diagnosis = memfd_create("callgate-diagnosis", MFD_CLOEXEC);
    int fds[3] = {null_fd, null_fd, i->diagnosis >= 0 ? i->diagnosis : null_fd};
    *a = (struct attempt){.request = &r, .fds = fds, .control = true, .control_fd = pair[1], .self_fd = self_fd};
    i->pid = start_program(a);
    a->step = 'b';
    i->control = pair[0];
    close(pair[1]);
    sound = i->pid > 0;
  }
  request_free(&r);
  return sound;
}

static bool fork_keeper(struct idle *i) {
  int pair[2];
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) < 0) return false;
  i->pid = fork();
  if (i->pid == 0) {
    /* Only the control socket may stay: a copy of another command's pipe would hold it open. */
    dup2(pair[1], 3);
    syscall(SYS_CLOSE_RANGE, 4, ~0U, 0);
    _exit(keeper_main(3, false));
  }
  close(pair[1]);
  i->control = pair[0];
  return i->pid > 0;
}

static struct idle *idle_new(void) {
  struct idle *i = must(calloc(1, sizeof *i));
  i->control = i->diagnosis = -1;
  return i;
}

/* A keeper for this request: one that waits (it still has the size of its key), or a new one. */
bool pool_take(const struct request *r, bool fresh, struct idle *taken, struct attempt *a) {
  struct idle **at = r->shelter ? NULL : &spare;
  /* The oldest that fits: the newest may still be building. */
  for (struct idle **i = &ready; r->shelter && !fresh && *i; i = &(*i)->next)
    if (is_key(*i, r->shelter, r->shelter_size)) at = i;
  if (at && *at) {
    struct idle *found = *at;
    *at = found->next;
    *taken = *found;
    free(found->key);
    free(found);
    return true;
  }
  *taken = (struct idle){.control = -1, .diagnosis = -1};
  if (r->shelter) return start_shelter(r->shelter, r->shelter_size, taken, a);
  *a = (struct attempt){.step = 'x'};
  bool forked = fork_keeper(taken);
  a->error = errno;
  return forked;
}

/* From now on some of these are wanted ahead, as many as the words themselves say. */
void pool_plan(const uint8_t *key, size_t size) {
  struct request r;
  uint32_t wanted = request_read(&r, key, size) ? r.ahead : 0;
  if (wanted > MAX_IDLE) wanted = MAX_IDLE;
  if (wanted > count_ready(key, size)) {
    due = must(realloc(due, size));
    memcpy(due, key, due_size = size);
    due_count = wanted;
  }
  request_free(&r);
}

static void drop_oldest(void) {
  struct idle **at = &ready;
  while ((*at)->next) at = &(*at)->next;
  kill_shelter((*at)->pid);
  idle_free(*at);
  *at = NULL;
}

/* One more of what is wanted. */
void pool_build(void) {
  if (!spare) {
    spare = idle_new();
    if (!fork_keeper(spare)) {
      idle_free(spare);
      spare = NULL;
    }
  }
  if (!due) return;
  struct attempt a;
  struct idle *i = idle_new();
  i->key = must(malloc(due_size));
  memcpy(i->key, due, i->key_size = due_size);
  bool built = start_shelter(due, due_size, i, &a);
  if (built) {
    i->next = ready;
    ready = i;
  } else {
    idle_free(i);
  }
  if (count_ready(NULL, 0) > MAX_IDLE) drop_oldest();
  if (!built || count_ready(due, due_size) >= due_count) {
    free(due);
    due = NULL;
  }
}

/*
 * Milliseconds to wait before building; -1 if nothing is wanted. Building takes as much of the machine
 * as a short command, so it waits for a running one to end, if that is soon; but not when no sandbox is
 * left, because then calls come faster than sandboxes are built.
 */
int pool_patience(bool busy) {
  if (due && count_ready(due, due_size) == 0) return 0;
  if (!due && spare) return -1;
  return busy ? 40 : 1;
}

bool pool_owns(pid_t pid) {
  if (spare && spare->pid == pid) return true;
  for (struct idle *i = ready; i; i = i->next)
    if (i->pid == pid) return true;
  return false;
}

/* It ended before it was needed. */
void pool_reaped(pid_t pid) {
  struct idle **at = spare && spare->pid == pid ? &spare : &ready;
  while (*at && (*at)->pid != pid) at = &(*at)->next;
  if (!*at) return;
  struct idle *dead = *at;
  *at = dead->next;
  idle_free(dead);
}

void pool_kill(void) {
  for (struct idle *i = ready; i; i = i->next) kill_shelter(i->pid);
}

/*
 * The whole group: bubblewrap killed in the middle of its set-up has not yet told its child to die with
 * it, and that child would wait for its parent for ever.
 */
void kill_shelter(pid_t pid) {
  kill(-pid, SIGKILL);
  kill(pid, SIGKILL);
}
