/** A real Prometheus: found, started, queried and stopped. */
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { findTestPrometheus } from "@adrelay/dev-servers";
import { expect, onTestFinished, type TestContext, test } from "vitest";
import { describeMissing, findPrometheus, PrometheusClient, startPrometheus } from "../src/index.ts";

async function setup({ skip }: Pick<TestContext, "skip">, config: string) {
  const found = await findTestPrometheus();
  if (found.kind === "skip") {
    return skip(found.why);
  }
  const dir = mkdtempSync(join(tmpdir(), "adrelay-prometheus-"));
  onTestFinished(() => rmSync(dir, { recursive: true, force: true }));
  const configFile = join(dir, "prometheus.yml");
  writeFileSync(configFile, config);
  return { program: found.programs.prometheus, dir, configFile };
}

test("a missing Prometheus is reported with what to install", async () => {
  const found = await findPrometheus({
    log: () => {},
    env: { PATH: "/nowhere", ADRELAY_PROMETHEUS: "path" },
  });
  if (found.kind === "found") {
    throw new TypeError("it was found in a folder that does not exist");
  }
  expect(found.couldBe).toBe(false);
  expect(describeMissing(found)).toMatch(/not both on PATH\n.*apt-get install prometheus/s);
});

test("it answers queries, explains faulty ones, and is gone after a stop", async (context) => {
  const prometheus = await startPrometheus(await setup(context, "global: { scrape_interval: 1s }\n"));
  const client = new PrometheusClient(prometheus.url);
  expect(await client.query("vector(2) * 3")).toEqual({ kind: "ok", samples: [{ labels: {}, value: 6 }] });
  expect(await client.query("1 / 0")).toEqual({ kind: "ok", samples: [{ labels: {}, value: Infinity }] });
  expect(await client.query("absent(nothing)")).toMatchObject({ samples: [{ value: 1 }] });
  expect(await client.query("sum(")).toEqual({ kind: "failed", why: expect.stringContaining("parse error") });
  await prometheus.stop();
  await prometheus.stop();
  await expect(client.query("1")).rejects.toThrow();
});

test("a faulty configuration fails the start with Prometheus' own message", async (context) => {
  const options = await setup(context, "scrape_confixx: []\n");
  await expect(startPrometheus(options)).rejects.toThrow("scrape_confixx");
});
