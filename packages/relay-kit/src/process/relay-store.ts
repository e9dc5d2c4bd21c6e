/** Opens what the relay's processes work with: Redis with its guard, the store, and the provider's client. */
import { ProviderClient, proxiesOf } from "@adrelay/provider";
import {
  connectRedis,
  type DurabilityGuard,
  guardRedis,
  Periodic,
  redisTargetOf,
} from "@adrelay/service-kit";
import {
  type Heartbeat,
  type IntakeRules,
  loadMissingRights,
  openStore,
  type Store,
  type StoreOptions,
} from "@adrelay/store";
import type { z } from "zod";
import { intakeRulesOf } from "../admission/intake-rules.ts";
import { defaultQuotas } from "../admission/quota-settings.ts";
import type { INTAKE_SETTINGS } from "../publishers/caller-settings.ts";
import type { RelayBase, RelayConfig, RelaySettings } from "./relay-base.ts";

/** How often Redis is asked how full it is. */
const ROOM_INTERVAL_MS = 1000;

/** What differs from process to process. */
interface RelayStoreOptions
  extends Pick<StoreOptions, "intakeRules" | "circuitRules" | "process" | "findAd"> {
  /** Whether deliveries are made. They need a connection that waits for Redis. */
  readonly delivers?: boolean;
}

/** What the processes of the relay have in common. */
export type RelayAdapters = Awaited<ReturnType<typeof openRelayStore>>;

/** Rejects if Redis is there and can't be used; it may be away. What it opens stops with the lifecycle. */
export async function openRelayStore(
  { config: { settings }, log, lifecycle }: RelayBase,
  { delivers = false, ...options }: RelayStoreOptions,
) {
  const target = redisTargetOf(settings);
  const redis = connectRedis(target, "request", log);
  lifecycle.onStop("redis", () => redis.disconnect());
  const rules = { mode: settings.REDIS_DURABILITY, loadMissingRights: () => loadMissingRights(redis) };
  const guard = await guardRedis(redis, rules, log);
  const subscriber = connectRedis(target, "subscriber", log);
  lifecycle.onStop("redis subscriber", () => subscriber.disconnect());
  const waitingRedis = delivers ? connectRedis(target, "worker", log) : undefined;
  if (waitingRedis !== undefined) {
    lifecycle.onStop("redis of the queue", () => waitingRedis.disconnect());
  }
  const store = openStore({
    redis,
    ...(waitingRedis === undefined ? {} : { waitingRedis }),
    recordRetentionMs: settings.RECORD_RETENTION,
    deliveredRetentionMs: settings.DELIVERED_RETENTION,
    log,
    isStopping: () => lifecycle.isStopping,
    ...options,
  });
  lifecycle.onStop("queue", () => store.stop());
  const provider = new ProviderClient(proxiesOf(settings));
  lifecycle.onStop("provider", () => provider.stop());
  return { redis, subscriber, guard, store, provider };
}

/** The settings of a process that accepts acknowledgments, or opens turns. */
export interface IntakeConfig extends RelayConfig {
  readonly settings: RelaySettings & z.infer<z.ZodObject<typeof INTAKE_SETTINGS>>;
}

/** The same with what intake needs. */
export interface IntakeAdapters extends RelayAdapters {
  /** What intake must know of a publisher, as it is now. */
  readonly rulesOf: (publisher: string) => IntakeRules;
}

/** Opens the store for intake: with the rules of each publisher, and with a look at Redis' room once a second. */
export async function openIntakeStore(
  base: RelayBase<IntakeConfig>,
  options: Pick<RelayStoreOptions, "findAd"> = {},
): Promise<IntakeAdapters> {
  const { settings, publishers } = base.config;
  const defaults = { unknownAck: settings.UNKNOWN_ACK, quotas: defaultQuotas(settings) };
  const adapters = await openRelayStore(base, { ...options, intakeRules: (id) => rulesOf(id) });
  const { room } = adapters.store;
  const rulesOf = (id: string) => intakeRulesOf(publishers.find(id), defaults, room.memory);
  // If Redis doesn't answer, the connection logs it.
  const looks = new Periodic(
    () => room.refresh(),
    ROOM_INTERVAL_MS,
    () => {},
  );
  await base.lifecycle.start("room", looks);
  return { ...adapters, rulesOf };
}

/** Whether Redis keeps an acknowledgment now: it is durable, and has taken the latest heartbeat with room for more. */
export function intakeOf(
  {
    guard,
    store,
  }: { readonly guard: Pick<DurabilityGuard, "isDurable">; readonly store: Pick<Store, "room"> },
  heartbeat: Heartbeat,
): Pick<DurabilityGuard, "isDurable"> {
  return {
    get isDurable() {
      return guard.isDurable && heartbeat.writes.kind === "accepted" && store.room.accepts !== "none";
    },
  };
}
