import { expect, test } from "vitest";
import { runCommand } from "./programs.ts";

const run = (program: string, args: string[], timeoutMs = 10_000) => runCommand(program, args, { timeoutMs });
const node = (script: string, timeoutMs?: number) => run(process.execPath, ["-e", script], timeoutMs);

test("a program that succeeds returns its output", async () => {
  expect(await node("console.log('fine')")).toEqual({ kind: "ok", stdout: "fine\n" });
});

test("a failure is reported with the program's last line", async () => {
  expect(await node("console.error('first'); console.error('no space left'); process.exit(3)")).toEqual({
    kind: "failed",
    why: "no space left",
  });
});

test("a silent failure is reported with the exit code", async () => {
  expect(await node("process.exit(3)")).toMatchObject({ why: expect.stringContaining("ended with 3") });
});

test.each(["no-such-program", `${process.execPath}/below-a-file`])(
  "%s is a failure, not a throw",
  async (name) => {
    expect(await run(name, [])).toMatchObject({ kind: "failed" });
  },
);

test("a program that takes too long is killed, and the reason says so", async () => {
  expect(await node("setInterval(() => {}, 1000)", 300)).toMatchObject({
    why: expect.stringContaining("took longer than 0.3 s"),
  });
});
