/** The client's promise under kills and an outage. `npm run soak:client` is the long run of the same. */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { runSoak } from "./soak-client/index.ts";

const KILLS = 2;
/** So many answers a backend streams at a time. A kill can't touch more. */
const LANES = 32;
/** 195 to 237 MiB were measured, in a run of 10,000 ads as well. */
const RSS_BYTES_MAX = 384 * 1024 * 1024;

test("through kills of the backend and an outage of the relay each ad is acknowledged once", async () => {
  const folder = mkdtempSync(join(tmpdir(), "adrelay-soak-"));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  const result = await runSoak({ ads: 400, downMs: 2000, kills: KILLS, seed: "1", folder, say: () => {} });
  expect(result).toMatchObject({ kills: KILLS, lost: [], doubled: [], changed: [], faults: [], files: [] });
  expect(result.ads).toBeGreaterThanOrEqual(400);
  expect(result.rssBytesMax).toBeGreaterThan(0);
  expect(result.rssBytesMax).toBeLessThan(RSS_BYTES_MAX);
  expect(result.emptied).toBeLessThanOrEqual(KILLS * LANES);
  expect(result.unseen).toBeLessThanOrEqual((KILLS + 1) * LANES);
});
