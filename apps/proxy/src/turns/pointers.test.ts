import { openDirectory } from "@adrelay/provider";
import { expect, test } from "vitest";
import { pointersOf } from "./pointers.ts";

function publisherWith(apiKey: string) {
  const provider = {
    url: "http://127.0.0.1:1",
    apiKey,
    apiKeyHeader: "X-Key",
    tlsFiles: { ca: undefined, clientCert: undefined, clientKey: undefined },
  };
  const opened = openDirectory({ file: undefined, apiKeys: [], provider, env: () => undefined });
  const [publisher] = opened.kind === "ok" ? opened.directory.current : [];
  return publisher ?? expect.fail("there is no publisher");
}

const publisher = publisherWith("key-of-the-relay");

test("the same call of the same session has the same pointer", () => {
  const body = Buffer.from("{}");
  expect(pointersOf(publisher, "s").below("text")("call_1")).toBe(
    pointersOf(publisher, "s").below("text")("call_1"),
  );
  expect(pointersOf(publisher, "s").ofBody(body)).toBe(pointersOf(publisher, "s").ofBody(Buffer.from("{}")));
});

test("session, user text, call id, body and installation each change the pointer", () => {
  const other = publisherWith("another-key");
  const made = [
    pointersOf(publisher, "s").below("text")("call_1"),
    pointersOf(publisher, "t").below("text")("call_1"),
    pointersOf(publisher, "s").below("text 2")("call_1"),
    pointersOf(publisher, "s").below("text")("call_2"),
    pointersOf(publisher, "s").ofBody(Buffer.from("text")),
    pointersOf(publisher, "t").ofBody(Buffer.from("text")),
    pointersOf(publisher, "s").ofBody(Buffer.from("text 2")),
    pointersOf(other, "s").below("text")("call_1"),
    pointersOf(other, "s").ofBody(Buffer.from("text")),
  ];
  expect(new Set(made).size).toBe(made.length);
});

test("a pointer shows nothing of the session, the text or the ids", () => {
  const pointer = pointersOf(publisher, "session-canary").below("text-canary")("call-canary");
  expect(pointer).toMatch(/^[\w-]{22}$/);
});
