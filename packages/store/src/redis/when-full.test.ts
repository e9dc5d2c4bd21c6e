/** Guards that a full Redis drains: a script that is added later must not need memory for what it ends or moves. */
import { readdirSync, readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { expect, test } from "vitest";

const SOURCES = fileURLToPath(new URL("../", import.meta.url));
const TAKE_SOMETHING_NEW = ["intake/accept", "intake/record-injection", "journal/open"];
/** They write nothing, so they also run on a replica. */
const READ_ONLY = [
  "dead-letters/latest-bulk",
  "dead-letters/list-entries",
  "erasure/find-session",
  "heartbeat/list-processes",
  "intake/stored-total",
  "maintenance/queued-batch",
  "metrics/publisher-counts",
  "metrics/snapshot",
];
/** It tries each command, and takes any answer but a missing right. */
const TRIALS = ["redis/rights"];

const files = readdirSync(SOURCES, { recursive: true, encoding: "utf8" });
const read = (file: string) => readFileSync(SOURCES + file, "utf8");
const code = files.filter((file) => file.endsWith(".ts") && !file.endsWith(".test.ts")).map(read);

/** Parts that are loaded by their name, to be put into BullMQ's scripts. */
const PARTS = new Set(["redis/when-full", "bullmq/leave-payload"]);

/** Whether a script is run by its name. The others are parts of these. */
function isRun(name: string): boolean {
  return !PARTS.has(name) && code.some((text) => text.includes(`"${name}"`));
}

test("every script runs on a full Redis, but for those that take something new or write nothing", () => {
  const scripts = files
    .filter((file) => file.endsWith(".lua"))
    .map((file) => file.slice(0, -".lua".length))
    .filter(isRun);
  const needMemory = scripts.filter((name) => !read(`${name}.lua`).includes("-- @include redis/when-full"));
  expect(needMemory.sort()).toEqual([...TAKE_SOMETHING_NEW, ...READ_ONLY, ...TRIALS].sort());
});

test("scripts that count as read-only have no write of their own", () => {
  const write =
    /redis\.p?call\('(?:H?SET|HSETNX|HDEL|HINCRBY|Z(?:ADD|REM|POPMIN)|DEL|S(?:ADD|REM)|PEXPIRE|XADD|LTRIM)'/;
  expect(READ_ONLY.filter((name) => write.test(read(`${name}.lua`)))).toEqual([]);
});
