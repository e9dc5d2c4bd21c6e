/** The store's log lines: a stable `event` and fields. A pino logger fits. No user's text is ever among the fields. */
export interface StoreLog {
  debug(fields: StoreLogFields): void;
  info(fields: StoreLogFields): void;
  warn(fields: StoreLogFields): void;
  error(fields: StoreLogFields): void;
}

export interface StoreLogFields {
  readonly event: string;
  readonly [field: string]: unknown;
}
