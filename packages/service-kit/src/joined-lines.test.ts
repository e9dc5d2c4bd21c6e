import { expect, onTestFinished, test } from "vitest";
import { joinLines } from "./joined-lines.ts";
import { createLogger } from "./logger.ts";

function setup() {
  const writes: string[] = [];
  const lines = joinLines({ write: (text) => writes.push(text) });
  const before = process.listeners("exit");
  const exits = () => process.listeners("exit").filter((listener) => !before.includes(listener));
  onTestFinished(() => {
    for (const listener of exits()) {
      process.off("exit", listener);
    }
  });
  const exit = () => {
    for (const listener of exits()) {
      listener(0);
    }
  };
  return { writes, lines, log: createLogger("test", "info", lines), exit };
}

const nextTurn = () => new Promise((resolve) => setImmediate(resolve));

test("the lines of one turn go out in one write, in order", async () => {
  const { writes, log } = setup();
  log.info({ event: "a" });
  log.info({ event: "b" });
  expect(writes).toEqual([]);
  await nextTurn();
  expect(writes).toHaveLength(1);
  expect(writes[0]).toMatch(/^[^\n]*"event":"a"}\n[^\n]*"event":"b"}\n$/);
  log.info({ event: "c" });
  await nextTurn();
  expect(writes).toHaveLength(2);
});

test("a warning takes with it what was logged before", () => {
  const { writes, log } = setup();
  log.info({ event: "a" });
  log.warn({ event: "b" });
  expect(writes.join("")).toMatch(/"event":"a".*\n.*"event":"b"/);
});

test("the end of the process and a flush leave no line behind", () => {
  const { writes, lines, log, exit } = setup();
  log.info({ event: "a" });
  exit();
  log.info({ event: "b" });
  let isFlushed = false;
  lines.flush(() => {
    isFlushed = true;
  });
  expect(isFlushed).toBe(true);
  expect(writes.map((text) => JSON.parse(text).event)).toEqual(["a", "b"]);
});
