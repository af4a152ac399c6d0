/**
 * What a typed message carries besides its words: `@picture.png`, or the path of a picture dropped onto the
 * terminal.
 */
import { existsSync, readFileSync, statSync } from "node:fs";
import { homedir } from "node:os";
import { resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { text, type ImagePart, type Part } from "../../base/content.ts";

export interface Message {
  readonly content: string | readonly Part[];
  /** What could not be attached, and why. */
  readonly problems: readonly string[];
}

/** Providers accept five to twenty megabytes, so a larger file is a mistake. */
const maxImageBytes = 20 * 1024 * 1024;

/**
 * Attaches the pictures that the words name, and removes the mark from every other `@path`. The words
 * themselves stay, so that they can be referred to.
 */
export function readMessage(line: string, cwd: string): Message {
  const images: ImagePart[] = [];
  const problems: string[] = [];
  const words = line.replaceAll(token, (whole, before: string, quoted?: string, plain?: string) => {
    const isMarked = whole.trimStart().startsWith("@");
    const name = quoted ?? plain!.replaceAll("\\ ", " ");
    const path = toPath(name, cwd);
    if (!existsSync(path) || !statSync(path).isFile()) return whole;
    if (!isMarked && !/\.(png|jpe?g|gif|webp)$/i.test(name)) return whole;
    const image = readImage(path);
    if (typeof image === "string") problems.push(`${name} is not attached: ${image}`);
    else if (image) images.push(image);
    return `${before}${name}`;
  });
  return { content: images.length === 0 ? words : [text(words), ...images], problems };
}

/** `@"a b.png"`, `'/a b.png'`, `@path`, `/path/with\ blank.png`, `file:///path`. */
const token = /(^|\s)@?(?:["']([^"'\n]+)["']|@?((?:\\ |[^\s"'])+))/g;

function toPath(name: string, cwd: string): string {
  if (name.startsWith("file://")) {
    try {
      return fileURLToPath(name);
    } catch {
      return name; // this is not a path, so it stays as it was typed
    }
  }
  return resolve(cwd, name.startsWith("~/") ? `${homedir()}${name.slice(1)}` : name.replace(/^@/, ""));
}

/**
 * Recognises a picture by its first bytes and not by its name. Undefined for other files, and a reason if
 * the picture cannot be sent.
 */
function readImage(path: string): ImagePart | string | undefined {
  const { size } = statSync(path);
  if (size > maxImageBytes) return /\.(png|jpe?g|gif|webp)$/i.test(path) ? "it is larger than 20 MB" : undefined;
  const bytes = readFileSync(path);
  const mediaType = mediaTypeOf(bytes);
  return mediaType === undefined ? undefined : { type: "image", mediaType, data: bytes.toString("base64") };
}

function mediaTypeOf(bytes: Buffer): string | undefined {
  const head = bytes.toString("latin1", 0, 12);
  if (head.startsWith("\x89PNG\r\n")) return "image/png";
  if (head.startsWith("\xff\xd8\xff")) return "image/jpeg";
  if (head.startsWith("GIF8")) return "image/gif";
  return head.startsWith("RIFF") && head.endsWith("WEBP") ? "image/webp" : undefined;
}
