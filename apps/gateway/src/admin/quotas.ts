/** What operators are shown of Redis' memory, and of the quotas of it. */
import type { DoctorCheck, QuotaView, Stats } from "@adrelay/contract";
import type { QuotaRefusals } from "@adrelay/relay-kit";
import {
  type IntakeRules,
  type LabelledCount,
  type LedgerSnapshot,
  STORED_QUOTAS,
  type Store,
} from "@adrelay/store";
import { listNames } from "./known-publishers.ts";

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
  const met = refusals.filter(({ count }) => count > 0);
  const publishers = new Set([...used, ...met].map((row) => row.publisher));
  return [...publishers].flatMap((publisher) => {
    const { limits } = rulesOf(publisher);
    const refusedBy = new Map(
      met.filter((row) => row.publisher === publisher).map(({ quota, count }) => [quota, count]),
    );
    const stored = STORED_QUOTAS.map((quota) => {
      const isIt = (row: LabelledCount) => row.publisher === publisher && row.label === quota;
      const limit = limits[quota];
      return {
        publisher,
        quota,
        used_bytes: used.find(isIt)?.value ?? 0,
        limit_bytes: Number.isFinite(limit) ? limit : null,
        refused: refusedBy.get(quota) ?? 0,
      };
    }).filter(({ used_bytes, refused }) => used_bytes > 0 || refused > 0);
    const others = [...refusedBy]
      .filter(([quota]) => !STORED_QUOTAS.some((one) => one === quota))
      .map(([quota, refused]) => ({ publisher, quota, used_bytes: null, limit_bytes: null, refused }));
    return [...stored, ...others];
  });
}

/** From this share on, the next acknowledgment may not fit. */
const QUOTA_WARNED_SHARE = 0.9;

/** Whether publishers use up their quotas of Redis' memory. */
export function checkQuotas(
  { storedBytes }: Pick<LedgerSnapshot, "storedBytes">,
  rulesOf: (publisher: string) => Pick<IntakeRules, "limits">,
): DoctorCheck {
  const name = "quotas";
  const full = viewOfQuotas(storedBytes, [], rulesOf).flatMap(
    ({ publisher, quota, used_bytes, limit_bytes }) => {
      const share = (used_bytes ?? 0) / Math.max(limit_bytes ?? Number.POSITIVE_INFINITY, 1);
      return share < QUOTA_WARNED_SHARE ? [] : [`${publisher} ${Math.round(100 * share)} % of ${quota}`];
    },
  );
  return full.length === 0
    ? { name, status: "ok", detail: "no publisher uses one of Redis' memory up" }
    : {
        name,
        status: "warn",
        detail: `in use: ${listNames(full)}. At 100 % acknowledgments get 429: see docs/runbooks/quota-met.md`,
      };
}
