import { writeFileSync } from "node:fs";
import type { Bench } from "../bench.ts";
import type { Figure } from "./figure.ts";
import { formatMachine, type Machine } from "./machine.ts";
import { formatMarkdown, formatVerdict } from "./table.ts";

const RESULTS_FILE = new URL("../results.md", import.meta.url);

/** Writes bench/results.md anew. */
export function writeResults(
  { parts, rounds, roundMs }: Bench,
  machine: Machine,
  figures: readonly Figure[],
): void {
  const text = `# What the benchmark measured last

Written by \`npm run bench -- --write\`; [README.md](README.md) tells how it measures.

- Machine: ${formatMachine(machine)}
- Parts: ${parts.join(", ")}; ${rounds} rounds of ${roundMs / 1000} s each
- ${formatVerdict(figures)}

Medians of the rounds; a ratio is the median of the rounds' ratios. In brackets: the lowest and the highest of the rounds.

${formatMarkdown(figures)}
`;
  writeFileSync(RESULTS_FILE, text);
}
