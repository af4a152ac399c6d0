/** Sets of characters as quick tests of their codes. */
export const letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";
export const digits = "0123456789";

/** True for these characters of ASCII; beyond it all fit, or none. */
export function codesOf(characters: string, beyond: boolean): (code: number) => boolean {
  const fits = new Uint8Array(128);
  for (const character of characters) fits[character.charCodeAt(0)] = 1;
  return (code) => (code < 128 ? fits[code] === 1 : beyond);
}
