/** The scanner against `JSON.parse`, and what a splice changes. */
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { dialectNamed, splice } from "./index.ts";
import { scanJson } from "./json-places.ts";

const RULES = { allowsCacheMarked: true, allowsStoredResponses: true };

/** Strings with what is hard in JSON: quotes, backslashes, controls, lone surrogates, many bytes. */
const hardString = fc.oneof(
  fc.string({ unit: "binary" }),
  fc.string({
    unit: fc.constantFrom('"', "\\", "\n", "\u0000", "é", "日", "👋", "\ud83d", "a", "/", "u0022"),
    maxLength: 200,
  }),
);
const value = fc.jsonValue({ noUnicodeString: false, maxDepth: 4 });

/** JSON as others write it: with white space anywhere. */
function spaced(json: unknown, space: string): string {
  return JSON.stringify(json, null, 1).replaceAll(/\n */g, space);
}

const space = fc.constantFrom("", " ", "\n", "\r\n\t", "   ");

test("what JSON.parse takes is scanned, and its members are found as they are", () => {
  fc.assert(
    fc.property(fc.dictionary(hardString, value), space, (document, between) => {
      const scanned = scanJson(Buffer.from(spaced(document, between)));
      if (scanned.kind !== "scanned") throw new TypeError(scanned.kind);
      for (const key of Object.keys(document).filter((one) => one !== "__proto__")) {
        // Wanted keys are ASCII: see the callers.
        if (!/^[\x20-\x7e]*$/.test(key) || /["\\]/.test(key)) continue;
        const member = scanned.json.member(0, key);
        if (document[key] === null) expect(member).toBeUndefined();
        else expect(member).toBeDefined();
        if (typeof document[key] === "string") expect(scanned.json.stringMember(0, key)).toBe(document[key]);
        if (typeof document[key] === "number")
          expect(scanned.json.scalarMember(0, key)).toBe(Number(JSON.stringify(document[key])));
      }
    }),
    { numRuns: 1000 },
  );
});

test("what JSON.parse takes is never refused, whatever the bytes", () => {
  const texts = fc.oneof(
    fc.json(),
    fc.string({
      unit: fc.constantFrom("{", "}", "[", "]", '"', ",", ":", "1", "-", "null", "true", " ", "\\", "a"),
      maxLength: 12,
    }),
  );
  fc.assert(
    fc.property(texts, (text) => {
      let isJson = true;
      try {
        JSON.parse(text);
      } catch {
        isJson = false;
      }
      const { kind } = scanJson(Buffer.from(text));
      if (isJson) expect(kind).toBe("scanned");
    }),
    { numRuns: 5000 },
  );
});

test.each([
  "{",
  "[",
  '"',
  '"\\"',
  "{]",
  "[}",
  "[1,]",
  "[,1]",
  '{"a"}',
  '{"a":}',
  '{"a":1,}',
  "{a:1}",
  "1 2",
  "tru",
  "nul",
  "",
  " ",
  "[1 2]",
  '{"a":1 "b":2}',
  '"a\nb"',
  "\u00a01",
  "undefined",
  "'a'",
  "//",
  '["a"',
])("a wrong structure is refused: %j", (text) => {
  expect(scanJson(Buffer.from(text)).kind).toBe("not_json");
});

test("random bytes are scanned without an exception", () => {
  fc.assert(
    fc.property(fc.uint8Array({ maxLength: 200 }), (bytes) => {
      const body = Buffer.from(bytes);
      for (const name of ["chat_completions", "messages", "responses"] as const) {
        expect(["skip", "ad_may_go_in"]).toContain(dialectNamed(name).readRequest(body, RULES).kind);
      }
    }),
    { numRuns: 2000 },
  );
});

test("the place that is found in any request has the user's text", () => {
  const type = fc.constantFrom(
    "text",
    "input_text",
    "tool_result",
    "server_tool_use",
    "function_call_output",
    "message",
    7,
  );
  const part = fc.oneof(
    fc.record(
      { type, text: fc.oneof(hardString, value), id: hardString, tool_use_id: value },
      { requiredKeys: [] },
    ),
    value,
  );
  const role = fc.constantFrom("user", "assistant", "system", "tool", "developer", "function", null);
  const item = fc.oneof(
    fc.record(
      { type, role, content: fc.oneof(hardString, fc.array(part), value), call_id: value },
      { requiredKeys: [] },
    ),
    fc.record({ role, content: hardString, tool_call_id: fc.oneof(hardString, value) }),
    value,
  );
  const items = fc.array(item, { maxLength: 6 });
  let found = 0;
  fc.assert(
    fc.property(items, space, (list, between) => {
      const bytes = Buffer.from(spaced({ messages: list, input: list }, between));
      for (const name of ["chat_completions", "messages", "responses"] as const) {
        const request = dialectNamed(name).readRequest(bytes, RULES);
        if (request.kind === "skip") continue;
        found++;
        const { start, end } = request.place;
        expect(JSON.parse(bytes.toString("utf8", start, end))).toBe(request.userText);
        expect(request.answeredCallIds.every((id) => typeof id === "string" && id !== "")).toBe(true);
      }
    }),
    { numRuns: 3000 },
  );
  expect(found).toBeGreaterThan(100);
});

test("strings of every length and with quotes at every place are skipped right", () => {
  for (let length = 0; length < 300; length++) {
    for (const tail of ["", '"', "\\", '\\"', "\\\\", '"\\']) {
      const document = ["x".repeat(length) + tail, `${tail}${"y".repeat(length)}`, "end"];
      const scanned = scanJson(Buffer.from(JSON.stringify(document)));
      if (scanned.kind !== "scanned") throw new TypeError(scanned.kind);
      const { json } = scanned;
      expect(json.children(0).map((child) => json.string(child))).toEqual(document);
    }
  }
});

describe("a splice", () => {
  const message = fc.record({
    role: fc.constantFrom("user", "assistant", "system", "tool"),
    content: fc.oneof(hardString, value),
  });
  const body = fc.record({
    before: value,
    messages: fc.array(message, { maxLength: 5 }),
    last: hardString.filter((text) => text.trim() !== ""),
    after: value,
  });

  test("changes the one text, and no other byte", () => {
    fc.assert(
      fc.property(body, space, hardString, (parts, between, text) => {
        const messages = [...parts.messages, { role: "user", content: parts.last }];
        const document = { x: parts.before, model: "m", messages, y: parts.after };
        const bytes = Buffer.from(spaced(document, between));
        const request = dialectNamed("messages").readRequest(bytes, RULES);
        if (request.kind !== "ad_may_go_in") throw new TypeError(request.reason);
        const { place, userText } = request;
        expect(userText).toBe(parts.last);
        expect(JSON.parse(bytes.toString("utf8", place.start, place.end))).toBe(userText);

        const changed = splice(bytes, place, text);
        expect(changed.subarray(0, place.start).equals(bytes.subarray(0, place.start))).toBe(true);
        const tail = bytes.subarray(place.end);
        expect(changed.subarray(changed.length - tail.length).equals(tail)).toBe(true);
        const expected = JSON.parse(bytes.toString());
        expected.messages.at(-1).content = text;
        expect(JSON.parse(changed.toString())).toEqual(expected);
      }),
      { numRuns: 1000 },
    );
  });

  test("keeps numbers, escapes, white space and members that come twice", () => {
    const bytes = Buffer.from(
      '{"n":1.0e2,"big":12345678901234567890, "s":"\\u00e9\\/",\t"a":1,"a":2,"input" : "hi"\n}',
    );
    const request = dialectNamed("responses").readRequest(bytes, RULES);
    if (request.kind !== "ad_may_go_in") throw new TypeError(request.reason);
    expect(splice(bytes, request.place, 'a "b"').toString()).toBe(
      '{"n":1.0e2,"big":12345678901234567890, "s":"\\u00e9\\/",\t"a":1,"a":2,"input" : "a \\"b\\""\n}',
    );
  });
});
