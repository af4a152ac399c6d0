/** The symbols of a source file, for ten families of languages. */

/** One declaration of a source file. */
interface Symbol {
  readonly kind: string;
  readonly name: string;
  readonly line: number;
  /** How deep it is nested, by indentation. */
  readonly depth: number;
}

export interface Outline {
  readonly language: string;
  readonly lines: { readonly total: number; readonly blank: number; readonly comment: number };
  readonly imports: readonly string[];
  readonly symbols: readonly Symbol[];
}

interface Language {
  readonly name: string;
  readonly comment: RegExp;
  /** The first group is what is imported. */
  readonly imports: readonly RegExp[];
  /** Kind and pattern; the first group is the name. */
  readonly symbols: readonly (readonly [string, RegExp])[];
}

const modifiers = String.raw`(?:(?:export|default|declare|abstract|async|public|private|protected|internal|static|final|override|readonly|sealed|virtual|partial|pub(?:\([^)]*\))?|unsafe|const)\s+)*`;

const script: Language = {
  name: "typescript/javascript",
  comment: /^\s*(?:\/\/|\*|\/\*)/,
  imports: [
    /^\s*(?:import|export)\b[^"']*?from\s+["']([^"']+)["']/,
    /^\s*import\s+["']([^"']+)["']/,
    /\brequire\(["']([^"']+)["']\)/,
  ],
  symbols: [
    ["class", new RegExp(`^\\s*${modifiers}class\\s+([\\w$]+)`)],
    ["interface", new RegExp(`^\\s*${modifiers}interface\\s+([\\w$]+)`)],
    ["enum", new RegExp(`^\\s*${modifiers}enum\\s+([\\w$]+)`)],
    ["type", /^\s*(?:export\s+)?(?:declare\s+)?type\s+([\w$]+)\s*(?:<[^=]*>)?\s*=/],
    ["function", new RegExp(`^\\s*${modifiers}function\\s*\\*?\\s*([\\w$]+)`)],
    [
      "function",
      /^\s*(?:export\s+)?(?:const|let|var)\s+([\w$]+)\s*(?::[^=]+)?=\s*(?:async\s*)?(?:function\b|\([^)]*\)\s*(?::[^=]+)?=>|[\w$]+\s*=>)/,
    ],
    ["constant", /^(?:export\s+)?(?:const|let|var)\s+([\w$]+)/],
    [
      "method",
      /^\s+(?:(?:public|private|protected|static|async|override|get|set|readonly)\s+)*(?!if\b|for\b|while\b|switch\b|catch\b|return\b|function\b)#?([\w$]+)\s*(?:<[^>]*>)?\([^;]*\)\s*(?::[^{;]+)?\{\s*$/,
    ],
  ],
};

const python: Language = {
  name: "python",
  comment: /^\s*#/,
  imports: [/^\s*from\s+(\S+)\s+import\b/, /^\s*import\s+([\w.]+)/],
  symbols: [
    ["class", /^\s*class\s+(\w+)/],
    ["function", /^\s*(?:async\s+)?def\s+(\w+)/],
    ["constant", /^([A-Z][A-Z0-9_]+)\s*(?::[^=]+)?=/],
  ],
};

const go: Language = {
  name: "go",
  comment: /^\s*(?:\/\/|\*|\/\*)/,
  imports: [/^\s*(?:import\s+)?(?:\w+\s+)?"([^"]+)"\s*$/],
  symbols: [
    ["method", /^func\s+\([^)]*\)\s*(\w+)/],
    ["function", /^func\s+(\w+)/],
    ["type", /^type\s+(\w+)/],
    ["constant", /^(?:const|var)\s+(\w+)/],
  ],
};

const rust: Language = {
  name: "rust",
  comment: /^\s*(?:\/\/|\*|\/\*)/,
  imports: [/^\s*(?:pub\s+)?use\s+([^;]+);/],
  symbols: [
    [
      "function",
      /^\s*(?:pub(?:\([^)]*\))?\s+)?(?:default\s+)?(?:const\s+)?(?:async\s+)?(?:unsafe\s+)?(?:extern\s+"[^"]*"\s+)?fn\s+(\w+)/,
    ],
    ["struct", /^\s*(?:pub(?:\([^)]*\))?\s+)?struct\s+(\w+)/],
    ["enum", /^\s*(?:pub(?:\([^)]*\))?\s+)?enum\s+(\w+)/],
    ["trait", /^\s*(?:pub(?:\([^)]*\))?\s+)?(?:unsafe\s+)?trait\s+(\w+)/],
    ["impl", /^\s*(?:unsafe\s+)?impl(?:<[^>]*>)?\s+([^{]+?)\s*(?:where\b.*)?\{?\s*$/],
    ["macro", /^\s*macro_rules!\s+(\w+)/],
    ["module", /^\s*(?:pub\s+)?mod\s+(\w+)/],
    ["constant", /^\s*(?:pub\s+)?(?:const|static)\s+(?:mut\s+)?(\w+)\s*:/],
  ],
};

const curly: Language = {
  name: "java/c#/kotlin/php",
  comment: /^\s*(?:\/\/|\*|\/\*|#)/,
  imports: [/^\s*(?:import|using|use)\s+(?:static\s+)?([\w.\\]+)/],
  symbols: [
    ["class", new RegExp(`^\\s*${modifiers}(?:data\\s+)?(?:class|record|struct|object)\\s+(\\w+)`)],
    ["interface", new RegExp(`^\\s*${modifiers}(?:interface|trait)\\s+(\\w+)`)],
    ["enum", new RegExp(`^\\s*${modifiers}enum\\s+(?:class\\s+)?(\\w+)`)],
    ["function", new RegExp(`^\\s*${modifiers}(?:fun|function)\\s+&?(\\w+)`)],
    [
      "method",
      /^\s+(?:(?:public|private|protected|internal|static|final|abstract|override|virtual|async|synchronized)\s+)+[\w<>[\],.? ]+\s+(\w+)\s*\([^;]*$/,
    ],
  ],
};

const cLike: Language = {
  name: "c/c++",
  comment: /^\s*(?:\/\/|\*|\/\*)/,
  imports: [/^\s*#\s*include\s*[<"]([^>"]+)[>"]/],
  symbols: [
    ["macro", /^\s*#\s*define\s+(\w+)/],
    ["class", /^\s*(?:template\s*<[^>]*>\s*)?class\s+(\w+)(?!.*;)/],
    ["struct", /^\s*(?:typedef\s+)?(?:struct|union|enum(?:\s+class)?)\s+(\w+)\s*(?:[:{]|$)/],
    ["namespace", /^\s*namespace\s+(\w+)/],
    [
      "function",
      /^(?!\s*(?:return|else|if|for|while|switch|typedef)\b)[\w:*&<>,~ \t]+?[\s*&]([\w:~]+)\s*\([^;]*\)?\s*(?:const\s*)?(?:noexcept\s*)?\{?\s*$/,
    ],
  ],
};

const ruby: Language = {
  name: "ruby",
  comment: /^\s*#/,
  imports: [/^\s*require(?:_relative)?\s+["']([^"']+)["']/],
  symbols: [
    ["module", /^\s*module\s+([\w:]+)/],
    ["class", /^\s*class\s+([\w:]+)/],
    ["method", /^\s*def\s+([\w.?!=]+)/],
  ],
};

const shell: Language = {
  name: "shell",
  comment: /^\s*#/,
  imports: [/^\s*(?:source|\.)\s+(\S+)/],
  symbols: [
    ["function", /^\s*(?:function\s+)?([\w:-]+)\s*\(\)/],
    ["function", /^\s*function\s+([\w:-]+)/],
  ],
};

const markdown: Language = {
  name: "markdown",
  comment: /^<!--/,
  imports: [],
  symbols: [["heading", /^#{1,6}\s+(.+?)\s*#*$/]],
};

const byExtension = new Map<string, Language>([
  ...[".ts", ".tsx", ".mts", ".cts", ".js", ".jsx", ".mjs", ".cjs"].map((extension) => [extension, script] as const),
  ...[".py", ".pyi"].map((extension) => [extension, python] as const),
  [".go", go],
  [".rs", rust],
  ...[".java", ".cs", ".kt", ".kts", ".php", ".scala", ".swift"].map((extension) => [extension, curly] as const),
  ...[".c", ".h", ".cc", ".cpp", ".cxx", ".hpp", ".hh"].map((extension) => [extension, cLike] as const),
  [".rb", ruby],
  ...[".sh", ".bash", ".zsh"].map((extension) => [extension, shell] as const),
  [".md", markdown],
]);

/**
 * Goes by the first words of lines, and not by a grammar. That is right for code as people write it,
 * and costs the same for any language.
 */
export function outline(text: string, extension: string): Outline | undefined {
  const language = byExtension.get(extension.toLowerCase());
  if (language === undefined) return undefined;
  const lines = text.split(/\r?\n/);
  if (lines.at(-1) === "") lines.pop();
  const imports = new Set<string>();
  const symbols: Symbol[] = [];
  let comment = 0;
  for (const [index, line] of lines.entries()) {
    // Longer lines are generated code, and patterns on them are slow.
    if (line.length > 1_000) continue;
    if (language.comment.test(line) && !language.symbols.some(([, pattern]) => pattern.test(line))) {
      comment++;
      continue;
    }
    const imported = firstMatch(language.imports, line);
    if (imported !== undefined) imports.add(imported.trim());
    const symbol = toSymbol(language, line, index + 1);
    if (symbol) symbols.push(symbol);
  }
  const blank = lines.filter((line) => line.trim() === "").length;
  return {
    language: language.name,
    lines: { total: lines.length, blank, comment },
    imports: [...imports],
    symbols: withDepths(symbols),
  };
}

function firstMatch(patterns: readonly RegExp[], line: string): string | undefined {
  for (const pattern of patterns) {
    const match = pattern.exec(line);
    if (match) return match[1];
  }
  return undefined;
}

function toSymbol(language: Language, line: string, number: number): Symbol | undefined {
  for (const [kind, pattern] of language.symbols) {
    const name = pattern.exec(line)?.[1];
    if (name !== undefined)
      return { kind, name: name.trim(), line: number, depth: /^\s*/.exec(line)![0].replaceAll("\t", "    ").length };
  }
  return undefined;
}

/** Turns indentation into nesting: a symbol belongs to the nearest one above that is indented less. */
function withDepths(symbols: readonly Symbol[]): readonly Symbol[] {
  const open: number[] = [];
  return symbols.map((symbol) => {
    while (open.length > 0 && open.at(-1)! >= symbol.depth) open.pop();
    const depth = open.length;
    open.push(symbol.depth);
    return { ...symbol, depth };
  });
}
