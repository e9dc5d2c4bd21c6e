import fc from "fast-check";
import { expect, test } from "vitest";
import { isGone } from "./gone-owner.ts";
import { lineOf, lineOfRemoval, logName, ownerOf, readLog, thisProcess } from "./log-format.ts";

const ack = (adResponseId: string, text = "t") => ({ adResponseId, text, storedAtMs: 1 });

test("a log holds what was added and not removed, in order", () => {
  const lines = [lineOf(ack("a")), lineOf(ack("b")), lineOfRemoval("a"), lineOf(ack("c", "line\nbreak"))];
  expect(readLog(lines.join("\n"))).toEqual([ack("b"), ack("c", "line\nbreak")]);
});

test("an open one never replaces one with its text", () => {
  const open = { ...ack("a", ""), isOpen: true } as const;
  expect(readLog([lineOf(open), lineOf(ack("a", "text"))].join("\n"))).toEqual([ack("a", "text")]);
  expect(readLog([lineOf(ack("a", "text")), lineOf(open)].join("\n"))).toEqual([ack("a", "text")]);
  expect(readLog(lineOf(open))).toEqual([open]);
});

test("a log that was cut at any byte holds every whole line, and no other", () => {
  const texts = fc.array(fc.string({ unit: "binary" }), { minLength: 1, maxLength: 5 });
  fc.assert(
    fc.property(texts, fc.nat(), (given, at) => {
      const acks = given.map((text, index) => ack(String(index), text));
      const whole = Buffer.from(acks.map((one) => `\n${lineOf(one)}\n`).join(""));
      const cut = whole.subarray(0, at % (whole.length + 1));
      const next = ack("after the cut");
      const held = readLog(Buffer.concat([cut, Buffer.from(`\n${lineOf(next)}\n`)]).toString("utf8"));
      const wholeLines = acks.filter(
        (_one, index) =>
          Buffer.from(
            acks
              .slice(0, index + 1)
              .map((one) => `\n${lineOf(one)}`)
              .join("\n"),
          ).length <= cut.length,
      );
      expect(held).toEqual([...wholeLines, next]);
    }),
  );
});

test.each([
  "",
  "null",
  "[]",
  '{"v":2,"add":{}}',
  '{"v":1,"add":{"adResponseId":"a"}}',
  "\0\0\0",
  '{"v":1,"add"',
])("a line %j that nobody wrote is skipped", (line) => {
  expect(readLog(`${lineOf(ack("a"))}\n${line}\n${lineOf(ack("b"))}`)).toEqual([ack("a"), ack("b")]);
});

const self = { ...thisProcess(), pid: process.pid };
const quiet = { silentMs: 1000, leaseMs: 30_000 };

test("the name of a log tells its owner", () => {
  expect(ownerOf(logName(self, "0f8fad5b-d9cb-469f-a165-70867728950e"))).toEqual(self);
  expect(ownerOf("notes.jsonl")).toBeUndefined();
});

test.each([
  ["this process", self, quiet, false],
  ["another thread, or an earlier process with the same id", { ...self, startedAtMs: 1 }, quiet, false],
  ["one of them that is silent", { ...self, startedAtMs: 1 }, { ...quiet, silentMs: 30_001 }, true],
  ["a living process of this host", { ...self, pid: process.ppid }, quiet, false],
  ["a process id that is free", { ...self, pid: 4_194_305 }, quiet, true],
  ["another host", { ...self, host: "000000000000", pid: 4_194_305 }, quiet, false],
  ["another host that is silent", { ...self, host: "000000000000" }, { ...quiet, silentMs: 30_001 }, true],
])("%s counts as gone only if it is", (_name, owner, times, wanted) => {
  expect(isGone(owner, self, times)).toBe(wanted);
});
