/*
 * callgate-launcher: starts commands for Node.
 *
 * Node forks its whole address space for every spawn; this small process does not. It lives as long as
 * Node does and takes requests over one socket:
 *
 *   Node  <-- frames -->  server  <-- control socket -->  keeper  -->  command
 *                            \                              ^
 *                             `-->  bubblewrap  -->  sandbox  --'
 *
 * Each command gets a keeper of its own: a process that waits for one request, starts the command,
 * reports how it ended and ends whatever the command left behind. One without a sandbox is forked from
 * the server. For a sandbox, bubblewrap builds the mounts once per policy, with a sandbox process inside;
 * that makes each keeper the first process of fresh namespaces, ahead of the command it is for. Under Landlock
 * the keeper is also the supervisor: it does, or refuses, what the kernel cannot judge by a path.
 *
 * Output and input pass through the server, which keeps the tail of what nobody has time to read. When
 * Node dies its socket ends, keepers end with the server's, and everything that was started with them.
 *
 * The protocol is written down in src/runtime/process/launcher-protocol.ts. Nothing that arrives is
 * trusted: a request is checked whole before anything is done, and a keeper's words are only data.
 */
#include "held.h"
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>

static bool read_request(int fd, struct request *r) {
  struct buffer b = {0};
  for (ssize_t n; (n = read(fd, buffer_room(&b, CHUNK), CHUNK)) > 0;) b.end += (size_t)n;
  if (request_read(r, b.data + b.start, b.end - b.start)) return true;
  fprintf(stderr, "callgate-launcher: malformed request\n");
  return false;
}

/* `match FD`: the rule of a request that denies its words, by name only; nothing is started. */
static int match(int fd) {
  struct request r;
  if (!read_request(fd, &r)) return 125;
  const char *rule = rule_for(&r.rules, r.argv[0], r.argv + 1, false);
  return printf("%s\n", rule ? rule : "") < 0;
}

/* `once FD`: reads one request from FD, runs it with our own input and output, and ends as it does. */
static int once(int fd) {
  struct request r;
  if (!read_request(fd, &r)) return 125;
  syscall(SYS_CLOSE_RANGE, 3, ~0U, 0);
  return keeper_once(&r);
}

struct link { int a, b; };

static _Noreturn void relay_loop(int listener, const struct sockaddr_un *target) {
  static struct link links[256];
  static struct pollfd polls[513];
  static uint8_t chunk[CHUNK];
  size_t count = 0;
  for (;;) {
    polls[0] = (struct pollfd){count < 256 ? listener : -1, POLLIN, 0};
    for (size_t i = 0; i < count; i++) {
      polls[1 + 2 * i] = (struct pollfd){links[i].a, POLLIN, 0};
      polls[2 + 2 * i] = (struct pollfd){links[i].b, POLLIN, 0};
    }
    if (poll(polls, 1 + 2 * count, -1) < 0) continue;
    for (size_t i = count; i-- > 0;) {
      bool over = false;
      for (int side = 0; side < 2; side++) {
        if (!polls[1 + 2 * i + (size_t)side].revents) continue;
        int from = side ? links[i].b : links[i].a, to = side ? links[i].a : links[i].b;
        ssize_t n = read(from, chunk, sizeof chunk);
        for (ssize_t at = 0, m; at < n; at += m) if ((m = write(to, chunk + at, (size_t)(n - at))) <= 0) { n = 0; break; }
        if (n <= 0) over = true;
      }
      if (!over) continue;
      close(links[i].a);
      close(links[i].b);
      links[i] = links[--count];
    }
    if (!polls[0].revents) continue;
    struct link link = {accept4(listener, NULL, NULL, SOCK_CLOEXEC), socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0)};
    if (link.a >= 0 && link.b >= 0 && connect(link.b, (const struct sockaddr *)target, sizeof *target) == 0) links[count++] = link;
    else close_fd(&link.a), close_fd(&link.b);
  }
}

/* `relay PORT SOCKET -- COMMAND`: connections to that port of the sandbox's own loopback go to the socket. */
static int relay(char **args) {
  struct sockaddr_in here = {.sin_family = AF_INET, .sin_port = htons((uint16_t)atoi(args[0])), .sin_addr = {htonl(INADDR_LOOPBACK)}};
  struct sockaddr_un target = {.sun_family = AF_UNIX};
  int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), yes = 1;
  if (strlen(args[1]) >= sizeof target.sun_path) return 125;
  strcpy(target.sun_path, args[1]);
  setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
  if (listener < 0 || bind(listener, (struct sockaddr *)&here, sizeof here) < 0 || listen(listener, 64) < 0) {
    perror("callgate-launcher: relay");
    return 125;
  }
  /* Twice, so that the relay is nobody's child: it ends with the sandbox. */
  if (fork() == 0) {
    if (fork() != 0) _exit(0);
    signal(SIGPIPE, SIG_IGN);
    setsid();
    prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
    int null = open("/dev/null", O_RDWR);
    for (int i = 0; i < 3; i++) dup2(null, i);
    int kept = dup2(listener, 3);
    syscall(SYS_CLOSE_RANGE, 4, ~0U, 0);
    relay_loop(kept, &target);
  }
  wait(NULL);
  close(listener);
  execvp(args[3], args + 3);
  perror("callgate-launcher: relay");
  return 127;
}

int main(int argc, char **argv) {
  const char *mode = argc > 1 ? argv[1] : "";
  if (strcmp(mode, "serve") == 0) return serve();
  if (strcmp(mode, "sandbox") == 0 && argc >= 3) return sandbox_main(argv[2], argv + 3);
  if (strcmp(mode, "held") == 0) return held_main(argc - 2, argv + 2);
  if (strcmp(mode, "once") == 0 && argc == 3) return once(atoi(argv[2]));
  if (strcmp(mode, "match") == 0 && argc == 3) return match(atoi(argv[2]));
  if (strcmp(mode, "relay") == 0 && argc > 5 && strcmp(argv[4], "--") == 0) return relay(argv + 2);
  if (strcmp(mode, "nothing") == 0) return 0;
  if (strcmp(mode, "judges") == 0) return starts_check();
  if (strcmp(mode, "limits") == 0) return cgroup_tell();
  if (strcmp(mode, "landlock-abi") == 0) {
    long abi = syscall(SYS_LANDLOCK_CREATE, NULL, 0, 1);
    return printf("%ld\n", abi > 0 ? abi : 0) < 0;
  }
  fprintf(stderr,
    "usage: callgate-launcher serve | sandbox FRESH | once FD | match FD | relay PORT SOCKET -- COMMAND... | judges"
    " | limits | landlock-abi\n");
  return 2;
}
