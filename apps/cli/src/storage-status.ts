/** How full Redis is, and how much of it publishers use, for `adrelay status`. */
import type { Stats } from "@adrelay/contract";
import { describeBytes } from "./terminal.ts";

const ACCEPTED_AT = {
  all: "",
  known: ": acknowledgments of unknown ids get 503",
  none: ": acknowledgments get 503",
} as const satisfies Record<NonNullable<Stats["storage"]>["accepts"], string>;

/** Nothing if Redis doesn't say how much it has. */
export function storageFacts({ storage }: Stats): Record<string, string> {
  if (storage === null || storage.limit_bytes === 0) {
    return {};
  }
  const { used_bytes, limit_bytes, accepts } = storage;
  return { "redis memory": `${usedOf(used_bytes, limit_bytes)}${ACCEPTED_AT[accepts]}` };
}

function usedOf(usedBytes: number, limitBytes: number): string {
  const percent = limitBytes === 0 ? 100 : Math.round((100 * usedBytes) / limitBytes);
  return `${describeBytes(usedBytes)} of ${describeBytes(limitBytes)} (${percent} %)`;
}

/** From this share on, a publisher's use of a quota is shown. */
const QUOTA_SHOWN_SHARE = 0.5;

/** A row for each quota that is used to a large part, or that has refused something. */
export function quotaRows({ quotas }: Stats): (string | number)[][] {
  return quotas.flatMap(({ publisher, quota, used_bytes, limit_bytes, refused }) => {
    if (used_bytes === null) {
      return [[publisher, quota, "-", refused]];
    }
    const isShown = refused > 0 || (limit_bytes !== null && used_bytes >= QUOTA_SHOWN_SHARE * limit_bytes);
    const used = limit_bytes === null ? describeBytes(used_bytes) : usedOf(used_bytes, limit_bytes);
    return isShown ? [[publisher, quota, used, refused]] : [];
  });
}
