import type { Check } from "./checks/check.ts";

const SHOWN_MAX = 10;

/** The table of what was checked, then what broke. */
export function formatChecks(checks: readonly Check[]): string {
  const width = Math.max(...checks.map(({ name }) => name.length));
  const rows = checks.map(({ name, looked, broken }) =>
    [
      broken.length === 0 ? "held  " : "BROKEN",
      name.padEnd(width),
      String(looked).padStart(8),
      broken.length || "",
    ]
      .join("  ")
      .trimEnd(),
  );
  const broken = checks
    .filter((check) => check.broken.length > 0)
    .map((check) => {
      const shown = check.broken.slice(0, SHOWN_MAX).map((line) => `  - ${line}`);
      const more = check.broken.length - shown.length;
      return [`${check.name}:`, ...shown, ...(more > 0 ? [`  - and ${more} more`] : [])].join("\n");
    });
  return [...rows, ...broken.map((text) => `\n${text}`)].join("\n");
}

export const hasHeld = (checks: readonly Check[]) => checks.every(({ broken }) => broken.length === 0);
