/** Text as base64 and back, by UTF-8, without Node. */
export function textToBase64(text: string): string {
  let binary = "";
  for (const byte of new TextEncoder().encode(text)) binary += String.fromCharCode(byte);
  return btoa(binary);
}

/** Undefined where it is no base64. */
export function base64ToText(data: string): string | undefined {
  try {
    return new TextDecoder().decode(Uint8Array.from(atob(data), (character) => character.charCodeAt(0)));
  } catch {
    // Somebody changed it, or it never was.
    return undefined;
  }
}
