/** Asks the registry for advisories about the packages of the lock file. */
import { z } from "zod";
import { runPnpm } from "./run-pnpm.ts";

/** Not every registry serves advisories, and a machine may have no network: then nothing is known. */
export type Audit =
  | { readonly kind: "clean"; readonly packages: number }
  | { readonly kind: "found"; readonly advisories: readonly string[] }
  | { readonly kind: "unknown"; readonly why: string };

const reportSchema = z.object({
  advisories: z.record(
    z.string(),
    z.object({
      module_name: z.string(),
      severity: z.string(),
      title: z.string(),
      vulnerable_versions: z.string(),
      url: z.string(),
    }),
  ),
  metadata: z.object({ totalDependencies: z.number() }),
});

const WHY_LENGTH_MAX = 200;

/** Looks at severe advisories about packages that run in production. @param registry of another address than pnpm's own */
export async function auditPackages(registry?: string): Promise<Audit> {
  const address = registry === undefined ? [] : ["--registry", registry];
  const args = ["audit", "--prod", "--audit-level", "high", "--json", ...address];
  const { stdout, stderr } = await runPnpm(args, { pnpm_config_fetch_retries: "0" });
  const report = reportSchema.safeParse(parseJson(stdout)).data;
  if (report === undefined) {
    return { kind: "unknown", why: toOneLine(stderr) };
  }
  const advisories = Object.values(report.advisories).map(
    ({ module_name, severity, title, vulnerable_versions, url }) =>
      `${severity}: ${module_name} ${vulnerable_versions}: ${title} (${url})`,
  );
  return advisories.length === 0
    ? { kind: "clean", packages: report.metadata.totalDependencies }
    : { kind: "found", advisories };
}

/** The result for people. */
export function describeAudit(audit: Audit): string {
  switch (audit.kind) {
    case "clean":
      return `no severe advisory is known about the ${audit.packages} packages`;
    case "found":
      return `severe advisories:\n${audit.advisories.join("\n")}`;
    case "unknown":
      return `advisories can't be had from the registry: ${audit.why}`;
    default:
      return audit satisfies never;
  }
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

/** pnpm draws boxes and breaks lines. */
function toOneLine(text: string): string {
  return text
    .replace(/[│×├╰─▶\s]+/g, " ")
    .trim()
    .slice(0, WHY_LENGTH_MAX);
}
