/* Bytes that grow, and requests: nothing that arrives is used before all of it has been checked. */
#include "launcher.h"
#include <errno.h>
#include <linux/filter.h>
#include <stdlib.h>

void *must(void *memory) {
  if (!memory) _exit(70);
  return memory;
}

/* Room for `size` more bytes at the end. */
uint8_t *buffer_room(struct buffer *b, size_t size) {
  if (b->start == b->end) b->start = b->end = 0;
  if (b->capacity - b->end < size) {
    if (b->start > 0) {
      memmove(b->data, b->data + b->start, b->end - b->start);
      b->end -= b->start;
      b->start = 0;
    }
    if (b->capacity - b->end < size) {
      size_t wanted = b->capacity ? b->capacity : 4096;
      while (wanted - b->end < size) wanted *= 2;
      b->data = must(realloc(b->data, wanted));
      b->capacity = wanted;
    }
  }
  return b->data + b->end;
}

void buffer_add(struct buffer *b, const void *bytes, size_t size) {
  if (size == 0) return;
  memcpy(buffer_room(b, size), bytes, size);
  b->end += size;
}

void buffer_free(struct buffer *b) {
  free(b->data);
  *b = (struct buffer){0};
}

/* Writes what the other side takes; false once it will take nothing more. */
bool buffer_flush(struct buffer *b, int fd) {
  while (b->start < b->end) {
    ssize_t n = write(fd, b->data + b->start, b->end - b->start);
    if (n < 0) return errno == EAGAIN || errno == EINTR;
    b->start += (size_t)n;
  }
  if (b->capacity > (1u << 20)) buffer_free(b);
  return true;
}

void close_fd(int *fd) {
  if (*fd >= 0) close(*fd);
  *fd = -1;
}

void request_free(struct request *r) {
  if (r->argv) free(r->argv - 1);
  free(r->envp);
  free(r->paths.list);
  free(r->ports.list);
  free(r->held.list);
  free(r->limits.list);
  free(r->fds.list);
  free(r->rules.list);
  free(r->files.list);
  *r = (struct request){0};
}

static void add_word(char ***list, size_t *count, size_t spare, const uint8_t *word) {
  /* Grows by doubling; `spare` slots lie in front of the list, one for the NULL behind it. */
  if ((*count & (*count + 1)) == 0) {
    char **whole = must(realloc(*list ? *list - spare : NULL, (spare + 2 * *count + 3) * sizeof(char *)));
    *list = whole + spare;
  }
  (*list)[(*count)++] = (char *)(uintptr_t)word;
  (*list)[*count] = NULL;
}

static bool add_field(struct fields *to, const uint8_t *data, size_t size, bool sound) {
  if (!sound) return false;
  to->list = must(realloc(to->list, (to->count + 1) * sizeof(struct field)));
  to->list[to->count++] = (struct field){data, size};
  return true;
}

/* A whole C string: ends with its only NUL. */
static bool is_string(const uint8_t *p, size_t size) { return size > 0 && memchr(p, 0, size) == p + size - 1; }

/* Two of them. */
static bool is_pair(const uint8_t *p, size_t size) {
  const uint8_t *end = memchr(p, 0, size);
  return end && is_string(end + 1, (size_t)(p + size - end - 1));
}

static bool read_field(struct request *r, uint8_t tag, const uint8_t *p, size_t size) {
  switch (tag) {
  case 'a': return is_string(p, size) ? (add_word(&r->argv, &r->argc, 1, p), true) : false;
  case 'e': return is_string(p, size) ? (add_word(&r->envp, &r->envc, 0, p), true) : false;
  case 'c': r->cwd = (const char *)p; return is_string(p, size);
  case 'O': r->run = (const char *)p; return is_string(p, size);
  case 'H': r->wrapper = p; r->wrapper_size = size; return size > 0;
  case 'i': r->wants_input = true; return size == 0;
  case 't':
    if (size != 4) return false;
    r->has_tty = true; r->columns = get16(p); r->rows = get16(p + 2);
    return true;
  case 'u':
    if (size != 8) return false;
    r->has_owner = true; r->uid = get32(p); r->gid = get32(p + 4);
    return true;
  case 'b': if (size != 8) return false; r->live_bytes = get64(p); return true;
  case 'k': r->keep_bytes = size > 8 ? get64(p) : 0; r->keep_path = (const char *)p + 8; return size > 8 && is_string(p + 8, size - 8);
  case 'T': if (size != 8) return false; r->tail_bytes = get64(p); return r->tail_bytes <= (64u << 20);
  case 'g': if (size != 4) return false; r->grace_ms = get32(p); return true;
  case 'w': if (size != 4) return false; r->ahead = get32(p); return true;
  case 'n': return true; /* makes two wrappers different; says nothing to us */
  case 'r': return add_field(&r->limits, p, size, size == 20);
  case 'L':
    if (size != 24) return false;
    r->has_landlock = true;
    for (int i = 0; i < 3; i++) r->handled[i] = get64(p + 8 * i);
    return true;
  case 'l': return add_field(&r->paths, p, size, size >= 9 && is_string(p + 8, size - 8));
  case 'p': return add_field(&r->ports, p, size, size == 16);
  case 'h': return add_field(&r->held, p, size, is_string(p, size));
  case 'm':
    if (size < 25 || !is_string(p + 24, size - 24)) return false;
    r->capped = true;
    for (int i = 0; i < 3; i++) r->caps[i] = get64(p + 8 * i);
    r->temp = p[24] ? (const char *)p + 24 : NULL;
    return true;
  case 'x': return add_field(&r->rules, p, size, rule_is_sound(p, size));
  case 'y': return add_field(&r->files, p, size, size >= 12 && is_pair(p + 9, size - 9));
  case 's':
    r->seccomp = p; r->seccomp_size = size;
    return size > 0 && size % sizeof(struct sock_filter) == 0 && size / sizeof(struct sock_filter) <= BPF_MAXINSNS;
  case 'd': return add_field(&r->fds, p, size, size >= 1 && p[0] >= 3 && p[0] < CONTROL_FD);
  default: return false;
  }
}

/* Fields are one byte of tag, four of size, and that many bytes. True if all of it makes sense. */
bool request_read(struct request *r, const uint8_t *p, size_t size) {
  *r = (struct request){0};
  while (size > 0) {
    if (size < 5) return false;
    uint32_t length = get32(p + 1);
    if (length > size - 5 || !read_field(r, p[0], p + 5, length)) return false;
    p += 5 + length;
    size -= 5 + length;
  }
  if (r->argc == 0 || r->argv[0][0] == 0) return false;
  if (!r->envp) r->envp = must(calloc(1, sizeof(char *)));
  return r->cwd != NULL;
}
