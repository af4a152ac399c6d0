/*
 * One command as Node sees it: its request goes to a keeper, its output and the keeper's reports come
 * back as frames, and its end is told once nothing of it is left.
 */
#include "launcher.h"
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>

#define READS_AT_ONCE 16         /* from one output, before the others have their turn */
#define UPSTREAM_FULL (4u << 20) /* no more output is read while Node has this much to catch up with */
#define FLOOD_PIPE (1 << 20)     /* what a pipe holds that comes with more than anybody reads */
#define FLOOD_REST_US 250        /* how long such a pipe is left to fill: each small read wakes two processes */

struct job {
  struct job *next;
  uint32_t id;
  pid_t pid;                 /* the keeper, or the sandbox around it */
  int control, input, output[2];
  bool in_sandbox, tried_again, tty, input_ends;
  bool begun, ended, survivors, killed, failed, held_open;
  bool moved;                /* output came since the last look */
  bool wide[2];              /* its pipe is a large one */
  int64_t rest[2];           /* it is left to fill until then, in microseconds */
  struct buffer to_keeper, to_input;
  struct buffer request;     /* kept until the command has begun */
  struct report end;
  uint64_t credit, tail_bytes;
  struct tail tail;
  char *keep_path;           /* until it is open, or cannot be */
  int keep_fd;
  uint64_t keep_at, keep_end; /* the next byte's place in the file, and where the file ends at the latest */
  uint32_t grace_ms;
  int64_t deadline;          /* when waiting for what is left ends; 0: not waiting */
  int diagnosis;             /* what the sandbox program had to say */
  uint64_t processes;        /* how many it may have at once; 0: as many as it likes */
};

#define OUR_PROCESSES 512 /* keepers, sandboxes, this one */

struct buffer upstream;
static struct job *jobs;

static bool upstream_full(void) { return upstream.end - upstream.start > UPSTREAM_FULL; }

static void frame_start(uint8_t type, uint32_t id, size_t size) {
  uint8_t head[9];
  uint32_t length = (uint32_t)size + 5;
  memcpy(head, &length, 4);
  head[4] = type;
  memcpy(head + 5, &id, 4);
  buffer_add(&upstream, head, sizeof head);
}

static void frame(uint8_t type, uint32_t id, const void *bytes, size_t size) {
  frame_start(type, id, size);
  buffer_add(&upstream, bytes, size);
}

/* Step, errno and words of why a command never ran. */
static void frame_failed(uint32_t id, char step, int32_t error, const char *words, size_t size) {
  frame_start('f', id, 5 + size);
  buffer_add(&upstream, &step, 1);
  buffer_add(&upstream, &error, 4);
  buffer_add(&upstream, words, size);
}

/* Writes what is not handed over live into the file of the output. Its beginning is left to Node, which has it. */
static void keep(struct job *j, const uint8_t *bytes, size_t size) {
  if (j->keep_path) {
    for (char *at = strchr(j->keep_path + 1, '/'); at; at = strchr(at + 1, '/')) {
      *at = 0;
      mkdir(j->keep_path, 0700);
      *at = '/';
    }
    j->keep_fd = open(j->keep_path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
    free(j->keep_path);
    j->keep_path = NULL;
  }
  while (j->keep_fd >= 0 && size > 0 && j->keep_at < j->keep_end) {
    size_t part = size < j->keep_end - j->keep_at ? size : (size_t)(j->keep_end - j->keep_at);
    ssize_t n = pwrite(j->keep_fd, bytes, part, (off_t)j->keep_at);
    if (n <= 0) { /* a full disk: what is there is there, and no more is promised */
      j->keep_end = j->keep_at;
      return;
    }
    j->keep_at += (uint64_t)n;
    bytes += n;
    size -= (size_t)n;
  }
}

/* Hands over what was kept back. */
static void flush_tail(struct job *j) {
  struct tail *t = &j->tail;
  uint8_t stream;
  uint32_t size;
  if (j->keep_fd >= 0) {
    frame('k', j->id, &j->keep_at, 8);
    close_fd(&j->keep_fd);
  }
  for (stream = 0; stream < 2; stream++) {
    if (!t->dropped[stream]) continue;
    uint8_t body[17] = {stream};
    memcpy(body + 1, &t->dropped[stream], 8);
    memcpy(body + 9, &t->lines[stream], 8);
    frame('d', j->id, body, sizeof body);
  }
  while (tail_next(t, &stream, &size)) {
    frame_start(stream ? 'e' : 'o', j->id, size);
    tail_take(t, buffer_room(&upstream, size), size);
    upstream.end += size;
  }
  tail_free(t);
}
/* ---- starting ---- */

void set_nonblocking(int fd) { fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK); }

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
  close_fd(&j->keep_fd);
  free(j->keep_path);
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

/* As many processes as all commands together may have; `more` is one that is about to start. */
static void count_processes(const struct job *more) {
  uint64_t total = OUR_PROCESSES;
  bool counted = !more || more->processes;
  for (const struct job *j = jobs; j; j = j->next) {
    if (j == more) continue;
    total += j->processes;
    if (!j->processes) counted = false;
  }
  cgroup_allow(counted ? total + (more ? more->processes : 0) : 0);
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
  if (sound) {
    j->processes = r.caps[0];
    count_processes(j);
  }
  if (sound && (sound = pool_take(&r, fresh, &keeper, &a))) {
    j->tty = r.has_tty;
    j->credit = r.live_bytes;
    j->tail_bytes = r.tail_bytes;
    if (r.keep_path && !j->keep_path) j->keep_path = must(strdup(r.keep_path));
    j->keep_end = r.keep_bytes;
    j->grace_ms = r.grace_ms;
    j->pid = keeper.pid;
    j->control = keeper.control;
    j->diagnosis = keeper.diagnosis;
    j->in_sandbox = r.wrapper != NULL;
    /* The wrapper comes first in a request: the command's own fields are the rest. */
    const uint8_t *own = r.wrapper ? r.wrapper + r.wrapper_size : payload;
    hand_over(j, own, (size_t)(end - own), theirs);
  }
  if (!sound) frame_failed(j->id, a.step, a.error, NULL, 0);
  for (int i = 0; i < 3; i++) close_fd(&theirs[i]);
  request_free(&r);
  return sound;
}

static void start_job(uint32_t id, const uint8_t *payload, size_t size) {
  struct job *j = must(calloc(1, sizeof *j));
  *j = (struct job){.id = id, .control = -1, .input = -1, .output = {-1, -1}, .diagnosis = -1, .keep_fd = -1};
  buffer_add(&j->request, payload, size);
  if (!launch(j, false)) return job_free(j);
  j->next = jobs;
  jobs = j;
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

/*
 * Reads once from an output; true if more is likely there. A full pipe means a flood: it gets a larger one, and what
 * nobody waits for is then read rarely and much at a time.
 */
static bool pump(struct job *j, uint8_t stream, int64_t now_us) {
  static uint8_t chunk[CHUNK];
  int *fd = &j->output[stream];
  bool live = j->credit > 0 && j->tail.used == 0;
  uint8_t *to = live ? buffer_room(&upstream, CHUNK + 9) + 9 : chunk;
  ssize_t n = read(*fd, to, live && j->credit < CHUNK ? j->credit : CHUNK);
  if (n < CHUNK && !live && j->wide[stream]) j->rest[stream] = now_us + FLOOD_REST_US;
  if (n < 0 && (errno == EAGAIN || errno == EINTR)) return false;
  if (n <= 0) { /* a terminal ends with EIO */
    if (j->input == *fd) j->input = -1;
    close_fd(fd);
    return false;
  }
  j->moved = true;
  if (n == CHUNK && !j->tty && !j->wide[stream]) j->wide[stream] = fcntl(*fd, F_SETPIPE_SZ, FLOOD_PIPE) >= FLOOD_PIPE;
  if (!live) {
    keep(j, chunk, (size_t)n);
    tail_add(&j->tail, j->tail_bytes, stream, chunk, (uint32_t)n);
    return n == CHUNK;
  }
  j->credit -= (uint64_t)n;
  j->keep_at += (uint64_t)n;
  frame_start(stream ? 'e' : 'o', j->id, (size_t)n);
  upstream.end += (size_t)n; /* the bytes already lie behind the head */
  return n == CHUNK && !upstream_full();
}

/* The programs a command started: how many are not listed, and the list. */
static void pass_starts(struct job *j, int list, uint32_t unlisted) {
  static uint8_t body[4 + CHUNK];
  memcpy(body, &unlisted, 4);
  ssize_t n = list < 0 ? -1 : pread(list, body + 4, CHUNK, 0);
  if (n > 0) frame('p', j->id, body, 4 + (size_t)n);
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
  case 'P':
    pass_starts(j, fds[0], (uint32_t)report.status);
    break;
  default: break;
  }
  for (int i = 0; i < 3; i++) close_fd(&fds[i]);
}

/* A sandbox that could not be built has said why on its standard error. */
static void report_sandbox_failure(struct job *j) {
  char words[512];
  ssize_t n = j->diagnosis < 0 ? 0 : pread(j->diagnosis, words, sizeof words, 0);
  frame_failed(j->id, 'b', EPERM, words, n > 0 ? (size_t)n : 0);
}

static void report_end(struct job *j) {
  int status = j->ended ? j->end.status : SIGKILL; /* a keeper that died took the command's end with it */
  uint8_t body[26];
  int32_t code = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  int32_t signal = WIFSIGNALED(status) ? WTERMSIG(status) : 0;
  uint64_t peak = (uint64_t)j->end.peak_kb * 1024;
  memcpy(body, &code, 4);
  memcpy(body + 4, &signal, 4);
  memcpy(body + 8, &j->end.cpu_us, 8);
  memcpy(body + 16, &peak, 8);
  body[24] = j->held_open;
  body[25] = j->end.limit;
  flush_tail(j);
  frame('x', j->id, body, sizeof body);
}

bool job_owns(pid_t pid) {
  for (struct job *j = jobs; j; j = j->next)
    if (j->pid == pid) return true;
  return false;
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
  if (!j->ended && j->in_sandbox && !j->killed && !j->begun) {
    if (!j->tried_again) return !start_again(j);
    report_sandbox_failure(j);
    return true;
  }
  if (!j->ended && !j->in_sandbox) kill_orphans(); /* the keeper was killed: its processes are ours now */
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
  for (struct job *j = jobs; j; j = j->next)
    if (j->id == id) return j;
  return NULL;
}

void job_obey(uint8_t type, uint32_t id, const uint8_t *p, size_t size) {
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

/* A command that has ended fills nothing any more. */
static bool rests(const struct job *j, int stream, int64_t now_us) {
  return !j->ended && j->output[stream] >= 0 && j->rest[stream] > now_us;
}

/* How long the first of those that are left to fill has left, in microseconds; -1 if none is. */
int64_t job_rest(int64_t now_us) {
  int64_t first = -1;
  for (struct job *j = jobs; j; j = j->next)
    for (int s = 0; s < 2; s++)
      if (rests(j, s, now_us) && (first < 0 || j->rest[s] - now_us < first)) first = j->rest[s] - now_us;
  return first;
}

/* What to look out for: four descriptors for each. */
size_t job_watch(struct pollfd *p, int64_t now_us) {
  struct pollfd *at = p;
  bool full = upstream_full();
  for (struct job *j = jobs; j; j = j->next) {
    *at++ = (struct pollfd){j->control, (short)(POLLIN | (j->to_keeper.start < j->to_keeper.end ? POLLOUT : 0)), 0};
    for (int s = 0; s < 2; s++) *at++ = (struct pollfd){full || rests(j, s, now_us) ? -1 : j->output[s], POLLIN, 0};
    *at++ = (struct pollfd){j->begun && j->to_input.start < j->to_input.end ? j->input : -1, POLLOUT, 0};
  }
  return (size_t)(at - p);
}

size_t job_count(void) {
  size_t count = 0;
  for (struct job *j = jobs; j; j = j->next) count++;
  return count;
}

void job_serve(const struct pollfd *p, int64_t now_us) {
  for (struct job *j = jobs; j; j = j->next, p += 4) {
    if (p[0].revents & POLLOUT) buffer_flush(&j->to_keeper, j->control);
    if (p[0].revents & (POLLIN | POLLHUP | POLLERR)) take_report(j);
    /* A pipe that was left to fill holds what was written before the other stream became ready: it is read first. */
    for (int i = 0; i < 2; i++) {
      uint8_t s = (uint8_t)(p[2].fd < 0 ? 1 - i : i);
      bool ready = p[1 + s].revents || (p[1 + s].fd < 0 && p[2 - s].revents);
      for (int reads = 0; ready && j->output[s] >= 0 && reads < READS_AT_ONCE; reads++)
        if (!pump(j, s, now_us)) break;
    }
    feed_input(j);
  }
  for (struct job **at = &jobs; *at;) {
    struct job *j = *at;
    if (!settle(j, now_us / 1000)) {
      at = &j->next;
      continue;
    }
    *at = j->next;
    job_free(j);
    count_processes(NULL);
  }
}

/* When the first of them stops waiting; 0 if none does. */
int64_t job_deadline(void) {
  int64_t first = 0;
  for (struct job *j = jobs; j; j = j->next)
    if (j->deadline && (!first || j->deadline < first)) first = j->deadline;
  return first;
}

/* Keepers end their commands when their socket does. */
void job_close_all(void) {
  for (struct job *j = jobs; j; j = j->next) close_fd(&j->control);
}
