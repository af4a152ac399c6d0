export interface OwnPostgres {
  readonly url: string;
  database(): Promise<string>;
  query(text: string): Promise<readonly Readonly<Record<string, unknown>>[]>;
  restart(): Promise<void>;
  stop(): Promise<void>;
}

export function startPostgres(bin: string): Promise<OwnPostgres>;
