/**
 * What a run runs: four apps, a Redis, a provider, and a proxy for each app's connections to Redis and to the provider.
 */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { API_KEY_HEADER, publisherIdSchema } from "@adrelay/contract";
import { freeLanePort, startTestRedis, type TestRedis } from "@adrelay/dev-servers";
import { listAccounts, type SharedAccount } from "@adrelay/provider";
import { makeRandom, type SocketProxy, startSocketProxy } from "@adrelay/testkit";
import { Redis } from "ioredis";
import { ChaosApp } from "./chaos-app.ts";
import { ACCOUNTS, APP_IDS, type AppId, type Erasure, type LinkEnd } from "./fault.ts";
import { LogWatch } from "./log-watch.ts";
import { PROVIDER_KEYS, type ProviderModel, startProviderModel } from "./provider-model.ts";
import { PublishersFiles, urlOf } from "./publishers-files.ts";

export interface ChaosStack {
  readonly redis: TestRedis;
  /** A direct connection, without a proxy: for faults, and to read the ledger in the end. */
  readonly admin: Redis;
  readonly provider: ProviderModel;
  readonly apps: ReadonlyMap<AppId, ChaosApp>;
  /** The provider accounts of each app. Each app has its own address of the provider, so the circuit breakers differ. */
  readonly circuits: ReadonlyMap<AppId, readonly SharedAccount[]>;
  /** The files, and the publishers' keys at the gateways. */
  readonly publishers: PublishersFiles;
  /** Where an app has its publishers' file. */
  publishersFileOf(app: AppId): string;
  link(app: AppId, end: LinkEnd): SocketProxy;
  readonly gatewayUrls: readonly string[];
  /** By app. */
  readonly opsUrls: ReadonlyMap<AppId, string>;
  readonly logs: LogWatch;
  /** What an operator has erased, by ad_response_id. */
  readonly erasures: Map<string, Erasure>;
  /** Processes that failed to start, ended on their own, or stopped badly. */
  readonly processProblems: string[];
  dispose(): Promise<void>;
}

export const ADMIN_TOKEN = "token-of-an-operator";
/** The time limit of an attempt. A job's lock is ten seconds longer: JOB_LOCK_MS of the plan. */
export const DELIVERY_TIMEOUT_MS = 1000;
export const ACK_DEADLINE_MS = 3000;
const SHUTDOWN_TIMEOUT_MS = 5000;

/** Short limits, so that a run of some seconds shows what otherwise takes days. */
const SETTINGS = {
  REDIS_DURABILITY: "strict",
  ADMIN_TOKEN,
  ACK_DEADLINE_MS: String(ACK_DEADLINE_MS),
  ACK_WAIT_MS: "300",
  INJECTION_TIMEOUT_MS: "1000",
  DELIVERY_TIMEOUT_MS: String(DELIVERY_TIMEOUT_MS),
  RETRY_SCHEDULE: "200ms,500ms,1s,2s",
  SWEEP_INTERVAL_MS: "200",
  SHUTDOWN_TIMEOUT_MS: String(SHUTDOWN_TIMEOUT_MS),
  WORKER_CONCURRENCY: "20",
  BREAKER_PROBE_INTERVAL_MS: "500",
  RECOVERY_RATE_PER_SECOND: "2000",
  ACME_KEY: PROVIDER_KEYS.acme,
  GLOBE_KEY: PROVIDER_KEYS.globe,
};

export interface ChaosStackOptions {
  readonly seed: number;
  /** An acknowledgment that was not delivered within this time becomes a dead letter. */
  readonly deliveryAgeMaxMs: number;
  readonly logsDir?: string | undefined;
}

export async function startChaosStack({
  seed,
  deliveryAgeMaxMs,
  logsDir,
}: ChaosStackOptions): Promise<ChaosStack> {
  const folder = mkdtempSync(join(tmpdir(), "adrelay-chaos-"));
  const [redis, provider] = await Promise.all([
    startTestRedis(),
    startProviderModel(makeRandom(`provider ${seed}`)),
  ]);
  const publishers = new PublishersFiles();
  const publishersFileOf = (id: AppId) => join(folder, `${id}.yaml`);
  const links = new Map<string, SocketProxy>();
  const logs = new LogWatch(logsDir);
  const processProblems: string[] = [];
  const apps = new Map<AppId, ChaosApp>();
  const circuits = new Map<AppId, readonly SharedAccount[]>();
  const ports = new Map<AppId, { readonly port: number; readonly opsPort: number }>();
  for (const id of APP_IDS) {
    const toRedis = await startSocketProxy(redis.port);
    const toProvider = await startSocketProxy(provider.port);
    links.set(`${id} redis`, toRedis).set(`${id} provider`, toProvider);
    const own = { port: await freeLanePort(), opsPort: await freeLanePort() };
    ports.set(id, own);
    publishers.add({ path: publishersFileOf(id), providerPort: toProvider.port });
    const env = {
      ...SETTINGS,
      ...portSettings(id, own),
      DELIVERY_MAX_AGE: `${deliveryAgeMaxMs}ms`,
      REDIS_URL: `redis://127.0.0.1:${toRedis.port}`,
      PUBLISHERS_FILE: publishersFileOf(id),
    };
    circuits.set(id, accountsAt(toProvider.port));
    const onLogText = (line: string) => logs.read(id, line);
    const onProblem = (what: string) => void processProblems.push(what);
    const app = id.startsWith("gateway") ? "gateway" : "worker";
    const shutdownTimeoutMs = SHUTDOWN_TIMEOUT_MS;
    apps.set(id, new ChaosApp({ id, app, env, onLogText, onProblem, shutdownTimeoutMs }));
  }
  await Promise.all([...apps.values()].map((app) => app.start()));
  const admin = new Redis(redis.url, { maxRetriesPerRequest: null, retryStrategy: () => 50 });
  // It reconnects automatically. Errors are expected while a fault stops Redis.
  admin.on("error", () => {});
  const url = (port: number | undefined) => `http://127.0.0.1:${port}`;
  return {
    redis,
    admin,
    provider,
    apps,
    circuits,
    publishers,
    publishersFileOf,
    link: (app, end) => requireLink(links, `${app} ${end}`),
    gatewayUrls: (["gateway-1", "gateway-2"] as const).map((id) => url(ports.get(id)?.port)),
    opsUrls: new Map([...ports].map(([id, { opsPort }]) => [id, url(opsPort)])),
    logs,
    erasures: new Map(),
    processProblems,
    dispose: async () => {
      await Promise.all([...apps.values()].map((app) => app.crash()));
      admin.disconnect();
      await Promise.all([provider.close(), ...[...links.values()].map((link) => link.close())]);
      await redis.dispose();
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

function portSettings(id: AppId, { port, opsPort }: { readonly port: number; readonly opsPort: number }) {
  return id.startsWith("gateway")
    ? { GATEWAY_PORT: String(port), GATEWAY_OPS_PORT: String(opsPort) }
    : { WORKER_OPS_PORT: String(opsPort) };
}

/** The accounts that an app makes from its publishers' file. */
function accountsAt(providerPort: number): readonly SharedAccount[] {
  return listAccounts(
    ACCOUNTS.map((account) => ({
      id: publisherIdSchema.parse(account),
      account: {
        url: urlOf(account, providerPort),
        apiKey: PROVIDER_KEYS[account],
        apiKeyHeader: API_KEY_HEADER,
      },
    })),
  );
}

function requireLink(links: ReadonlyMap<string, SocketProxy>, name: string): SocketProxy {
  const link = links.get(name);
  if (link === undefined) {
    throw new RangeError(`there is no link ${name}`);
  }
  return link;
}
