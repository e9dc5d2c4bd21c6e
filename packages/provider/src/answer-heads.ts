/**
 * Mends the heads of HTTP/1 answers before undici parses them. undici and Node's own client refuse two things that RFC 9110
 * lets a client accept, and that edges in front of providers send:
 *
 * 1. A `100 Continue` that nobody asked for (section 15.2). It is dropped. Other interim answers stay.
 * 2. The same Content-Length twice (section 8.6). Different lengths are left as they are, so undici refuses them.
 *
 * Only heads are changed. An answer's head begins with the first byte that comes after the head of a request was written.
 * This holds because undici writes the next request on a connection only after the answer is complete. It writes heads as
 * strings, and bodies as buffers. A request's body may still be written while its answer comes.
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
  let isHeadDue = false;
  onRequestHead(socket, () => {
    isHeadDue = true;
  });
  socket.push = (chunk: unknown, encoding) => {
    if (!(chunk instanceof Buffer) || !isHeadDue) {
      if (held.length > 0) {
        // The connection ends within a head.
        pushUnchanged(held);
        held = NO_BYTES;
      }
      return pushUnchanged(chunk, encoding);
    }
    const bytes = held.length === 0 ? chunk : Buffer.concat([held, chunk]);
    const { interim, mended, rest } = mendHead(bytes);
    if (interim.length > 0) {
      pushUnchanged(interim);
    }
    if (mended === undefined && rest.length <= HEAD_BYTES_MAX) {
      held = rest;
      return true;
    }
    held = NO_BYTES;
    isHeadDue = false;
    return pushUnchanged(mended ?? rest);
  };
}

const REQUEST_LINE = /^[A-Z]+ [^\r\n]* HTTP\/1\.1\r\n/;

/** Calls `onHead` before the head of each request is written. */
function onRequestHead(socket: Socket, onHead: () => void): void {
  const writeUnchanged = socket.write;
  const write = (...given: Parameters<Socket["write"]>): boolean => {
    const [chunk] = given;
    if (typeof chunk === "string" && REQUEST_LINE.test(chunk)) {
      onHead();
    }
    return writeUnchanged.apply(socket, given);
  };
  // `write` has two forms, of which the type keeps the longer one. Both are passed on as they are.
  socket.write = write as Socket["write"];
}

const NO_BYTES = Buffer.alloc(0);
const HEAD_END = "\r\n\r\n";
/** Where the status code is in `HTTP/1.1 200 OK`. */
const STATUS_AT = 9;

interface ReadHeads {
  /** Heads of interim answers, but for those of 100. */
  readonly interim: Buffer;
  /** The final head with all that follows it; undefined as long as that head is incomplete. */
  readonly mended: Buffer | undefined;
  readonly rest: Buffer;
}

function mendHead(bytes: Buffer): ReadHeads {
  const interims: Buffer[] = [];
  let rest = bytes;
  for (;;) {
    const end = rest.indexOf(HEAD_END);
    if (end === -1) {
      return { interim: joined(interims), mended: undefined, rest };
    }
    const bodyAt = end + HEAD_END.length;
    const status = interimStatusOf(rest);
    if (status === undefined) {
      return { interim: joined(interims), mended: mendLengths(rest, bodyAt), rest: NO_BYTES };
    }
    if (status !== "100") {
      interims.push(rest.subarray(0, bodyAt));
    }
    rest = rest.subarray(bodyAt);
  }
}

function joined(heads: readonly Buffer[]): Buffer {
  return heads.length === 0 ? NO_BYTES : Buffer.concat(heads);
}

/** The status of an answer that another one follows; undefined of other heads. After a 101 there is no more HTTP. */
function interimStatusOf(head: Buffer): string | undefined {
  if (head[STATUS_AT] !== DIGIT_1 || head.toString("latin1", 0, 5) !== "HTTP/") {
    return undefined;
  }
  const status = head.toString("latin1", STATUS_AT, STATUS_AT + 3);
  return status === "101" ? undefined : status;
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
