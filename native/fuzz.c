/*
 * Feeds the launcher's parser and its ring with what nobody would send, under the compiler's sanitizers
 * (scripts/fuzz-launcher.mjs). A request that is accepted is read to its last byte; the ring is compared
 * with a plain copy of everything that was added.
 */
#include "launcher.h"
#include <assert.h>
#include <stdio.h>
#include <stdlib.h>

static uint64_t state;

static uint32_t roll(uint32_t below) {
  state = state * 6364136223846793005u + 1442695040888963407u;
  return below ? (uint32_t)(state >> 33) % below : 0;
}

static size_t make_request(uint8_t *to, size_t room) {
  static const char tags[] = "aecHituruvbTgwnrLlphsdxym?";
  static const uint8_t sound[] = {'a', 3, 0, 0, 0, 'l', 's', 0, 'c', 2, 0, 0, 0, '/', 0};
  size_t size = roll(2) ? sizeof sound : 0;
  memcpy(to, sound, size);
  for (uint32_t fields = roll(12); fields > 0; fields--) {
    static const uint32_t sizes[] = {0, 1, 4, 8, 16, 20, 24};
    uint32_t length = roll(3) ? sizes[roll(7)] : roll(64);
    if (size + 5 + length > room) break;
    to[size] = (uint8_t)tags[roll(sizeof tags - 1)];
    memcpy(to + size + 1, &length, 4);
    static const char rule[] = "na\0pls\0w\0=b\0o\0t-f\0lf\0gforce";
    for (uint32_t i = 0; i < length; i++) to[size + 5 + i] = (uint8_t)(roll(4) ? 'a' + roll(26) : roll(256));
    /* Often a rule, or the beginning of one. */
    if (to[size] == 'x' && roll(4)) memcpy(to + size + 5, rule, length < sizeof rule ? length : sizeof rule);
    if (length && roll(4)) to[size + 4 + length] = 0;
    size += 5 + length;
  }
  for (uint32_t flips = roll(3); flips > 0 && size > 0; flips--) to[roll((uint32_t)size)] ^= (uint8_t)(1u << roll(8));
  return size ? size - (roll(8) ? 0 : roll((uint32_t)size)) : 0;
}

static uint64_t touch(const uint8_t *p, size_t size) {
  uint64_t sum = 0;
  for (size_t i = 0; i < size; i++) sum += p[i];
  return sum;
}

static uint64_t try_request(void) {
  static uint8_t scratch[4096];
  size_t size = make_request(scratch, sizeof scratch);
  uint8_t *exact = malloc(size ? size : 1); /* so that one byte too far is seen */
  struct request r;
  uint64_t sum = 0;
  memcpy(exact, scratch, size);
  if (request_read(&r, exact, size)) {
    for (size_t i = 0; i < r.argc; i++) sum += strlen(r.argv[i]);
    for (size_t i = 0; i < r.envc; i++) sum += strlen(r.envp[i]);
    sum += strlen(r.cwd) + touch(r.wrapper, r.wrapper_size) + touch(r.seccomp, r.seccomp_size);
    for (size_t i = 0; i < r.paths.count; i++) sum += strlen((const char *)r.paths.list[i].data + 8);
    for (size_t i = 0; i < r.ports.count; i++) sum += touch(r.ports.list[i].data, 16);
    for (size_t i = 0; i < r.held.count; i++) sum += strlen((const char *)r.held.list[i].data);
    for (size_t i = 0; i < r.limits.count; i++) sum += touch(r.limits.list[i].data, 20);
    for (size_t i = 0; i < r.fds.count; i++) sum += touch(r.fds.list[i].data, r.fds.list[i].size);
    const char *denied = rule_for(&r.rules, r.argv[0], r.argv + 1, roll(2));
    sum += denied ? strlen(denied) : 0;
    for (size_t i = 0; i < r.files.count; i++) sum += strlen((const char *)r.files.list[i].data + 9);
    sum += r.temp ? strlen(r.temp) : 0;
    assert(r.argv[r.argc] == NULL && r.envp[r.envc] == NULL);
  }
  request_free(&r);
  free(exact);
  return sum;
}

/* What comes out is the end of what went in, stream by stream, and the rest was counted. */
static void try_tail(void) {
  static uint8_t sent[2][1 << 22], kept[2][1 << 22], chunk[CHUNK];
  size_t total[2] = {0, 0}, left[2] = {0, 0};
  struct tail t = {0};
  uint64_t keep = roll(200000);
  for (uint32_t rounds = roll(60); rounds > 0; rounds--) {
    uint8_t stream = (uint8_t)roll(2);
    uint32_t size = 1 + (roll(2) ? roll(100) : roll(CHUNK));
    if (total[stream] + size > sizeof sent[0]) break;
    for (uint32_t i = 0; i < size; i++) chunk[i] = sent[stream][total[stream] + i] = (uint8_t)roll(256);
    total[stream] += size;
    tail_add(&t, keep, stream, chunk, size);
  }
  uint8_t stream;
  uint32_t size;
  while (tail_next(&t, &stream, &size)) {
    tail_take(&t, kept[stream] + left[stream], size);
    left[stream] += size;
  }
  for (int s = 0; s < 2; s++) {
    assert(t.dropped[s] + left[s] == total[s]);
    uint64_t lines = 0;
    for (size_t i = 0; i < t.dropped[s]; i++) lines += sent[s][i] == '\n';
    assert(t.lines[s] == lines);
    assert(memcmp(kept[s], sent[s] + total[s] - left[s], left[s]) == 0);
  }
  assert(left[0] + left[1] >= (total[0] + total[1] < keep ? total[0] + total[1] : keep) || t.capacity == 0 || left[0] + left[1] + CHUNK >= keep);
  tail_free(&t);
}

int main(int argc, char **argv) {
  long rounds = argc > 1 ? atol(argv[1]) : 100000;
  uint64_t sum = 0;
  state = argc > 2 ? strtoull(argv[2], NULL, 10) : 1;
  for (long i = 0; i < rounds; i++) {
    sum += try_request();
    if (i % 1000 == 0) try_tail();
  }
  printf("%ld requests, checksum %llu\n", rounds, (unsigned long long)sum);
  return 0;
}
