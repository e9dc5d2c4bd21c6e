import { createHash } from "node:crypto";
import { adResponseIdSchema, publisherIdSchema } from "@adrelay/contract";
import { expect, test } from "vitest";
import { ackIdOf, textHashOf } from "./fingerprints.ts";

const publisher = publisherIdSchema.parse("ours");

test("ids and fingerprints stay the same from version to version", () => {
  const id = adResponseIdSchema.parse("0f8fad5b-d9cb-469f-a165-70867728950e");
  expect(ackIdOf(id)).toBe("748ae9b3-3581-8a73-b640-d91ef027ca4e");
  expect(textHashOf(publisher, "Try it \u{1f3c3}")).toBe("lnBFb2QpD5mOVurS6Z394a");
});

test("texts that differ only in a lone surrogate, or in their publisher, have different fingerprints", () => {
  const texts = ["\ud800", "\ud801", "\ufffd", ""];
  const theirs = publisherIdSchema.parse("ours0");
  const hashes = [publisher, theirs].flatMap((of) => texts.map((text) => textHashOf(of, text)));
  expect(new Set(hashes).size).toBe(8);
});

test.each([32_767, 32_768, 32_769, 65_536, 100_001])(
  "a text of %d characters has the fingerprint of its UTF-16, whatever its pieces",
  (length) => {
    const text = "\u{1f3c3}\ud800x".repeat(length).slice(0, length);
    const bytes = Buffer.concat([Buffer.from("ours\0"), Buffer.from(text, "utf16le")]);
    const whole = createHash("sha256").update(bytes).digest("base64url");
    expect(textHashOf(publisher, text)).toBe(whole.slice(0, 22));
  },
);
