/** Random programs of the commands that change files in every way a shell can. */
import fc from "fast-check";

/** What every program starts from. */
export const scene = [
  "mkdir -p d1/s d2/t/u",
  "for f in a b c d1/x d1/y d1/s/z d2/k d2/t/l d2/t/u/m; do printf 'one\\ntwo of %s\\n' $f > $f; done",
  "chmod 755 b; chmod 444 c; ln -s d1/x l1; ln -s nowhere l2; mkdir empty",
  "touch -d 2001-02-03 a d1/x d1 d2/t",
].join("\n");

const paths = [
  "a",
  "b",
  "c",
  "l1",
  "l2",
  "empty",
  "d1",
  "d1/x",
  "d1/y",
  "d1/s",
  "d1/s/z",
  "d2",
  "d2/k",
  "d2/t",
  "d2/t/l",
  "d2/t/u",
  "n",
  "n/o",
  "n/o/p",
  "d1/new",
  "d2/t/new",
];
const folders = ["d1", "d1/s", "d2", "d2/t", "d2/t/u", "empty", "n", "n/o"];

const path = fc.constantFrom(...paths);
const folder = fc.constantFrom(...folders);
const mode = fc.constantFrom("644", "755", "600", "444", "4755", "700");
const word = fc.constantFrom("alpha", "beta", "gamma");

/** Never a folder into itself: what `cp` does there depends on the order of inode numbers. */
const pair = fc.tuple(path, path).filter(([from, to]) => !`${to}/`.startsWith(`${from}/`));

/** Asked before a command that writes: nobody reads from the pipes here, and writing to one would wait for ever. */
const hasPipe = (p: string) => `test -n "$(find -H ${p} -type p)"`;

const command = fc.oneof(
  { weight: 3, arbitrary: fc.tuple(word, path).map(([w, p]) => `${hasPipe(p)} || echo ${w} > ${p}`) },
  { weight: 3, arbitrary: fc.tuple(word, path).map(([w, p]) => `${hasPipe(p)} || echo ${w} >> ${p}`) },
  { weight: 3, arbitrary: path.map((p) => `rm -rf ${p}`) },
  // Held, a folder that was there is moved by copying and removing, which closed folders in it forbid (docs/effects.md).
  { weight: 2, arbitrary: pair.map(([p, q]) => `test -n "$(find ${p} -type d ! -perm -700)" || mv -f ${p} ${q}`) },
  { weight: 2, arbitrary: pair.map(([p, q]) => `${hasPipe(q)} || cp -a ${p} ${q}`) },
  path.map((p) => `sed -i s/two/three/ ${p}`),
  fc.tuple(mode, path).map(([m, p]) => `chmod ${m} ${p}`),
  fc.tuple(path, path).map(([p, q]) => `ln -sfn ${p} ${q}`),
  path.map((p) => `truncate -s 3 ${p}`),
  path.map((p) => `mkfifo ${p}`),
  path.map((p) => `touch -d 1999-09-09 ${p}`),
  folder.map((p) => `mkdir -p ${p}/made/deep`),
  fc.tuple(folder, word).map(([p, w]) => `rm -rf ${p}; mkdir -p ${p}; echo ${w} > ${p}/again`),
  fc.tuple(folder, word).map(([p, w]) => `rm -rf ${p}; ${hasPipe(p)} || echo ${w} > ${p}`),
  path.map((p) => `rm -f ${p}; mkdir -p ${p}; echo in > ${p}/in`),
  folder.map((p) => `chmod 555 ${p}`),
  path.map((p) => `${hasPipe(p)} || { exec 5>>${p}; exec 5>&-; }`), // opened for writing, nothing written
);

/** As many as these, one after the other, whatever each of them comes to. */
export const program = fc
  .array(command, { minLength: 3, maxLength: 14 })
  .map((lines) => lines.map((line) => `{ ${line}; } 2>/dev/null </dev/null || :`).join("\n"));
