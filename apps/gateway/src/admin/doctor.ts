/**
 * GET /admin/v1/doctor: checks everything that the relay needs, all at the same time, each check bounded. No answer contains
 * a secret: neither keys, nor anything of an address of Redis or a provider but its host, port and path.
 */
import type { DoctorCheck, DoctorReport } from "@adrelay/contract";
import { type LoginGuard, OVERDUE, withDeadline } from "@adrelay/service-kit";
import type { Heartbeat, IntakeRules, Store } from "@adrelay/store";
import type { Redis } from "ioredis";
import type { Logger } from "pino";
import { checkDataLoss, checkForeignCircuits, checkLedger, checkProcesses } from "./doctor-checks.ts";
import { checkLogins, checkOperatorsFile } from "./login-checks.ts";
import { checkModels, type ModelCheckDeps } from "./model-checks.ts";
import type { OperatorsWatch } from "./operators-watch.ts";
import { checkProviders, type ProviderCheckDeps } from "./provider-checks.ts";
import { checkKeys, checkPublishersFile } from "./publisher-checks.ts";
import { checkRedis } from "./redis-checks.ts";

export interface DoctorDeps extends ProviderCheckDeps, Pick<ModelCheckDeps, "models"> {
  readonly redis: Redis;
  readonly subscriber: Redis;
  readonly store: Pick<Store, "snapshot" | "circuits" | "acknowledgments" | "rewrites" | "room">;
  readonly rulesOf: (publisher: string) => Pick<IntakeRules, "limits">;
  readonly heartbeat: Pick<Heartbeat, "loadProcesses" | "loadLoss" | "writes">;
  readonly operatorsWatch: Pick<OperatorsWatch, "hasFile" | "isValid">;
  readonly loginGuard: Pick<LoginGuard, "recentRefusals">;
  readonly log: Logger;
}

export type Doctor = () => Promise<DoctorReport>;

/** A group of checks. */
interface CheckGroup {
  /** Names the check that fails if the group itself fails. */
  readonly name: string;
  run(): Promise<readonly DoctorCheck[]>;
}

/** How long a provider or a model's server may take to answer. A group of checks may take a little longer. */
const PROVIDER_TIMEOUT_MS = 2500;
const GROUP_TIMEOUT_MS = 3000;

export function makeDoctor(deps: DoctorDeps): Doctor {
  const groups: readonly CheckGroup[] = [
    {
      name: "redis",
      run: () => checkRedis({ ...deps, rewrites: deps.store.rewrites, room: deps.store.room }),
    },
    { name: "processes", run: () => checkProcesses(deps.heartbeat) },
    { name: "data_loss", run: () => checkDataLoss(deps.heartbeat) },
    { name: "books", run: () => checkLedger(deps) },
    { name: "other_accounts", run: () => checkForeignCircuits(deps) },
    { name: "publishers_file", run: () => checkPublishersFile(deps.heartbeat) },
    { name: "publisher_keys", run: () => Promise.resolve(checkKeys(deps.publishers)) },
    { name: "operators_file", run: () => Promise.resolve([checkOperatorsFile(deps.operatorsWatch)]) },
    { name: "logins", run: () => Promise.resolve([checkLogins(deps.loginGuard)]) },
    { name: "providers", run: () => checkProviders(deps, PROVIDER_TIMEOUT_MS) },
    { name: "proxies", run: () => checkModels(deps, PROVIDER_TIMEOUT_MS) },
  ];
  return async () => {
    const checks = (await Promise.all(groups.map((group) => runGroup(group, deps.log)))).flat();
    return { at: new Date().toISOString(), checks };
  };
}

async function runGroup({ name, run }: CheckGroup, log: Logger): Promise<readonly DoctorCheck[]> {
  const failed = (detail: string) => [{ name, status: "fail", detail } as const];
  try {
    const found = await withDeadline(run(), GROUP_TIMEOUT_MS);
    return found === OVERDUE ? failed(`no answer within ${GROUP_TIMEOUT_MS} ms`) : found;
  } catch (err) {
    log.warn({ event: "doctor_look_failed", look: name, err });
    return failed("could not be checked; if Redis answers, the gateway's log says why");
  }
}
