import { buildCommand } from "@stricli/core";
import { print, runCommand } from "../io.ts";
import { routes } from "../routes.ts";

type Shell = "bash" | "zsh" | "fish";

export const command = buildCommand({
  docs: { brief: 'a completion script for your shell: eval "$(callgate completion bash)"' },
  parameters: {
    positional: {
      kind: "tuple",
      parameters: [{ brief: "bash, zsh or fish", placeholder: "SHELL", parse: readShell }],
    },
  },
  func: (_flags: object, shell: Shell) => runCommand(async () => print(scripts[shell](Object.keys(routes).join(" ")))),
});

function readShell(name: string): Shell {
  if (name === "bash" || name === "zsh" || name === "fish") return name;
  throw new Error("bash, zsh or fish");
}

const scripts: Readonly<Record<Shell, (names: string) => string>> = {
  bash: (
    names,
  ) => `_callgate() { if [ "$COMP_CWORD" -eq 1 ]; then COMPREPLY=($(compgen -W "${names}" -- "\${COMP_WORDS[1]}")); else COMPREPLY=($(compgen -f -- "\${COMP_WORDS[COMP_CWORD]}")); fi; }
complete -o default -F _callgate callgate`,
  zsh: (names) => `_callgate() { if (( CURRENT == 2 )); then compadd -- ${names}; else _files; fi }
compdef _callgate callgate`,
  fish: (names) => `complete -c callgate -n __fish_use_subcommand -f -a "${names}"`,
};
