import { expect, onTestFinished, test } from "vitest";
import { createLogger, joinLines } from "./logger.ts";

function logged(fields: object): string {
  let text = "";
  createLogger("test", "info", {
    write: (line) => {
      text += line;
    },
  }).info(fields);
  return text;
}

test("a driver's error is written without the command that it carries", () => {
  const error = Object.assign(new TypeError("OOM", { cause: new RangeError("inner") }), {
    code: "E_OOM",
    command: { name: "evalsha", args: ["canary-text"] },
  });
  const line = logged({ event: "x", err: error });
  expect(line).not.toContain("canary-text");
  expect(JSON.parse(line)).toMatchObject({
    event: "x",
    err: {
      type: "TypeError",
      message: "OOM",
      code: "E_OOM",
      cause: { type: "RangeError", message: "inner" },
    },
  });
});

test.each(["prompt", "llm_response", "user_ip", "body", "apiKey", "authorization", "headers"])(
  "a member called %s is left out of lines, also one level below the top",
  (name) => {
    expect(logged({ event: "x", [name]: "canary", inner: { [name]: "canary" } })).not.toContain("canary");
  },
);

test("a line keeps all members that are not secret, in order", () => {
  const at = new Date(0);
  const fields = {
    event: "x",
    n: 1,
    none: undefined,
    list: [{ a: 1 }],
    at,
    inner: { b: 2, token: "canary" },
  };
  const { level, time: _time, service: _service, ...rest } = JSON.parse(logged(fields));
  expect(rest).toEqual({ event: "x", n: 1, list: [{ a: 1 }], at: at.toISOString(), inner: { b: 2 } });
  expect(fields.inner.token).toBe("canary");
  expect(level).toBe("info");
});

test("a line's time is the current time, to the millisecond", () => {
  const beforeMs = Date.now();
  const { time } = JSON.parse(logged({ event: "x" }));
  expect(time).toMatch(/^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}\.\d{3}Z$/);
  expect(Date.parse(time)).toBeGreaterThanOrEqual(beforeMs);
  expect(Date.parse(time)).toBeLessThanOrEqual(Date.now());
});

function setupJoinedLines() {
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

test("the lines of one turn are written together, in order", async () => {
  const { writes, log } = setupJoinedLines();
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

test("a warning is written immediately, with the lines before it", () => {
  const { writes, log } = setupJoinedLines();
  log.info({ event: "a" });
  log.warn({ event: "b" });
  expect(writes.join("")).toMatch(/"event":"a".*\n.*"event":"b"/);
});

test("the end of the process and a flush write all lines", () => {
  const { writes, lines, log, exit } = setupJoinedLines();
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
