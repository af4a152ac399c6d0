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
  /** Names that the service is reached by, where it is not loopback. Left out: any. */
  readonly names?: readonly string[];
  /** Pages of these origins may ask, besides the service's own. */
  readonly origins?: readonly string[];
  /** The folder of the page. Left out: a hint stands in its place. */
  readonly page?: string;
  /** The longest request that is read. Left out: 32 MiB. */
  readonly maxBodyBytes?: number;
  /** Called with what went wrong, and where. */
  readonly onError?: (error: unknown, where: string) => void;
}

/** Checked when it starts: a word nobody knows is a mistake. */
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
