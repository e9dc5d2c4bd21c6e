/**
 * Mends the heads of HTTP/1 answers before undici parses them. undici and Node's own client refuse two things that RFC 9110
 * lets a client accept, and that edges in front of providers send:
 *
 * 1. A `100 Continue` that nobody asked for (section 15.2). All interim answers are dropped, but not 101.
 * 2. The same Content-Length twice (section 8.6). Different lengths are left as they are, so undici refuses them.
 *
 * Only heads are changed. An answer's head begins with the first byte that comes after a request was written. This holds
 * because undici writes a request at once, and the next one on a connection only after the answer is complete.
 */
import type { Socket } from "node:net";

/** The longest head of an answer that is accepted. Servers rarely send more than 8 KiB. */
export const HEAD_BYTES_MAX = 256 * 1024;

/**
 * Mends the heads of all answers on an HTTP/1 connection. Node hands over what it has read from a socket, encrypted or not,
 * by calling `push`, as for every Readable.
 */
export function mendHeads(socket: Socket): void {
  const pushUnchanged = socket.push.bind(socket);
  let held: Buffer = NO_BYTES;
  let writtenBeforeBody = 0;
  const hasHead = () => socket.bytesWritten !== writtenBeforeBody;
  socket.push = (chunk: unknown, encoding) => {
    if (!(chunk instanceof Buffer) || !hasHead()) {
      if (held.length > 0) {
        // The connection ends within a head.
        pushUnchanged(held);
        held = NO_BYTES;
      }
      return pushUnchanged(chunk, encoding);
    }
    const bytes = held.length === 0 ? chunk : Buffer.concat([held, chunk]);
    const { mended, rest } = mendHead(bytes);
    if (mended === undefined && rest.length <= HEAD_BYTES_MAX) {
      held = rest;
      return true;
    }
    held = NO_BYTES;
    writtenBeforeBody = socket.bytesWritten;
    return pushUnchanged(mended ?? rest);
  };
}

const NO_BYTES = Buffer.alloc(0);
const HEAD_END = "\r\n\r\n";
/** Where the status code is in `HTTP/1.1 200 OK`. */
const STATUS_AT = 9;

/** Drops interim heads. `mended` is the final head with all that follows it; undefined as long as that head is incomplete. */
function mendHead(bytes: Buffer): { readonly mended: Buffer | undefined; readonly rest: Buffer } {
  let rest = bytes;
  for (;;) {
    const end = rest.indexOf(HEAD_END);
    if (end === -1) {
      return { mended: undefined, rest };
    }
    const bodyAt = end + HEAD_END.length;
    if (!isInterim(rest)) {
      return { mended: mendLengths(rest, bodyAt), rest: NO_BYTES };
    }
    rest = rest.subarray(bodyAt);
  }
}

/** Whether a head is of an answer that another one follows. After a 101 there is no more HTTP. */
function isInterim(head: Buffer): boolean {
  return (
    head[STATUS_AT] === DIGIT_1 &&
    head.toString("latin1", 0, 5) === "HTTP/" &&
    head.toString("latin1", STATUS_AT, STATUS_AT + 3) !== "101"
  );
}

const DIGIT_1 = 0x31;

/** Finds a second Content-Length, in a second line or in the same. Nearly all heads need no more than this search. */
const REPEATED_LENGTH = /\ncontent-length[ \t]*:(?:[^\r\n]*,|[\s\S]*\ncontent-length[ \t]*:)/i;
const LENGTH_LINES = /\r\ncontent-length[ \t]*:([^\r\n]*)/gi;

/** Leaves one Content-Length of several that are the same, in one line or in several. */
function mendLengths(answer: Buffer, bodyAt: number): Buffer {
  const head = answer.toString("latin1", 0, bodyAt);
  if (!REPEATED_LENGTH.test(head)) {
    return answer;
  }
  const values = [...head.matchAll(LENGTH_LINES)].flatMap(([, value = ""]) => value.split(","));
  const [first = "", ...others] = values.map((value) => value.trim());
  if (!/^\d+$/.test(first) || others.some((other) => other !== first)) {
    return answer;
  }
  const line = `\r\nContent-Length: ${first}`;
  const mended = head.replace(LENGTH_LINES, "").replace(HEAD_END, `${line}${HEAD_END}`);
  return Buffer.concat([Buffer.from(mended, "latin1"), answer.subarray(bodyAt)]);
}
