/** Completion scripts for each shell. They ask the command itself, so they always know everything it accepts. */
const scripts: Readonly<Record<string, string>> = {
  bash: `_callgate() { local IFS=$'\\n'; COMPREPLY=($(callgate completion --words "\${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null)); }
complete -o default -F _callgate callgate`,
  zsh: `_callgate() {
  local -a found=("\${(@f)$(callgate completion --words "\${(@)words[2,CURRENT]}" 2>/dev/null)}")
  if [[ -n "$found" ]]; then compadd -- $found; else _files; fi
}
compdef _callgate callgate`,
  fish: `complete -c callgate -n __fish_use_subcommand -f
complete -c callgate -a '(callgate completion --words (commandline -opc)[2..] (commandline -ct) 2>/dev/null)'`,
};

/** Undefined for a shell we have no script for. */
export function completionScript(shell: string): string | undefined {
  return Object.hasOwn(scripts, shell) ? scripts[shell] : undefined;
}

export const completionShells = Object.keys(scripts);
