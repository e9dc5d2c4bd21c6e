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
