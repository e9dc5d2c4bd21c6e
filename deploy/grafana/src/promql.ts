/**
 * Parts of queries. Metrics of the ledger are the same on every replica and are taken by `max`, those of a process
 * are summed. What is empty as long as nothing has happened is a zero, so that no panel looks broken.
 */

/** A sum, or 0 if there is nothing to sum. */
export const orZero = (expr: string): string => `${expr} or vector(0)`;

/** Several values by their labels, or one 0 if there are none. */
export const orOneZero = (expr: string): string => `${expr} or on() vector(0)`;

/** How much a counter of the ledger grew a minute, over all publishers and labels. */
export function ledgerPerMinute(metric: string, selector = ""): string {
  return orZero(`sum(60 * max without (instance, job) (rate(${metric}${selector}[$__rate_interval])))`);
}

/** How much a counter of the ledger grew over the time that is shown. */
export function ledgerIncrease(metric: string, selector = ""): string {
  return orZero(`sum(max without (instance, job) (increase(${metric}${selector}[$__range])))`);
}

/** Rate of a counter of the processes, all summed by some labels. */
export function ratePerSecond(metric: string, by: string): string {
  return orOneZero(`sum by (${by}) (rate(${metric}[$__rate_interval]))`);
}

/** A quantile of a histogram of the processes. */
export function quantile(share: number, histogram: string, { selector = "", by = "le" } = {}): string {
  return `histogram_quantile(${share}, sum by (${by}) (rate(${histogram}_bucket${selector}[$__rate_interval])))`;
}
