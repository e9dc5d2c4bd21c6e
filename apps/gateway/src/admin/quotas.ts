/** What operators are shown of Redis' memory, and of the quotas of it. */
import type { QuotaView, Stats } from "@adrelay/contract";
import { type IntakeRules, type LabelledCount, STORED_QUOTAS, type Store } from "@adrelay/store";
import type { QuotaRefusals } from "../publisher-metrics.ts";

/** Null if Redis doesn't say. */
export function viewOfStorage({
  memory,
  accepts,
}: Pick<Store["room"], "memory" | "accepts">): Stats["storage"] {
  return memory === undefined
    ? null
    : { used_bytes: memory.usedBytes, limit_bytes: memory.limitBytes, accepts };
}

/** The quotas that are used, or that refused something since this gateway's start. */
export function viewOfQuotas(
  used: readonly LabelledCount[],
  refusals: readonly QuotaRefusals[],
  rulesOf: (publisher: string) => Pick<IntakeRules, "limits">,
): QuotaView[] {
  const publishers = new Set(
    [...used, ...refusals.filter(({ count }) => count > 0)].map((row) => row.publisher),
  );
  return [...publishers].flatMap((publisher) => {
    const { limits } = rulesOf(publisher);
    return STORED_QUOTAS.map((quota) => {
      const isIt = (row: { publisher: string }, of: string) => row.publisher === publisher && of === quota;
      const limit = limits[quota];
      return {
        publisher,
        quota,
        used_bytes: used.find((row) => isIt(row, row.label))?.value ?? 0,
        limit_bytes: Number.isFinite(limit) ? limit : null,
        refused: refusals.find((row) => isIt(row, row.quota))?.count ?? 0,
      };
    }).filter(({ used_bytes, refused }) => used_bytes > 0 || refused > 0);
  });
}
