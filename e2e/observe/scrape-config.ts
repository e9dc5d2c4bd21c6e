import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { parse as parseYaml, stringify } from "yaml";
import { z } from "zod";

const PROMETHEUS = fileURLToPath(new URL("../../deploy/prometheus/", import.meta.url));
const configSchema = z.looseObject({
  global: z.looseObject({}),
  rule_files: z.array(z.string()),
  scrape_configs: z.array(z.looseObject({ job_name: z.string() })),
});

/**
 * Writes the shipped prometheus.yml with these addresses, and with one second between scrapes instead of 15. Jobs
 * without an address are left out. Returns the file's path.
 */
export function writeScrapeConfig(folder: string, opsUrls: Readonly<Record<string, string>>): string {
  const config = configSchema.parse(parseYaml(readFileSync(join(PROMETHEUS, "prometheus.yml"), "utf8")));
  const path = join(folder, "prometheus.yml");
  const scrapes = config.scrape_configs.flatMap((job) => {
    const url = opsUrls[job.job_name];
    return url === undefined ? [] : [{ ...job, static_configs: [{ targets: [new URL(url).host] }] }];
  });
  writeFileSync(
    path,
    stringify({
      ...config,
      global: { ...config.global, scrape_interval: "1s", evaluation_interval: "1s" },
      rule_files: config.rule_files.map((file) => join(PROMETHEUS, file)),
      scrape_configs: scrapes,
    }),
  );
  return path;
}
