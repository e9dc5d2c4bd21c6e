import type { FieldFault } from "@adrelay/contract";

/** How many names or faults a log line lists at most. It counts all of them. */
const LISTED_MAX = 50;

/** What a log line lists of many. */
export function listedOf<Item>(items: readonly Item[]): readonly Item[] {
  return items.slice(0, LISTED_MAX);
}

/** Fields of a log line for lists of any length: of each list its begin, and its length as `…_count`. */
export function listFields(lists: Readonly<Record<string, readonly unknown[]>>): Record<string, unknown> {
  const fields = Object.entries(lists).flatMap(([name, items]) => [
    [name, listedOf(items)] as const,
    [`${name}_count`, items.length] as const,
  ]);
  return Object.fromEntries(fields);
}

/** A fault as log lines show it. */
export function describeFault({ path, message }: FieldFault): string {
  return `${path}: ${message}`;
}

/** Fields of a log line about a faulty file. */
export function faultFields<Fault>(faults: readonly Fault[], describe: (fault: Fault) => unknown) {
  return { fault_count: faults.length, faults: listedOf(faults).map(describe) };
}
