/**
 * Shells other than bash. Where their own grammar could give a line another meaning, the line is doubtful, or it is
 * not read at all.
 */
import type { ShellDialect } from "../../spec/access.ts";

export interface ForeignDoubt {
  readonly text: string;
  /** Nobody can say what the line runs. */
  readonly unclear: boolean;
}

export function foreignDoubts(line: string, dialect: ShellDialect | undefined): readonly ForeignDoubt[] {
  if (dialect === "powershell") return [{ text: "PowerShell is not parsed here", unclear: true }];
  if (dialect === "zsh" && !isPlainForZsh(line)) return [{ text: "zsh may read it differently", unclear: false }];
  return [];
}

/**
 * Accepts, outside quotes, only letters, digits, a few marks and the operators that both shells share.
 * It refuses `=` at the start of a word, `!` after `>`, patterns and printf, because zsh's versions
 * can run code.
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
