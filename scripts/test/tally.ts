/** How many checks came to what. */
export interface Tally {
  readonly passed: number;
  readonly failed: number;
  readonly skipped: number;
}

export const NOTHING: Tally = { passed: 0, failed: 0, skipped: 0 };

export function addTallies(one: Tally, other: Tally): Tally {
  return {
    passed: one.passed + other.passed,
    failed: one.failed + other.failed,
    skipped: one.skipped + other.skipped,
  };
}

/** The form that the run's last line has. */
export function formatTally({ passed, failed, skipped }: Tally): string {
  const counts = `${passed} passed, ${failed} failed`;
  return skipped === 0 ? counts : `${counts}, ${skipped} skipped`;
}
