/*
 * Which rule denies a command, by its program's name and its words. Rules arrive compiled (Grant.denied in
 * src/spec/access.ts): a list of C strings each, read from front to back.
 *
 *   n NAME      what the rule is called; first, once
 *   p PROGRAM   a name it speaks about, or a whole path; at least once
 *   w           a place: one of the words that follow it must come next, options passed over
 *   = WORD
 *   o           a place: one of the options that follow it must be there, anywhere
 *   t OPTION      written just so; or else, of every group after it, one letter or one long name
 *   l LETTERS     begins a group
 *   g NAME        a long name of that group, which may be shortened as getopt allows
 *
 * Pure: no file is looked at here, so that it can be fuzzed and compared with src/gate/command/prefix.ts.
 */
#include "launcher.h"

static const char *next(const char *at) { return at + strlen(at) + 1; }

/* What may stand before each kind of string. */
static const char *before(char kind) {
  switch (kind) {
  case 'p': return "np";
  case 'w': case 'o': return "pwot=lg";
  case '=': return "w=";
  case 't': return "otlg";
  case 'l': return "tlg";
  case 'g': return "lg";
  default: return "";
  }
}

/* A rule that can be walked without looking for its shape again. */
bool rule_is_sound(const uint8_t *p, size_t size) {
  if (size < 4 || p[size - 1] != 0 || p[0] != 'n') return false;
  const char *at = (const char *)p, *end = at + size;
  char last = 'n';
  for (at = next(at); at < end; at = next(at)) {
    if (at[0] == 0 || !strchr(before(at[0]), last)) return false;
    last = at[0];
  }
  return last != 'n';
}

static bool is_option(const char *word) { return word[0] == '-'; }

/* As getopt sees it: a letter in any cluster, or any beginning of a long name, before `--`. */
static bool has_flag(char *const *words, const char *letters, const char *names, const char *end) {
  for (; *words && strcmp(*words, "--") != 0; words++) {
    const char *word = *words;
    if (word[0] != '-') continue;
    if (word[1] != '-') {
      if (strpbrk(word, letters)) return true;
      continue;
    }
    size_t length = strcspn(word + 2, "=");
    if (word[2] == 0) continue;
    for (const char *name = names; name < end && name[0] == 'g'; name = next(name))
      if (strncmp(name + 1, word + 2, length) == 0) return true;
  }
  return false;
}

/* One of the options of this place; `*at` is moved behind the place. */
static bool has_option(char *const *words, const char **at, const char *end) {
  bool found = false;
  const char *p = *at;
  while (p < end && p[0] == 't') {
    bool holds = true, exact = false;
    for (char *const *word = words; *word; word++)
      if (strcmp(*word, p + 1) == 0) exact = true;
    for (p = next(p); p < end && p[0] == 'l';) {
      const char *letters = p + 1;
      p = next(p);
      if (!has_flag(words, letters, p, end)) holds = false;
      while (p < end && p[0] == 'g') p = next(p);
    }
    if (exact || holds) found = true;
  }
  *at = p;
  return found;
}

/* The place behind the next word that is one of these; options and what may be their values are passed over. */
static char *const *find_word(char *const *words, const char **at, const char *end) {
  const char *alternatives = *at;
  while (*at < end && (*at)[0] == '=') *at = next(*at);
  for (char *const *word = words; *word; word++) {
    for (const char *p = alternatives; p < end && p[0] == '='; p = next(p))
      if (strcmp(*word, p + 1) == 0) return word + 1;
    bool after_option = word > words && is_option(word[-1]);
    if (!is_option(*word) && !after_option) return NULL;
  }
  return NULL;
}

/* Do the words (without the program) hold all that the rule asks for? */
static bool words_match(const char *at, const char *end, char *const *words) {
  char *const *rest = words;
  while (at < end) {
    bool option = at[0] == 'o';
    at = next(at);
    if (option && !has_option(words, &at, end)) return false;
    if (!option && !(rest = find_word(rest, &at, end))) return false;
  }
  return true;
}

/*
 * The name of the first rule that denies the program `name` with these words, or NULL. `cut`: there were
 * more words than could be read, and then a rule about words is taken to match.
 */
const char *rule_for(const struct fields *rules, const char *name, char *const *words, bool cut) {
  for (size_t i = 0; i < rules->count; i++) {
    const char *rule = (const char *)rules->list[i].data, *end = rule + rules->list[i].size;
    bool speaks = false;
    const char *at = next(rule);
    for (; at < end && at[0] == 'p'; at = next(at))
      if (strcmp(at + 1, name) == 0) speaks = true;
    if (speaks && (at == end || cut || words_match(at, end, words))) return rule + 1;
  }
  return NULL;
}
