/** Each example as its reader runs it: what it prints is what is acknowledged, once, also if it is stopped half-way. */
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { readdirSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { eventually, TEST_API_KEY } from "@adrelay/testkit";
import { afterAll, beforeAll, expect, test } from "vitest";
import { type ProxyStack, startProxyStack } from "../../e2e/model-proxy/proxy-stack.ts";
import { providePython } from "../../e2e/quick-start/python.ts";

const EXAMPLES = fileURLToPath(new URL("../", import.meta.url));
const LOOP = "Say so first, then use the tool: which running shoes should I buy?";
const PROGRAMS = readdirSync(EXAMPLES, { recursive: true, encoding: "utf8" })
  .filter((path) => /(streamed|whole)\.(ts|py)$/.test(path))
  .toSorted();
/** Python's packages, or why they aren't here. */
const python = await providePython(`${EXAMPLES}openai-python/requirements.txt`);

let stack: ProxyStack;

beforeAll(async () => {
  // An answer takes two seconds, so that there is a middle to stop it in.
  stack = await startProxyStack({ proxies: 1, modelDelayMs: 20 });
});
afterAll(() => stack.stop());

interface RunningExample {
  readonly process: ChildProcess;
  readonly output: { stdout: string; stderr: string };
  readonly ended: Promise<unknown>;
}

function start(program: string, question: string): RunningExample {
  const isPython = program.endsWith(".py");
  const [command, ...flags] = isPython ? ["python3"] : [process.execPath];
  const child = spawn(String(command), [...flags, EXAMPLES + program, question], {
    env: {
      PATH: process.env["PATH"],
      PROXY_URL: stack.proxyUrls[0],
      RELAY_KEY: TEST_API_KEY,
      MODEL_KEY: "any",
      ...(python.kind === "here" ? { PYTHONPATH: python.packages } : {}),
    },
    stdio: ["ignore", "pipe", "pipe"],
  });
  const output = { stdout: "", stderr: "" };
  child.stdout.setEncoding("utf8").on("data", (text: string) => {
    output.stdout += text;
  });
  child.stderr.setEncoding("utf8").on("data", (text: string) => {
    output.stderr += text;
  });
  return { process: child, output, ended: once(child, "close") };
}

async function run(...words: Parameters<typeof start>): Promise<string> {
  const { output, ended } = start(...words);
  expect(await ended, output.stderr).toEqual([0, null]);
  return output.stdout;
}

/** Steps stand one behind another in an example's output, and a blank line apart in an acknowledgment. */
const squeezed = (text: string) => text.replaceAll(/\s+/g, "");

/** The one ad that was sold since. */
function onlyAdSince(count: number): string {
  expect(stack.adIds).toHaveLength(count + 1);
  return String(stack.adIds.at(-1));
}

const isHere = (program: string) => python.kind === "here" || !program.endsWith(".py");
const HERE = PROGRAMS.filter(isHere);
const STREAMED = HERE.filter((program) => program.includes("streamed"));

test("there are examples of five clients, streamed and whole, and one in Python", () => {
  expect(PROGRAMS).toHaveLength(11);
});

test.skipIf(python.kind === "here")("an example in Python needs Python 3.10 and its packages", () => {
  expect(python.kind).toBe("not_here");
});

/** On a machine that stands still for longer than a booking may take, an example has no ad. */
const ONCE_MORE = { retry: 1 };

test.each(HERE)("%s prints the text that is acknowledged", ONCE_MORE, async (program) => {
  const before = stack.adIds.length;
  const printed = await run(program, LOOP);
  const text = await stack.acknowledgedText(onlyAdSince(before));
  expect(text).toMatch(/^Let me look that up\.\n\nStart with .*Velmora \d+.* the simpler one\.$/s);
  expect(squeezed(printed)).toBe(squeezed(text));
});

test.each(STREAMED)(
  "%s, stopped half-way, is acknowledged with what it had been sent",
  ONCE_MORE,
  async (program) => {
    const before = stack.adIds.length;
    const { process: example, output, ended } = start(program, "Which running shoes should I buy?");
    await eventually(() => expect(output.stdout).toMatch(/\w+ \w+ \w+/));
    example.kill("SIGINT");
    await ended;
    const text = await stack.acknowledgedText(onlyAdSince(before));
    expect(text.startsWith(output.stdout.trimEnd())).toBe(true);
    expect(text).not.toContain("the simpler one.");
  },
);
