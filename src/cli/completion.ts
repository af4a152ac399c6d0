/** Completion scripts: the command's own table of contents, as each shell wants it. */
const scripts: Readonly<Record<string, (names: string) => string>> = {
  bash: (
    names,
  ) => `_callgate() { if [ "$COMP_CWORD" -eq 1 ]; then COMPREPLY=($(compgen -W "${names}" -- "\${COMP_WORDS[1]}")); else COMPREPLY=($(compgen -f -- "\${COMP_WORDS[COMP_CWORD]}")); fi; }
complete -o default -F _callgate callgate`,
  zsh: (names) => `_callgate() { if (( CURRENT == 2 )); then compadd -- ${names}; else _files; fi }
compdef _callgate callgate`,
  fish: (names) => `complete -c callgate -n __fish_use_subcommand -f -a "${names}"`,
};

/** Undefined for a shell we have no script for. */
export function completionScript(shell: string, names: readonly string[]): string | undefined {
  return Object.hasOwn(scripts, shell) ? scripts[shell]!(names.join(" ")) : undefined;
}

export const completionShells = Object.keys(scripts);
