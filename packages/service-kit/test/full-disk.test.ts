import { spawnSync } from "node:child_process";
import { closeSync, existsSync, openSync } from "node:fs";
import { expect, test } from "vitest";

const LOGGER = new URL("../src/logger.ts", import.meta.url).href;

/** Logs lines of two levels in two turns, and then ends. */
const PROGRAM = `
  const { createLogger } = await import(${JSON.stringify(LOGGER)});
  const log = createLogger("test", "info");
  log.info({ event: "first" });
  log.warn({ event: "second" });
  await new Promise((resolve) => setImmediate(resolve));
  log.warn({ event: "third" });
  log.flush(() => process.stderr.write("alive"));
`;

// Each write to this device fails as on a full disk.
test.skipIf(!existsSync("/dev/full"))("a full disk under the log doesn't end the process", () => {
  const full = openSync("/dev/full", "w");
  const { status, stderr } = spawnSync(process.execPath, ["--input-type=module", "--eval", PROGRAM], {
    stdio: ["ignore", full, "pipe"],
    encoding: "utf8",
  });
  closeSync(full);
  expect({ status, stderr }).toEqual({
    status: 0,
    stderr: "the log can't be written: ENOSPC: no space left on device, write\nalive",
  });
});
