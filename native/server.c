/* The server: takes requests from Node, hands each to a keeper, and carries what they say to each other. */
#include "launcher.h"
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>

#define READS_AT_ONCE 16         /* from one output, before the others have their turn */
#define UPSTREAM_FULL (4u << 20) /* no more output is read while Node has this much to catch up with */

struct job {
  struct job *next;
  uint32_t id;
  pid_t pid;                 /* the keeper, or the sandbox around it */
  int control, input, output[2];
  bool sheltered, tried_again, tty, input_ends;
  bool begun, ended, survivors, killed, failed, held_open;
  bool moved;                /* output came since the last look */
  struct buffer to_keeper, to_input;
  struct buffer request;     /* kept until the command has begun */
  struct report end;
  uint64_t credit, tail_bytes;
  struct tail tail;
  uint32_t grace_ms;
  int64_t deadline;          /* when waiting for what is left ends; 0: not waiting */
  int diagnosis;             /* what the sandbox program had to say */
};

static struct {
  struct buffer up, down;    /* to Node, from Node */
  struct job *jobs;
  int signals;
} server;

static bool upstream_full(void) { return server.up.end - server.up.start > UPSTREAM_FULL; }

static int64_t now_ms(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

static void frame_start(uint8_t type, uint32_t id, size_t size) {
  uint8_t head[9];
  uint32_t length = (uint32_t)size + 5;
  memcpy(head, &length, 4);
  head[4] = type;
  memcpy(head + 5, &id, 4);
  buffer_add(&server.up, head, sizeof head);
}

static void frame(uint8_t type, uint32_t id, const void *bytes, size_t size) {
  frame_start(type, id, size);
  buffer_add(&server.up, bytes, size);
}

/* Step, errno and words of why a command never ran. */
static void frame_failed(uint32_t id, char step, int32_t error, const char *words, size_t size) {
  frame_start('f', id, 5 + size);
  buffer_add(&server.up, &step, 1);
  buffer_add(&server.up, &error, 4);
  buffer_add(&server.up, words, size);
}

/* Hands over what was kept back. */
static void flush_tail(struct job *j) {
  struct tail *t = &j->tail;
  uint8_t stream;
  uint32_t size;
  for (stream = 0; stream < 2; stream++) {
    if (!t->dropped[stream]) continue;
    uint8_t body[9] = {stream};
    memcpy(body + 1, &t->dropped[stream], 8);
    frame('d', j->id, body, sizeof body);
  }
  while (tail_next(t, &stream, &size)) {
    frame_start(stream ? 'e' : 'o', j->id, size);
    tail_take(t, buffer_room(&server.up, size), size);
    server.up.end += size;
  }
  tail_free(t);
}

/* ---- starting ---- */

static void set_nonblocking(int fd) { fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK); }

static void job_close(struct job *j) {
  close_fd(&j->control);
  if (j->input != j->output[0]) close_fd(&j->input);
  j->input = -1;
  close_fd(&j->output[0]);
  close_fd(&j->output[1]);
  close_fd(&j->diagnosis);
  buffer_free(&j->to_keeper);
}

static void job_free(struct job *j) {
  job_close(j);
  buffer_free(&j->request);
  buffer_free(&j->to_input);
  tail_free(&j->tail);
  free(j);
}

static bool open_pipes(struct job *j, const struct request *r, int theirs[3]) {
  int pipes[3][2] = {{-1, -1}, {-1, -1}, {-1, -1}};
  for (int i = r->wants_input ? 0 : 1; i < 3; i++)
    if (pipe2(pipes[i], O_CLOEXEC) < 0) {
      for (int k = 0; k < 3; k++) close_fd(&pipes[k][0]), close_fd(&pipes[k][1]);
      return false;
    }
  theirs[0] = pipes[0][0];
  theirs[1] = pipes[1][1];
  theirs[2] = pipes[2][1];
  j->input = pipes[0][1];
  j->output[0] = pipes[1][0];
  j->output[1] = pipes[2][0];
  if (j->input >= 0) set_nonblocking(j->input);
  set_nonblocking(j->output[0]);
  set_nonblocking(j->output[1]);
  return true;
}

static void hand_over(struct job *j, const uint8_t *payload, size_t size, const int theirs[3]) {
  uint32_t length = (uint32_t)size;
  int fds[3];
  size_t count = 0;
  /* Input, output, errors; where the command gets no input, only the last two. */
  for (int i = 0; i < 3; i++) if (theirs[i] >= 0) fds[count++] = theirs[i];
  (void)!send_fds(j->control, &length, 4, fds, count);
  set_nonblocking(j->control);
  buffer_add(&j->to_keeper, payload, size);
  buffer_flush(&j->to_keeper, j->control);
}

/* Gives the job's request to a keeper; true if there is one. `fresh`: of a new sandbox. */
static bool launch(struct job *j, bool fresh) {
  const uint8_t *payload = j->request.data + j->request.start;
  const uint8_t *end = j->request.data + j->request.end;
  struct request r;
  struct attempt a = {.step = 'd', .error = EINVAL};
  struct taken keeper;
  int theirs[3] = {-1, -1, -1};
  bool sound = request_read(&r, payload, (size_t)(end - payload));
  if (sound && !r.has_tty && !open_pipes(j, &r, theirs)) {
    a.error = EMFILE;
    sound = false;
  }
  if (sound && (sound = pool_take(&r, fresh, &keeper, &a))) {
    j->tty = r.has_tty;
    j->credit = r.live_bytes;
    j->tail_bytes = r.tail_bytes;
    j->grace_ms = r.grace_ms;
    j->pid = keeper.pid;
    j->control = keeper.control;
    j->diagnosis = keeper.diagnosis;
    j->sheltered = r.shelter != NULL;
    /* The shelter comes first in a request: the command's own fields are the rest. */
    const uint8_t *own = r.shelter ? r.shelter + r.shelter_size : payload;
    hand_over(j, own, (size_t)(end - own), theirs);
  }
  if (!sound) frame_failed(j->id, a.step, a.error, NULL, 0);
  for (int i = 0; i < 3; i++) close_fd(&theirs[i]);
  request_free(&r);
  return sound;
}

static void start_job(uint32_t id, const uint8_t *payload, size_t size) {
  struct job *j = must(calloc(1, sizeof *j));
  *j = (struct job){.id = id, .control = -1, .input = -1, .output = {-1, -1}, .diagnosis = -1};
  buffer_add(&j->request, payload, size);
  if (!launch(j, false)) return job_free(j);
  j->next = server.jobs;
  server.jobs = j;
}

/* The sandbox had died: once more with a new one, since nothing has begun. */
static bool start_again(struct job *j) {
  job_close(j);
  j->tried_again = true;
  return launch(j, true);
}

/* ---- what goes on ---- */

static void tell_keeper(struct job *j, char what, uint8_t detail) {
  uint8_t message[2] = {(uint8_t)what, detail};
  if (j->control < 0) return;
  buffer_add(&j->to_keeper, message, sizeof message);
  buffer_flush(&j->to_keeper, j->control);
}

static void kill_job(struct job *j) {
  if (j->killed) return;
  j->killed = true;
  tell_keeper(j, 'K', 0);
}

/* Reads once from an output; true if more is likely there. A full pipe means a flood: it gets a larger one. */
static bool pump(struct job *j, uint8_t stream) {
  static uint8_t chunk[CHUNK];
  int *fd = &j->output[stream];
  bool live = j->credit > 0 && j->tail.used == 0;
  uint8_t *to = live ? buffer_room(&server.up, CHUNK + 9) + 9 : chunk;
  ssize_t n = read(*fd, to, live && j->credit < CHUNK ? j->credit : CHUNK);
  if (n < 0 && (errno == EAGAIN || errno == EINTR)) return false;
  if (n <= 0) { /* a terminal ends with EIO */
    if (j->input == *fd) j->input = -1;
    close_fd(fd);
    return false;
  }
  j->moved = true;
  if (n == CHUNK && !j->tty) fcntl(*fd, F_SETPIPE_SZ, 1 << 20);
  if (!live) {
    tail_add(&j->tail, j->tail_bytes, stream, chunk, (uint32_t)n);
    return n == CHUNK;
  }
  j->credit -= (uint64_t)n;
  frame_start(stream ? 'e' : 'o', j->id, (size_t)n);
  server.up.end += (size_t)n; /* the bytes already lie behind the head */
  return n == CHUNK && !upstream_full();
}

static void take_report(struct job *j) {
  struct report report;
  int fds[3];
  ssize_t n = receive_fds(j->control, &report, sizeof report, fds);
  if (n < 0 && (errno == EAGAIN || errno == EINTR)) return;
  if (n != sizeof report) {
    close_fd(&j->control);
    return;
  }
  uint8_t waiting = report.status != 0;
  switch (report.type) {
  case 'T':
    if (j->tty && j->output[0] < 0) {
      j->input = j->output[0] = fds[0];
      fds[0] = -1;
      if (j->input >= 0) set_nonblocking(j->input);
    }
    break;
  case 'F':
    if (!j->failed) frame_failed(j->id, (char)report.step, report.error, NULL, 0);
    j->failed = true;
    break;
  case 'B':
    j->begun = true;
    buffer_free(&j->request);
    break;
  case 'X':
    j->end = report;
    j->ended = true;
    j->survivors = report.survivors != 0;
    break;
  case 'Q':
    frame('q', j->id, &waiting, 1);
    break;
  default: break;
  }
  for (int i = 0; i < 3; i++) close_fd(&fds[i]);
}

/* A sandbox that could not be built has said why on its standard error. */
static void report_shelter_failure(struct job *j) {
  char words[512];
  ssize_t n = j->diagnosis < 0 ? 0 : pread(j->diagnosis, words, sizeof words, 0);
  frame_failed(j->id, 'b', EPERM, words, n > 0 ? (size_t)n : 0);
}

static void report_end(struct job *j) {
  int status = j->ended ? j->end.status : SIGKILL; /* a keeper that died took the command's end with it */
  uint8_t body[25];
  int32_t code = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  int32_t signal = WIFSIGNALED(status) ? WTERMSIG(status) : 0;
  uint64_t peak = (uint64_t)j->end.peak_kb * 1024;
  memcpy(body, &code, 4);
  memcpy(body + 4, &signal, 4);
  memcpy(body + 8, &j->end.cpu_us, 8);
  memcpy(body + 16, &peak, 8);
  body[24] = j->held_open;
  flush_tail(j);
  frame('x', j->id, body, sizeof body);
}

static bool is_ours(pid_t pid) {
  for (struct job *j = server.jobs; j; j = j->next)
    if (j->pid == pid) return true;
  return pool_owns(pid);
}

static void kill_orphan(pid_t pid, void *context) {
  (void)context;
  if (!is_ours(pid)) kill(pid, SIGKILL);
}

/* A keeper that was killed leaves its processes to us; no job knows them. */
static void kill_orphans(void) {
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

/* What to wait for after the command ended; true when there is nothing left to wait for. */
static bool wound_up(struct job *j, int64_t now) {
  bool open = j->output[0] >= 0 || j->output[1] >= 0;
  if (j->survivors && !j->killed) {
    if (j->deadline == 0) j->deadline = now + j->grace_ms;
    if (open && now < j->deadline) return false;
    j->held_open = open;
    kill_job(j);
    j->deadline = 0;
  }
  /* The writers are dead or dying; what they wrote is still read. The limit is for one that cannot die. */
  if (j->deadline == 0 || j->moved || upstream_full()) j->deadline = now + 2000;
  j->moved = false;
  bool left = j->survivors && j->control >= 0;
  return (!open && !left) || now >= j->deadline;
}

/* True when nothing more is to come and Node has been told. */
static bool settle(struct job *j, int64_t now) {
  if (j->failed) {
    kill_job(j);
    return true;
  }
  bool over = j->control < 0;
  if (!j->ended && !over) return false;
  if (!j->ended && j->sheltered && !j->killed && !j->begun) {
    if (!j->tried_again) return !start_again(j);
    report_shelter_failure(j);
    return true;
  }
  if (!j->ended && !j->sheltered) kill_orphans(); /* the keeper was killed: its processes are ours now */
  if (!wound_up(j, now)) return false;
  report_end(j);
  return true;
}

static void feed_input(struct job *j) {
  if (j->input < 0 || !j->begun) return;
  bool open = buffer_flush(&j->to_input, j->input);
  if (j->tty) {
    static const char end_of_input = 4;
    if (j->input_ends && write(j->input, &end_of_input, 1) == 1) j->input_ends = false;
    return;
  }
  if (!open || (j->input_ends && j->to_input.start == j->to_input.end)) {
    buffer_free(&j->to_input);
    close_fd(&j->input);
  }
}

static struct job *find_job(uint32_t id) {
  for (struct job *j = server.jobs; j; j = j->next)
    if (j->id == id) return j;
  return NULL;
}

static void obey(uint8_t type, uint32_t id, const uint8_t *p, size_t size) {
  if (type == 'S') return start_job(id, p, size);
  if (type == 'P') return pool_plan(p, size);
  struct job *j = find_job(id);
  if (!j) return; /* it ended while this was on its way */
  switch (type) {
  case 'I': buffer_add(&j->to_input, p, size); feed_input(j); break;
  case 'E': j->input_ends = true; feed_input(j); break;
  case 'K': kill_job(j); break;
  case 'Q': tell_keeper(j, 'Q', 0); break;
  case 'G':
    if (size == 1 && !(j->tty && j->input >= 0 && ioctl(j->input, TIOCSIG, (int)p[0]) == 0)) tell_keeper(j, 'G', p[0]);
    break;
  case 'R':
    if (size == 4 && j->tty && j->input >= 0) {
      struct winsize w = {.ws_col = get16(p), .ws_row = get16(p + 2)};
      ioctl(j->input, TIOCSWINSZ, &w);
    }
    break;
  case 'M':
    if (size != 4) break;
    flush_tail(j);
    j->credit += get32(p);
    if (j->credit > (1u << 30)) j->credit = 1u << 30;
    break;
  default: break;
  }
}

/* Every whole frame that has arrived. False if what arrived can be no frame. */
static bool read_frames(void) {
  struct buffer *b = &server.down;
  while (b->end - b->start >= 9) {
    const uint8_t *p = b->data + b->start;
    uint32_t length = get32(p);
    if (length < 5 || length > MAX_FRAME) return false;
    if (b->end - b->start < 4 + (size_t)length) break;
    obey(p[4], get32(p + 5), p + 9, length - 5);
    b->start += 4 + (size_t)length;
  }
  return true;
}

/* Whoever is gone: a keeper, a sandbox, or an orphan of a keeper that was killed. */
static void reap(void) {
  struct signalfd_siginfo info;
  while (read(server.signals, &info, sizeof info) > 0) {}
  for (pid_t pid; (pid = waitpid(-1, NULL, WNOHANG)) > 0;) pool_reaped(pid);
}

static size_t watch(struct pollfd **polls, size_t *capacity, bool full) {
  size_t count = 2;
  for (struct job *j = server.jobs; j; j = j->next) count += 4;
  if (count > *capacity) *polls = must(realloc(*polls, (*capacity = count * 2) * sizeof(struct pollfd)));
  struct pollfd *p = *polls;
  p[0] = (struct pollfd){NODE_FD, (short)(POLLIN | (server.up.start < server.up.end ? POLLOUT : 0)), 0};
  p[1] = (struct pollfd){server.signals, POLLIN, 0};
  count = 2;
  for (struct job *j = server.jobs; j; j = j->next) {
    p[count++] = (struct pollfd){j->control, (short)(POLLIN | (j->to_keeper.start < j->to_keeper.end ? POLLOUT : 0)), 0};
    p[count++] = (struct pollfd){full ? -1 : j->output[0], POLLIN, 0};
    p[count++] = (struct pollfd){full ? -1 : j->output[1], POLLIN, 0};
    p[count++] = (struct pollfd){j->begun && j->to_input.start < j->to_input.end ? j->input : -1, POLLOUT, 0};
  }
  return count;
}

static void serve_jobs(const struct pollfd *p) {
  for (struct job *j = server.jobs; j; j = j->next, p += 4) {
    if (p[0].revents & POLLOUT) buffer_flush(&j->to_keeper, j->control);
    if (p[0].revents & (POLLIN | POLLHUP | POLLERR)) take_report(j);
    for (uint8_t s = 0; s < 2; s++)
      for (int reads = 0; p[1 + s].revents && j->output[s] >= 0 && reads < READS_AT_ONCE; reads++)
        if (!pump(j, s)) break;
    feed_input(j);
  }
  int64_t now = now_ms();
  for (struct job **at = &server.jobs; *at;) {
    struct job *j = *at;
    if (!settle(j, now)) {
      at = &j->next;
      continue;
    }
    *at = j->next;
    job_free(j);
  }
}

/* How long to sleep: until the next deadline, or until it is time to build what is wanted ahead. */
static int patience(void) {
  int64_t wait = pool_patience(server.jobs != NULL), now = now_ms();
  for (struct job *j = server.jobs; j; j = j->next) {
    if (j->deadline == 0) continue;
    int64_t left = j->deadline > now ? j->deadline - now : 0;
    if (wait < 0 || left < wait) wait = left;
  }
  return (int)wait;
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
  server.signals = signalfd(-1, &mask, SFD_CLOEXEC | SFD_NONBLOCK);
  pool_open();
  fcntl(NODE_FD, F_SETFD, FD_CLOEXEC);
  set_nonblocking(NODE_FD);
  for (;;) {
    size_t count = watch(&polls, &capacity, upstream_full());
    int ready = poll(polls, count, patience());
    if (ready == 0) pool_build();
    if (polls[1].revents) reap();
    serve_jobs(polls + 2);
    if (polls[0].revents & (POLLIN | POLLHUP | POLLERR)) {
      ssize_t n = read(NODE_FD, buffer_room(&server.down, CHUNK), CHUNK);
      if (n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR)) break;
      if (n > 0) server.down.end += (size_t)n;
      if (!read_frames()) break;
    }
    if (!buffer_flush(&server.up, NODE_FD)) break;
  }
  /* Node is gone. Keepers end their commands when their socket does, and a sandbox ends after its last keeper. */
  for (struct job *j = server.jobs; j; j = j->next) close_fd(&j->control);
  pool_close();
  wait_for_all(500);
  return 0;
}
