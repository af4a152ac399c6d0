/*
 * What we ourselves did to the workspace, as against what others did. Moving a file gives it a new time of change, so
 * after the undo of one run the files of an older one look as if somebody had touched them. The spans of time in which
 * we moved files are kept beside the runs: a time of change that lies in one of them is ours. Whoever writes a file in
 * such a moment gives it a new time of modification too, which a move does not.
 */
#include "held.h"
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>

#define SPANS "../spans"
#define MOST_SPANS 4096u

void span_begin(struct settle *s) {
  struct stamp st;
  /* It is there already where this goes on after a kill. */
  if (!look(s->run, "began", &st)) write_whole(s->run, "began", "", 0, false);
}

/* Only so many are needed: what older ones moved was long since kept, or is gone with its run. */
static void forget_oldest(struct settle *s) {
  size_t size = 0;
  uint8_t *bytes = read_whole(s->run, SPANS, &size);
  size_t half = MOST_SPANS / 2 * sizeof(struct span);
  if (bytes && size > 2 * half) write_whole(s->run, SPANS, bytes + (size / half - 1) * half, size - (size / half - 1) * half, false);
  free(bytes);
}

/* `until` is the time of our last word. One that is not written makes a later undo ask once too often. */
void span_end(struct settle *s, int64_t until) {
  struct span span = {changed_at(s->run, "began"), until};
  int fd = openat(s->run, SPANS, O_WRONLY | O_CREAT | O_APPEND | O_NOFOLLOW | O_CLOEXEC, 0600);
  if (fd >= 0 && write(fd, &span, sizeof span) > 0) forget_oldest(s);
  if (fd >= 0) close(fd);
  unlinkat(s->run, "began", 0);
}

void spans_read(struct settle *s) {
  size_t size = 0;
  s->spans = (struct span *)(void *)read_whole(s->run, SPANS, &size);
  s->span_count = s->spans ? size / sizeof *s->spans : 0;
}

static bool is_in_span(const struct settle *s, int64_t time) {
  for (size_t i = s->span_count; i-- > 0;)
    if (time >= s->spans[i].from && time <= s->spans[i].until) return true;
  return false;
}

/* Nobody but us has changed it at or after that time. */
bool is_ours_since(const struct settle *s, const struct stamp *st, int64_t since) {
  return st->ctime < since || (is_in_span(s, st->ctime) && !is_in_span(s, st->mtime));
}

/* ---- content ---- */

#define MOST_HASHED_BYTES (1 << 20)

/* Of a small file, to know again what was left there after it was replaced by its like. Zero: none was made. */
uint64_t content_hash(int root, const char *path) {
  static uint8_t bytes[MOST_HASHED_BYTES + 1];
  struct stamp st;
  if (!look_at(root, path, &st) || !S_ISREG(st.mode) || st.size > MOST_HASHED_BYTES) return 0;
  int fd = open_beneath(root, path, O_RDONLY | O_NONBLOCK);
  size_t size = 0;
  for (ssize_t n; fd >= 0 && size < sizeof bytes && (n = read(fd, bytes + size, sizeof bytes - size)) > 0;) size += (size_t)n;
  if (fd >= 0) close(fd);
  if (fd < 0 || size > MOST_HASHED_BYTES) return 0;
  uint64_t hash = 14695981039346656037u;
  for (size_t i = 0; i < size; i++) hash = (hash ^ bytes[i]) * 1099511628211u;
  return hash ? hash : 1;
}
