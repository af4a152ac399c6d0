/**
 * Code of another language on a command line: may a deny rule trust that it starts nothing? Only if
 * every name in it is known to compute or print; otherwise the answer is "cannot tell".
 */

interface Language {
  /** Names that may stand for themselves. */
  readonly names: ReadonlySet<string>;
  /** Names that may follow a dot. Left out: any name that `starts` does not list. */
  readonly modules?: ReadonlySet<string>;
  /** Marks that begin something this reader does not follow: interpolation, commands, computed access. */
  readonly marks: RegExp;
}

const words = (...lines: readonly string[]) => new Set(lines.flatMap((line) => line.split(" ")));

/** Names that start a program or lead to something that does, in any of the languages. */
const starts =
  /^(_.*|system|popen\d?|Popen|exec\w*|spawn\w*|posix_spawn\w*|fork\w*|run|call|check_call|check_output|getoutput|getstatusoutput|startfile|modules|import_module|load_module|builtins|os|subprocess|pty|ctypes|constructor|mainModule|binding|dlopen|getBuiltinModule|prototype|loader|codecs|attrgetter|methodcaller|eval|compile|f_globals|gi_frame|tb_frame|mro|getattr|setattr|vars|globals|locals|breakpoint|help|super|global|globalThis|Function|Reflect|WebAssembly|module|arguments)$/;

/** The members of Python's `os` that only read. */
const lookingOs =
  /\bos\.(path(\.\w+)?|getcwd|listdir|environ|sep|linesep|walk|scandir|stat|cpu_count|getpid|name|uname|makedirs|mkdir)\b/g;

const python: Language = {
  names: words(
    "False None True and as assert break class continue def del elif else except finally for from global if import in is lambda nonlocal not or pass raise return try while with yield match case",
    "print len range str int float bool list dict set tuple sorted reversed enumerate zip map filter sum min max abs round any all repr ord chr hex bin oct input open isinstance type format iter next pow divmod bytes bytearray slice hash id Exception ValueError KeyError TypeError IndexError StopIteration SystemExit exit quit",
  ),
  modules: words(
    "json sys re math cmath datetime time collections itertools functools random string textwrap hashlib base64 statistics decimal fractions csv pprint uuid struct calendar difflib urllib.parse platform os unicodedata binascii zlib typing",
  ),
  marks: /[`@\\]|__/,
};

const node: Language = {
  names: words(
    "var let const if else for while do of in return function new typeof void null undefined true false this class try catch finally throw async await break continue switch case default NaN Infinity",
    "console JSON Math Object Array String Number Boolean Date Map Set RegExp Symbol BigInt parseInt parseFloat isNaN encodeURIComponent decodeURIComponent Promise Error TypeError URL URLSearchParams Buffer Intl",
    "process fs path os util",
  ),
  modules: words("fs path os util url querystring crypto assert"),
  marks: /[`\\]|\$\{|import\s*\(/,
};

const perl: Language = {
  names: words(
    "print printf say if unless else elsif while until for foreach my our local length substr index rindex join split push pop shift unshift sort reverse keys values uc lc ucfirst lcfirst chomp chop sprintf next last BEGIN END lt gt le ge eq ne cmp and or not xor abs int sqrt hex oct ord chr defined exists delete scalar STDIN STDERR x return undef wantarray strict warnings use",
  ),
  marks: /[`&@\\]|[%*]\s*\{|->|<(?!=|\s|STDIN>|>)|\$[^\w\s.;,)/'"!&]|~~/,
};

const tiny: Language = {
  names: words("puts print p echo printf RUBY_VERSION PHP_VERSION PHP_EOL phpversion _VERSION true false nil null"),
  marks: /[`$#@\\{}[\]|<>:]/,
};

const languages: readonly (readonly [RegExp, Language])[] = [
  [/^(python|pypy)[\d.]*$/, python],
  [/^(node|nodejs|bun|deno)$/, node],
  [/^perl[\d.]*$/, perl],
];

const maxLength = 20_000;

/** True if code for this interpreter certainly starts no program. */
export function isPlainCode(interpreter: string, code: string): boolean {
  if (code.length > maxLength) return false;
  const language = languages.find(([name]) => name.test(interpreter))?.[1] ?? tiny;
  const bare = withoutTexts(code, language)?.replace(lookingOs, "print");
  if (bare === undefined || language.marks.test(bare)) return false;
  if (language === perl) return isPlainPerl(bare);
  return (
    importsAreKnown(code, bare, language) && namesAreKnown(bare, language) && !computesMembers(code, bare, language)
  );
}

/** The code with every string replaced by `""`. Undefined if a string does not end. */
function withoutTexts(code: string, language: Language): string | undefined {
  // Formatted strings hold code of their own, raw and byte strings do not.
  if (language === python && /\b[rRbBuU]*[fF][rR]?["']/.test(code)) return undefined;
  const bare = code.replace(/'(?:[^'\\\n]|\\.)*'|"(?:[^"\\\n]|\\.)*"/g, (text) =>
    language === perl && text.startsWith('"') && /[@$]\s*[{\w]*[[{]|@/.test(text) ? "`" : '""',
  );
  // A quote that remains belongs to a string that does not end, or to a comment.
  return bare.replaceAll('""', "").match(/['"]/) === null ? bare : undefined;
}

function importsAreKnown(code: string, bare: string, { modules = new Set() }: Language): boolean {
  // Python: `import a, b.c` and `from a import b`, without another name for it.
  for (const [, from, plain] of bare.matchAll(/\bfrom\s+([\w.]+)\s+import\b|\bimport\s+([\w., ]+)/g)) {
    const named = (from ?? plain ?? "").split(",").map((name) => name.trim());
    if (named.some((name) => name.includes(" ") || !modules.has(name))) return false;
  }
  const required = bare.match(/\brequire\b/g)?.length ?? 0;
  const known = [...code.matchAll(/\brequire\(\s*["']([^"']*)["']\s*\)/g)].filter(
    ([, name = ""]) => modules.has(name.replace(/^node:/, "")) || /^\.{1,2}\/[\w./-]+\.json$/.test(name),
  );
  return required === known.length;
}

function namesAreKnown(bare: string, { names, modules = new Set() }: Language): boolean {
  const own = new Set(
    [
      ...bare.matchAll(
        /\b(?:let|const|var|for|as|def|function|lambda|import)\s+([A-Za-z]\w*)|\b([A-Za-z]\w*)\s*(?:=(?!=)|=>|,|:|\bin\b|\)\s*=>)/g,
      ),
    ].map(([, first, second]) => first ?? second ?? ""),
  );
  return [...bare.matchAll(/(\.\s*)?([A-Za-z_]\w*)/g)].every(([, dot, name = ""]) => {
    const known = names.has(name) || modules.has(name) || name === "require";
    if (dot !== undefined) return !starts.test(name);
    return known || (own.has(name) && !starts.test(name));
  });
}

/** In JavaScript a text can name a member, and a text that is put together could name any member. */
function computesMembers(code: string, bare: string, language: Language): boolean {
  if (language !== node || !/[\w)\]]\s*\[(?!\s*\d+\s*\])/.test(bare)) return false;
  return (
    /""\s*\+|\+\s*""|\.(join|concat|replace\w*|reverse|from\w*|slice|substr\w*|toString|pad\w+|split|repeat|at|map)\b|atob/.test(
      bare,
    ) || /["'](constructor|mainModule|_\w*|binding|child_process)["']/.test(code)
  );
}

/** Only literal substitutions and matches, and names of the list. */
function isPlainPerl(bare: string): boolean {
  let plain = true;
  const rest = bare.replace(
    /\b(?:s|tr|y)([/|,#!])((?:[^\\\n/|,#!]|\\.)*)\1((?:[^\\\n/|,#!]|\\.)*)\1([a-z]*)|(?:\bm)?\/((?:[^\\\n/]|\\.)*)\/([a-z]*)/g,
    (_whole, _mark, pattern = "", to = "", flags = "", match = "") => {
      const body = `${String(pattern)} ${String(to)} ${String(match)}`;
      if (String(flags).includes("e") || /\(\?|system|exec|qx|open|eval|require|fork|syscall|\bdo\b/.test(body))
        plain = false;
      return " ";
    },
  );
  return (
    plain &&
    [...rest.matchAll(/([$]?)\b([A-Za-z_]\w*)/g)].every(([, mark, name = ""]) => mark === "$" || perl.names.has(name))
  );
}
