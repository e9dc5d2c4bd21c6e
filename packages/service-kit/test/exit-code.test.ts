/** With which code a process ends if something happens while it stops. */
import { spawnSync } from "node:child_process";
import { expect, test } from "vitest";

const moduleOf = (name: string) => JSON.stringify(new URL(`../src/${name}.ts`, import.meta.url).href);

/** A service that stops at once, and in which something happens in one phase of its stop. It names the drain if there is one. */
const programOf = (phase: string, event: string) => `
  const { once } = await import("node:events");
  const { startService } = await import(${moduleOf("service")});
  const { Lifecycle } = await import(${moduleOf("lifecycle")});
  const { createLogger } = await import(${moduleOf("logger")});
  const log = createLogger("test", "info");
  const lifecycle = new Lifecycle(log);
  const enter = (phase) => {
    if (phase === ${JSON.stringify(phase)}) {
      setImmediate(() => { ${event} });
    }
  };
  const compose = async () => {
    process.once("SIGTERM", () => enter("delay"));
    lifecycle.onStop("a part", () => {
      enter("stop");
      return new Promise((resolve) => setTimeout(resolve, 50));
    });
    const drain = async (signal) => {
      process.stderr.write("drain");
      enter("drain");
      await (${JSON.stringify(phase)} === "drain" ? once(signal, "abort") : undefined);
    };
    const shutdownDelayMs = ${phase === "delay" ? 60_000 : 0};
    return { log, lifecycle, drain, shutdownDelayMs, shutdownTimeoutMs: 5000, listening: {} };
  };
  await startService({ name: "test", loaded: { kind: "ok", config: {} }, misspelt: [], compose });
  process.kill(process.pid, "SIGTERM");
`;

const BUG = 'throw new Error("a bug")';
const REJECTION = 'Promise.reject(new Error("a bug"))';
const SIGNAL = 'process.kill(process.pid, "SIGINT")';

test.each([
  ["an uncaught error", "delay", BUG, { status: 1, stderr: "" }],
  ["an uncaught error", "drain", BUG, { status: 1, stderr: "drain" }],
  ["an uncaught error", "stop", BUG, { status: 1, stderr: "drain" }],
  ["a rejection that nobody handles", "stop", REJECTION, { status: 1, stderr: "drain" }],
  ["a second signal", "delay", SIGNAL, { status: 0, stderr: "drain" }],
  ["a second signal", "drain", SIGNAL, { status: 0, stderr: "drain" }],
])("after %s during the %s a process ends as it should", (_name, phase, event, expected) => {
  const { status, stderr } = spawnSync(
    process.execPath,
    ["--input-type=module", "--eval", programOf(phase, event)],
    { stdio: ["ignore", "ignore", "pipe"], encoding: "utf8", timeout: 30_000 },
  );
  expect({ status, stderr }).toEqual(expected);
});
