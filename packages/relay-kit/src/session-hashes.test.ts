import { expect, test } from "vitest";
import { SessionHashes } from "./session-hashes.ts";

const [NEW, OLD] = ["n".repeat(32), "o".repeat(32)];

test("a session's hash is the HMAC-SHA256 of its id, cut to 96 bits", () => {
  // echo -n s-1 | openssl dgst -sha256 -hmac $(printf 'n%.0s' {1..32}) -binary | basenc --base64url | cut -c1-16
  expect(new SessionHashes([NEW]).hash("s-1")).toBe("FLurzeQZzRyk56Ij");
});

test("the first key hashes new entries, and all keys find older ones", () => {
  const [rotated, before] = [new SessionHashes([NEW, OLD]), new SessionHashes([OLD])];
  expect(rotated.hash("s-1")).toBe(new SessionHashes([NEW]).hash("s-1"));
  expect(rotated.all("s-1")).toEqual([rotated.hash("s-1"), before.hash("s-1")]);
  expect(rotated.hash("s-1")).not.toBe(rotated.hash("s-2"));
});

test("without a key no session is hashed", () => {
  const off = new SessionHashes([]);
  expect([off.isOn, off.hash("s-1"), off.all("s-1")]).toEqual([false, undefined, []]);
  expect(new SessionHashes([NEW]).hash(undefined)).toBeUndefined();
});
