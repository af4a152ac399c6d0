import { optionsShape } from "../base/shape.ts";
import type { Service } from "./service.ts";

/** Options of `startServing`. */
export interface ServeOptions {
  /** The service that answers (`createService`). */
  readonly service: Service;
  /** 0 takes a free one. */
  readonly port?: number;
  /** The address to listen on. Left out: loopback. */
  readonly host?: string;
  /** The names under which the service is reached, if not on loopback. Left out: any. */
  readonly names?: readonly string[];
  /** Origins whose pages may send requests, besides the service's own. */
  readonly origins?: readonly string[];
  /** The folder with the page's files. Left out: a hint is shown instead of the page. */
  readonly page?: string;
  /** The longest request that is read. Left out: 32 MiB. */
  readonly maxBodyBytes?: number;
  /** Called with what went wrong, and where. */
  readonly onError?: (error: unknown, where: string) => void;
}

/** Checked when the service starts, so that a misspelled option is an error. */
export const serveShape = optionsShape<ServeOptions>(
  {
    service: "table",
    port: { above: -1 },
    host: "string",
    names: "strings",
    origins: "strings",
    page: "string",
    maxBodyBytes: { above: 0 },
    onError: "function",
  },
  "service",
);
