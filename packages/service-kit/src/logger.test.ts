import { expect, test } from "vitest";
import { createLogger } from "./logger.ts";

function logged(fields: object): string {
  let text = "";
  createLogger("test", "info", {
    write: (line) => {
      text += line;
    },
  }).info(fields);
  return text;
}

test("a driver's error is told without the command that it carries", () => {
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
  "a member called %s is left out of lines, also one level down",
  (name) => {
    expect(logged({ event: "x", [name]: "canary", inner: { [name]: "canary" } })).not.toContain("canary");
  },
);

test("a line keeps all that is no secret, in order", () => {
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

test("a line's time is the present, to the millisecond", () => {
  const beforeMs = Date.now();
  const { time } = JSON.parse(logged({ event: "x" }));
  expect(time).toMatch(/^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}\.\d{3}Z$/);
  expect(Date.parse(time)).toBeGreaterThanOrEqual(beforeMs);
  expect(Date.parse(time)).toBeLessThanOrEqual(Date.now());
});
