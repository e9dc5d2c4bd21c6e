/** `npm run eval:ads` with what it can't use. */
import { spawn, spawnSync } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterAll, expect, test } from "vitest";

const SCRIPT = fileURLToPath(new URL("../scripts/eval-ads.ts", import.meta.url));
const folder = mkdtempSync(join(tmpdir(), "adrelay-eval-"));
afterAll(() => rmSync(folder, { recursive: true }));

/** Calls it as npm does: in the repository, on behalf of somebody in `folder`. */
function evaluate(...args: string[]) {
  const { status, stdout, stderr } = spawnSync(process.execPath, [SCRIPT, ...args], {
    env: { ...process.env, INIT_CWD: folder },
    encoding: "utf8",
  });
  return { status, stdout, stderr };
}

test("a file is looked for in the folder where npm was called", () => {
  writeFileSync(
    join(folder, "sound.jsonl"),
    '{"id":"a","prompt":"hello","language":"en","expect":"no_fill","categories":[]}\n',
  );
  expect(evaluate("sound.jsonl")).toMatchObject({
    status: 0,
    stdout: expect.stringContaining("English: 1 prompts"),
  });
});

test("a reader that has seen enough ends it quietly", async () => {
  const child = spawn(process.execPath, [SCRIPT], { stdio: ["ignore", "pipe", "pipe"] });
  let complained = "";
  child.stderr.setEncoding("utf8").on("data", (text: string) => {
    complained += text;
  });
  child.stdout.once("data", () => child.stdout.destroy());
  const status = await new Promise((resolve) => child.once("exit", resolve));
  expect({ status, complained }).toEqual({ status: 0, complained: "" });
});

test("a faulty file is told with its name and line, before anything is judged", () => {
  writeFileSync(join(folder, "faulty.jsonl"), "{}\n");
  const { status, stdout, stderr } = evaluate("sound.jsonl", "faulty.jsonl");
  expect({ status, stdout }).toEqual({ status: 2, stdout: "" });
  expect(stderr).toMatch(/^faulty\.jsonl: line 1: id: .*; prompt: [^\n]*\n$/);
});

test.each([
  [["none.jsonl"], /^none\.jsonl: ENOENT/],
  [["."], /^\.: EISDIR/],
  [["--folds", "2", "sound.jsonl"], /^--folds judges the training prompts, and takes no FILE\n/],
  [["--folds", "1"], /^--folds must be/],
])("%j is refused", (args, message) => {
  expect(evaluate(...args)).toMatchObject({ status: 2, stderr: expect.stringMatching(message) });
});
