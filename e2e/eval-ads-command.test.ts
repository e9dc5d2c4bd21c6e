/** `npm run eval:ads` as npm calls it, with usable and faulty arguments. */
import { spawn, spawnSync } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterAll, expect, test } from "vitest";

const SCRIPT = fileURLToPath(new URL("../scripts/eval-ads.ts", import.meta.url));
const folder = mkdtempSync(join(tmpdir(), "adrelay-eval-"));
afterAll(() => rmSync(folder, { recursive: true }));

/** Runs it as npm does when it is called in `folder`: INIT_CWD names that folder. */
function evaluate(...args: string[]) {
  const { status, stdout, stderr } = spawnSync(process.execPath, [SCRIPT, ...args], {
    env: { ...process.env, INIT_CWD: folder },
    encoding: "utf8",
  });
  return { status, stdout, stderr };
}

test("a file's path is relative to the folder where npm was called", () => {
  writeFileSync(
    join(folder, "sound.jsonl"),
    '{"id":"a","prompt":"hello","language":"en","expect":"no_fill","categories":[]}\n',
  );
  expect(evaluate("sound.jsonl")).toMatchObject({
    status: 0,
    stdout: expect.stringContaining("English: 1 prompts"),
  });
});

test("it ends without an error when the reader of its output closes", async () => {
  const child = spawn(process.execPath, [SCRIPT], { stdio: ["ignore", "pipe", "pipe"] });
  let errors = "";
  child.stderr.setEncoding("utf8").on("data", (text: string) => {
    errors += text;
  });
  child.stdout.once("data", () => child.stdout.destroy());
  const status = await new Promise((resolve) => child.once("exit", resolve));
  expect({ status, errors }).toEqual({ status: 0, errors: "" });
});

test("a faulty file is reported with name and line before the evaluation begins", () => {
  writeFileSync(join(folder, "faulty.jsonl"), "{}\n");
  const { status, stdout, stderr } = evaluate("sound.jsonl", "faulty.jsonl");
  expect({ status, stdout }).toEqual({ status: 2, stdout: "" });
  expect(stderr).toMatch(/^faulty\.jsonl: line 1: id: .*; prompt: [^\n]*\n$/);
});

test.each([
  [["none.jsonl"], /^none\.jsonl: ENOENT/],
  [["."], /^\.: EISDIR/],
  [["--folds", "2", "sound.jsonl"], /^--folds judges the training prompts and accepts no FILE\n/],
  [["--folds", "1"], /^--folds must be/],
])("the arguments %j end with 2 and a reason", (args, message) => {
  expect(evaluate(...args)).toMatchObject({ status: 2, stderr: expect.stringMatching(message) });
});
