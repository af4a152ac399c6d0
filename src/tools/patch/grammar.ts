/** The patch language as a Lark grammar, for models that write text under one. */
export const patchGrammar = `start: begin file+ end
begin: "*** Begin Patch" LF
end: "*** End Patch" LF?

file: add_file | delete_file | update_file
add_file: "*** Add File: " path LF added+
delete_file: "*** Delete File: " path LF
update_file: "*** Update File: " path LF move? chunk*
move: "*** Move to: " path LF

chunk: (anchor+ line+ | line+) end_of_file?
anchor: ("@@" | "@@ " text) LF
line: added | removed | kept
added: "+" text? LF
removed: "-" text? LF
kept: " " text? LF
end_of_file: "*** End of File" LF

path: /(.+)/
text: /(.+)/

%import common.LF
`;
