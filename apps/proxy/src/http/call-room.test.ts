import { IncomingMessage, ServerResponse } from "node:http";
import { Socket } from "node:net";
import { publisherIdSchema } from "@adrelay/contract";
import { expect, test } from "vitest";
import { ProxyRoom } from "./call-room.ts";

const publisher = (id: string) => ({ id: publisherIdSchema.parse(id) });
const [first, second] = [publisher("first"), publisher("second")];

function setup(callsMax: number) {
  const refused: string[] = [];
  const room = new ProxyRoom({ callsMax, bytesMax: 100 }, (limit) => refused.push(limit));
  /** Begins calls until one is refused. */
  const fill = (owner: typeof first) => {
    const calls: ServerResponse[] = [];
    for (;;) {
      const response = new ServerResponse(new IncomingMessage(new Socket()));
      if (!room.admit(owner, response)) {
        return calls;
      }
      calls.push(response);
    }
  };
  return { room, refused, fill };
}

test("one publisher gets all calls, and a second one that comes gets some at once", () => {
  const { room, refused, fill } = setup(300);
  expect(fill(first)).toHaveLength(300);
  expect(fill(second)).toHaveLength(27);
  expect(refused).toEqual(["calls", "calls"]);
  expect(room.calls.used).toBeLessThanOrEqual(room.calls.max);
  expect(room.calls.max).toBe(330);
});

test("the room of a call that is over can be used again", () => {
  const { room, fill } = setup(300);
  for (const response of fill(first)) {
    response.emit("close");
  }
  expect(room.calls.used).toBe(0);
  expect(fill(second)).toHaveLength(300);
});
