import { writeFileSync } from "node:fs";
import { cpus, release, totalmem } from "node:os";
import { type Figure, holds, median, ratiosOf, spreadOf } from "./figures.ts";
import type { Bench } from "./rounds.ts";
import { startBenchRedis } from "./sides.ts";

const HEAD = ["what", "Adrelay", "against", "", "ratio", "promised", ""] as const;

/**
 * The table for a terminal. Each part has a block with its own column widths, headed by its name. The figures of a part
 * must be adjacent.
 */
export function formatTable(figures: readonly Figure[]): string {
  return [...Map.groupBy(figures, ({ part }) => part)]
    .map(([part, some]) => formatBlock([[part, ...HEAD.slice(1)], ...some.map(cellsOf)]))
    .join("\n\n");
}

/** The table for a Markdown file. */
export function formatMarkdown(figures: readonly Figure[]): string {
  const head = ["part", ...HEAD];
  const rows = [head, head.map(() => "---"), ...figures.map((figure) => [figure.part, ...cellsOf(figure)])];
  return rows.map((row) => `| ${row.join(" | ")} |`).join("\n");
}

/** How many of the measured promises hold. */
export function formatVerdict(figures: readonly Figure[]): string {
  const verdicts = figures.map(holds).filter((verdict) => verdict !== undefined);
  return `${verdicts.filter(Boolean).length} of ${verdicts.length} promises hold`;
}

function formatBlock(rows: readonly (readonly string[])[]): string {
  const widths = HEAD.map((_, column) => Math.max(...rows.map((row) => row[column]?.length ?? 0)));
  return rows
    .map((row) =>
      row
        .map((cell, at) => cell.padEnd(widths[at] ?? 0))
        .join("  ")
        .trimEnd(),
    )
    .join("\n");
}

/** The medians of the rounds, and the spread of the ratios and of a promised value. */
function cellsOf(figure: Figure): readonly string[] {
  const { what, unit, ours, against, promise } = figure;
  return [
    what,
    `${withUnit(median(ours), unit)}${promise?.of === "value" ? describeSpread(ours, digitsOf(median(ours))) : ""}`,
    against === undefined ? "" : withUnit(median(against.values), unit),
    against?.name ?? "",
    describeRatios(ratiosOf(figure)),
    describePromise(figure),
    verdictOf(figure),
  ];
}

function withUnit(value: number, unit: string): string {
  return `${value.toFixed(digitsOf(value))}${unit === "" || unit.startsWith("/") ? unit : ` ${unit}`}`;
}

function digitsOf(value: number): number {
  const size = Math.abs(value);
  return size >= 100 ? 0 : size >= 10 ? 1 : 2;
}

const RATIO_DIGITS = 2;

function describeRatios(ratios: readonly number[] = []): string {
  const middle = median(ratios);
  return Number.isNaN(middle) ? "" : `${middle.toFixed(RATIO_DIGITS)}${describeSpread(ratios, RATIO_DIGITS)}`;
}

/** Has as many digits as the median before it. */
function describeSpread(values: readonly number[], digits: number): string {
  const spread = spreadOf(values);
  return spread === undefined ? "" : ` (${spread.lowest.toFixed(digits)}–${spread.highest.toFixed(digits)})`;
}

function describePromise({ promise }: Figure): string {
  if (promise === undefined) {
    return "";
  }
  const sign = promise.bound.kind === "at_least" ? "≥" : "≤";
  return `${promise.of} ${sign} ${promise.bound.value}`;
}

function verdictOf(figure: Figure): string {
  const verdict = holds(figure);
  return verdict === undefined ? "" : verdict ? "holds" : "FAILS";
}

/** The machine that the figures were measured on. */
export interface Machine {
  readonly cpu: string;
  readonly cores: number;
  readonly memoryGb: number;
  readonly kernel: string;
  readonly node: string;
  readonly redis: string;
  readonly atIso: string;
}

const BYTES_PER_GB = 1e9;

export async function describeMachine(): Promise<Machine> {
  await using redis = await startBenchRedis();
  const [, version = "unknown"] = /^redis_version:(\S+)/m.exec(await redis.client.info("server")) ?? [];
  const all = cpus();
  return {
    cpu: all[0]?.model.trim() ?? "unknown",
    cores: all.length,
    memoryGb: Math.round(totalmem() / BYTES_PER_GB),
    kernel: release(),
    node: process.version,
    redis: version,
    atIso: new Date().toISOString(),
  };
}

export function formatMachine({ cpu, cores, memoryGb, kernel, node, redis, atIso }: Machine): string {
  return `${cpu}, ${cores} cores, ${memoryGb} GB, kernel ${kernel}, Node ${node}, Redis ${redis}, ${atIso}`;
}

const RESULTS_FILE = new URL("./results.md", import.meta.url);

/** Overwrites bench/results.md. */
export function writeResults(
  { parts, rounds, roundMs }: Bench,
  machine: Machine,
  figures: readonly Figure[],
): void {
  const text = `# What the benchmark measured last

Written by \`npm run bench -- --write\`; [README.md](README.md) describes how it measures.

- Machine: ${formatMachine(machine)}
- Parts: ${parts.join(", ")}; ${rounds} rounds of ${roundMs / 1000} s each
- ${formatVerdict(figures)}

Medians of the rounds; a ratio is the median of the rounds' ratios. In brackets: the lowest and the highest of the rounds.

${formatMarkdown(figures)}
`;
  writeFileSync(RESULTS_FILE, text);
}
