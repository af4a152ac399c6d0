/* The last bytes of an output nobody has credit for, in a ring of records: stream, size, line breaks, data. */
#include "launcher.h"
#include <stdlib.h>

#define HEAD 9u

static void copy_in(struct tail *t, size_t at, const uint8_t *bytes, size_t size) {
  at %= t->capacity;
  size_t first = t->capacity - at < size ? t->capacity - at : size;
  memcpy(t->ring + at, bytes, first);
  memcpy(t->ring, bytes + first, size - first);
}

static void copy_out(const struct tail *t, size_t at, uint8_t *bytes, size_t size) {
  at %= t->capacity;
  size_t first = t->capacity - at < size ? t->capacity - at : size;
  memcpy(bytes, t->ring + at, first);
  memcpy(bytes + first, t->ring, size - first);
}

typedef uint8_t lanes __attribute__((vector_size(16)));

/* Line breaks, sixteen bytes at a time: every byte of a flood is looked at here. */
uint64_t count_lines(const uint8_t *bytes, size_t size) {
  const lanes breaks = {10, 10, 10, 10, 10, 10, 10, 10, 10, 10, 10, 10, 10, 10, 10, 10};
  uint64_t lines = 0;
  size_t at = 0;
  while (size - at >= sizeof(lanes)) {
    lanes counts = {0};
    /* A lane counts to 255 at most. */
    size_t rounds = (size - at) / sizeof(lanes) < 255 ? (size - at) / sizeof(lanes) : 255;
    for (size_t i = 0; i < rounds; i++, at += sizeof(lanes)) {
      lanes some;
      memcpy(&some, bytes + at, sizeof some);
      counts -= (lanes)(some == breaks); /* where they are equal all bits are set, which is minus one */
    }
    for (size_t i = 0; i < sizeof(lanes); i++) lines += counts[i];
  }
  for (; at < size; at++) lines += bytes[at] == '\n';
  return lines;
}

/* The oldest record; false if there is none. */
bool tail_next(struct tail *t, uint8_t *stream, uint32_t *size) {
  uint8_t head[HEAD];
  if (t->used == 0) return false;
  copy_out(t, t->start, head, HEAD);
  *stream = head[0];
  *size = get32(head + 1);
  return true;
}

static uint32_t lines_of_oldest(const struct tail *t) {
  uint8_t lines[4];
  copy_out(t, t->start + 5, lines, 4);
  return get32(lines);
}

static void forget(struct tail *t, uint32_t size) {
  t->start = (t->start + HEAD + size) % t->capacity;
  t->used -= HEAD + size;
}

/* Takes the oldest record out. */
void tail_take(struct tail *t, uint8_t *to, uint32_t size) {
  copy_out(t, t->start + HEAD, to, size);
  forget(t, size);
}

/* Adds at most CHUNK bytes; what is oldest makes room, and is counted. */
void tail_add(struct tail *t, uint64_t keep, uint8_t stream, uint8_t *bytes, uint32_t size) {
  if (!t->ring) {
    t->capacity = keep + 2 * CHUNK;
    t->ring = must(malloc(t->capacity));
  }
  bool joins = t->used > 0 && t->last_stream == stream && t->last_size + size <= CHUNK;
  while (t->used + size + HEAD > t->capacity) {
    uint8_t old = 0;
    uint32_t gone = 0;
    tail_next(t, &old, &gone);
    if (t->start == t->last) joins = false;
    t->dropped[old] += gone;
    t->lines[old] += lines_of_oldest(t);
    forget(t, gone);
  }
  if (!joins) {
    t->last = (t->start + t->used) % t->capacity;
    t->last_size = t->last_lines = 0;
    t->last_stream = stream;
    t->used += HEAD;
  }
  copy_in(t, t->start + t->used, bytes, size);
  t->used += size;
  t->last_size += size;
  t->last_lines += (uint32_t)count_lines(bytes, size); /* now, while the processor still has them at hand */
  uint8_t head[HEAD] = {stream};
  uint32_t length = (uint32_t)t->last_size;
  memcpy(head + 1, &length, 4);
  memcpy(head + 5, &t->last_lines, 4);
  copy_in(t, t->last, head, HEAD);
}

void tail_free(struct tail *t) {
  free(t->ring);
  *t = (struct tail){0};
}
