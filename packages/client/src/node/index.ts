/** @adrelay/client/node: what needs a file system. */
export { type FileOutboxOptions, fileOutbox } from "./file-outbox.ts";
