/**
 * Parts of queries. Metrics of the ledger are the same on every replica, so queries take their `max`; metrics of a process
 * are summed. A query without data returns zero, so that no panel looks broken before anything has happened. But while
 * nobody can read the ledger, nobody knows its numbers: then its queries return nothing.
 */

/** A sum of processes' metrics, or 0 if there is nothing to sum. */
export const orZero = (expr: string): string => `${expr} or vector(0)`;

/** Several values of processes by their labels, or one 0 if there are none. */
export const orOneZero = (expr: string): string => `${expr} or on() vector(0)`;

/** 0 while a process can read the ledger, otherwise nothing: this metric is there from the first scrape on. */
const LEDGER_ZERO = "0 * max(adrelay_oldest_queued_age_seconds)";

/** A sum of the ledger's metrics; 0 if there is nothing to sum. */
export const ledgerOrZero = (expr: string): string => `${expr} or ${LEDGER_ZERO}`;

/** Several values of the ledger by their labels; one 0 if there are none. */
export const ledgerOrOneZero = (expr: string): string => `${expr} or on() ${LEDGER_ZERO}`;

/** The growth of a ledger's counter per minute, summed over all publishers and labels. */
export function ledgerPerMinute(metric: string, selector = ""): string {
  return ledgerOrZero(
    `sum(60 * max by (environment, publisher, dialect, outcome, status, reason) (rate(${metric}${selector}[$__rate_interval])))`,
  );
}

/** The same by some labels. `labels`: all that the counter has beside environment and publisher. */
export function ledgerPerMinuteBy(by: string, metric: string, labels: string): string {
  return ledgerOrOneZero(
    `sum by (${by}) (60 * max by (environment, publisher, ${labels}) (rate(${metric}[$__rate_interval])))`,
  );
}

/** The growth of a ledger's counter over the time range that is shown. */
export function ledgerIncrease(metric: string, selector = ""): string {
  return ledgerOrZero(
    `sum(max by (environment, publisher, dialect, outcome, status, reason) (increase(${metric}${selector}[$__range])))`,
  );
}

/** The rate of a processes' counter, summed by some labels. */
export function ratePerSecond(metric: string, by: string): string {
  return orOneZero(`sum by (${by}) (rate(${metric}[$__rate_interval]))`);
}

/** A quantile of a processes' histogram. */
export function quantile(share: number, histogram: string, { selector = "", by = "le" } = {}): string {
  return `histogram_quantile(${share}, sum by (${by}) (rate(${histogram}_bucket${selector}[$__rate_interval])))`;
}

/** A text, which is left as it is, or a metric and the beginning of its selector. */
const TEXTS_AND_METRICS = /"[^"]*"|\b((?:adrelay|nodejs|process)[_:][\w:]+|up)\b(\{)?/g;

/** The same query of the chosen environment only. */
export function inEnvironment(expr: string): string {
  return expr.replace(TEXTS_AND_METRICS, (found: string, metric?: string, brace?: string) =>
    metric === undefined ? found : `${metric}{environment=~"$environment"${brace === undefined ? "}" : ","}`,
  );
}
