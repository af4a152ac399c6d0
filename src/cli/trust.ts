/** Has the user agreed to exactly this content of a project file? */
export function isTrusted(_path: string, _content: string): boolean {
  return false;
}
