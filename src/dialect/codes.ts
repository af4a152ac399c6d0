/** Sets of characters as quick tests of character codes. */
export const letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";
export const digits = "0123456789";

/** True for these ASCII characters. All characters beyond ASCII fit, or none. */
export function codesOf(characters: string, beyond: boolean): (code: number) => boolean {
  const fits = new Uint8Array(128);
  for (const character of characters) fits[character.charCodeAt(0)] = 1;
  return (code) => (code < 128 ? fits[code] === 1 : beyond);
}
