/** Shells that are not bash. What their own grammar could mean differently is a doubt, or ends the reading. */
import type { ShellDialect } from "../../spec/access.ts";

export interface ForeignDoubt {
  readonly text: string;
  /** Nobody can say what it runs. */
  readonly unclear: boolean;
}

export function foreignDoubts(line: string, dialect: ShellDialect | undefined): readonly ForeignDoubt[] {
  if (dialect === "powershell") return [{ text: "PowerShell is not parsed here", unclear: true }];
  if (dialect === "zsh" && !isPlainForZsh(line)) return [{ text: "zsh may read it differently", unclear: false }];
  return [];
}

/**
 * Outside quotes only letters, digits, a few marks and the operators both shells share; no `=` at the
 * start of a word, no `!` after `>`, no pattern and no printf, because zsh's can run code.
 */
export function isPlainForZsh(line: string): boolean {
  const bare = line.replace(/'[^']*'/g, "q").replace(/"[^"$`\\!]*"/g, "q");
  return (
    /^[\w\s.,:@%+/|&;<>=-]*$/.test(bare) &&
    !/(^|[\s|&;<>])=/.test(bare) &&
    !/&[|!]|>\s*&\s*\|/.test(bare) &&
    !line.replace(/['"]/g, "").includes("printf")
  );
}
