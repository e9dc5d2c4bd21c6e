/**
 * GET /admin/v1/doctor: looks at all that the relay stands on, at once, each look bounded. Nothing secret is
 * in an answer: neither keys nor what Redis' or a provider's address may hold besides host, port and path.
 */
import type { DoctorCheck, DoctorReport } from "@adrelay/contract";
import type { Ledger, Pulse } from "@adrelay/ledger";
import { OVERDUE, withDeadline } from "@adrelay/service-kit";
import type { Redis } from "ioredis";
import type { Logger } from "pino";
import { checkProviders, type ProviderCheckDeps } from "./provider-checks.ts";
import { checkRedis } from "./redis-checks.ts";
import { checkBooks, checkDataLoss, checkProcesses } from "./relay-checks.ts";

export interface DoctorDeps extends ProviderCheckDeps {
  readonly redis: Redis;
  readonly ledger: Pick<Ledger, "snapshot">;
  readonly pulse: Pick<Pulse, "loadProcesses" | "loadLoss">;
  readonly log: Logger;
}

export type Doctor = () => Promise<DoctorReport>;

/** Something to look at; it may come to several findings. */
interface Look {
  /** Names the finding if the look itself comes to nothing. */
  readonly name: string;
  run(): Promise<readonly DoctorCheck[]>;
}

/** A provider has this long to answer; a look may take a little longer. */
const PROVIDER_TIMEOUT_MS = 2500;
const LOOK_TIMEOUT_MS = 3000;

export function makeDoctor(deps: DoctorDeps): Doctor {
  const looks: readonly Look[] = [
    { name: "redis", run: () => checkRedis(deps.redis) },
    { name: "processes", run: () => checkProcesses(deps.pulse) },
    { name: "data_loss", run: () => checkDataLoss(deps.pulse) },
    { name: "books", run: () => checkBooks(deps.ledger) },
    { name: "providers", run: () => checkProviders(deps, PROVIDER_TIMEOUT_MS) },
  ];
  return async () => {
    const checks = (await Promise.all(looks.map((look) => take(look, deps.log)))).flat();
    return { at: new Date().toISOString(), checks };
  };
}

async function take({ name, run }: Look, log: Logger): Promise<readonly DoctorCheck[]> {
  const failed = (detail: string) => [{ name, status: "fail", detail } as const];
  try {
    const found = await withDeadline(run(), LOOK_TIMEOUT_MS);
    return found === OVERDUE ? failed(`no answer within ${LOOK_TIMEOUT_MS} ms`) : found;
  } catch (err) {
    log.warn({ event: "doctor_look_failed", look: name, err });
    return failed("could not be looked at; if Redis answers, the gateway's log says why");
  }
}
