/** What a client may read besides calling tools: files of ours, each under an address that is not a path. */
import { checkOptions, optionsShape } from "../../base/shape.ts";
import { defined } from "../../base/json.ts";
import type { Completions } from "./completions.ts";

/** A file that clients can read. */
export interface ServedResource {
  readonly uri: string;
  readonly name: string;
  readonly title?: string;
  readonly mediaType: string;
  readonly size?: number;
}

/** Words, or bytes as base64. */
export type ServedContent = { readonly mediaType: string } & ({ readonly text: string } | { readonly data: string });

/** The resources of a server. */
export interface ServedResources {
  list(): Promise<readonly ServedResource[]>;
  /** Undefined: there is no such resource. */
  read(uri: string): Promise<ServedContent | undefined>;
  /** The address of one of these files, or undefined where it is none of them. */
  linkTo(file: string): string | undefined;
  readonly templates: readonly ResourceTemplate[];
  /** Calls back when the list has changed. Left out: clients are not told. */
  onChange?(listener: () => void): () => void;
  /** Calls back when one was written again. Left out: clients cannot subscribe. */
  onUpdate?(listener: (uri: string) => void): () => void;
}

/** An address with variables, for resources that are not listed one by one. */
export interface ResourceTemplate {
  readonly uriTemplate: string;
  readonly name: string;
  readonly mimeType: string;
  /** By the template's variables: what a client may offer while the person types. */
  readonly complete?: Readonly<Record<string, Completions>>;
}

/** One kind of file: `callgate://outputs/NAME`. */
export interface ResourceFolder {
  readonly kind: string;
  readonly title: string;
  readonly mediaType: string;
  /** All its files are below this. */
  readonly root: string;
  /** Newest first. A name is one segment of an address. */
  files(): readonly { readonly name: string; readonly path: string; readonly title?: string; readonly size?: number }[];
}

/** Options of `createServedResources`. */
export interface ServedResourcesOptions {
  /** What is offered: kinds of files, each with a function that lists them. */
  readonly folders: readonly ResourceFolder[];
  /** Reads at most this many bytes of a file, from its start. */
  readonly readText: (path: string, maxBytes: number) => Promise<{ readonly text: string; readonly cut: boolean }>;
}

/** A client's context holds far less. Longer files are read by tools, in ranges. */
const maxReadBytes = 4 * 1024 * 1024;

const servedResourcesShape = optionsShape<ServedResourcesOptions>(
  { folders: { list: "table" }, readText: "function" },
  "folders",
  "readText",
);

/** The files of some folders as resources for `serveMcp`. */
export function createServedResources(options: ServedResourcesOptions): ServedResources {
  checkOptions("createServedResources", options, servedResourcesShape);
  const { folders, readText } = options;
  const addressOf = (kind: string, name: string) => `callgate://${kind}/${encodeURIComponent(name)}`;
  const within = (some: readonly ResourceFolder[]) =>
    some.flatMap((folder) => folder.files().map((file) => ({ folder, file })));
  return {
    async list() {
      return within(folders).map(({ folder, file }) => ({
        uri: addressOf(folder.kind, file.name),
        name: file.name,
        title: file.title ?? folder.title,
        mediaType: folder.mediaType,
        ...defined({ size: file.size }),
      }));
    },
    // Looked up among existing files and never made into a path, so an address cannot lead anywhere else.
    async read(uri) {
      const asked = folders.filter(({ kind }) => uri.startsWith(addressOf(kind, "")));
      const found = within(asked).find(({ folder, file }) => addressOf(folder.kind, file.name) === uri);
      if (found === undefined) return undefined;
      const { text, cut } = await readText(found.file.path, maxReadBytes);
      const note = cut ? `\n[cut here after ${maxReadBytes} bytes; the whole is in ${found.file.path}]` : "";
      return { text: `${text}${note}`, mediaType: found.folder.mediaType };
    },
    linkTo(path) {
      const holding = folders.filter(({ root }) => path.startsWith(root));
      const found = within(holding).find(({ file }) => file.path === path);
      return found && addressOf(found.folder.kind, found.file.name);
    },
    templates: folders.map(({ kind, title, mediaType, files }) => ({
      uriTemplate: `callgate://${kind}/{name}`,
      name: title,
      mimeType: mediaType,
      complete: { name: (value) => files().flatMap(({ name }) => (name.startsWith(value) ? [name] : [])) },
    })),
  };
}
