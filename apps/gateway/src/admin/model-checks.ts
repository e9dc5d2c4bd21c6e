/** The doctor's checks of the model proxy: which proxies run, how many turns are open, and whether the models' servers answer. */
import type { DoctorCheck } from "@adrelay/contract";
import {
  causeOf,
  type Proxies,
  type Publisher,
  type PublisherDirectory,
  proxyFor,
  type TlsResult,
  Ways,
} from "@adrelay/provider";
import type { Heartbeat, Store } from "@adrelay/store";

/** How the models' servers are reached from here. */
interface ModelUrls {
  readonly openai: string;
  readonly anthropic: string;
  readonly proxies: Proxies;
  /** The certificates. A gateway needs their files only for this. */
  readonly loadTls: () => TlsResult;
}

export interface ModelCheckDeps {
  readonly heartbeat: Pick<Heartbeat, "loadProcesses">;
  readonly store: Pick<Store, "snapshot">;
  readonly publishers: PublisherDirectory;
  readonly models: ModelUrls;
}

/** A publishers' file may name a server for each of many publishers. */
const SERVERS_MAX = 20;
const PARALLEL = 10;

/** Without a proxy no model's server is asked: there is nobody who would call it. */
export async function checkModels(deps: ModelCheckDeps, timeoutMs: number): Promise<DoctorCheck[]> {
  const [processes, snapshot] = await Promise.all([deps.heartbeat.loadProcesses(), deps.store.snapshot()]);
  const proxies = processes.filter(({ role }) => role === "proxy").length;
  const open = snapshot.openTurns.reduce((sum, { value }) => sum + value, 0);
  const name = "proxies";
  if (proxies === 0) {
    return [open === 0 ? { name, status: "ok", detail: "none runs" } : withoutProxy(open)];
  }
  const servers = listServers(deps).slice(0, SERVERS_MAX);
  const checks = await checkServers(servers, deps.models, timeoutMs);
  return [{ name, status: "ok", detail: `${proxies} seen within a minute, ${open} turns open` }, ...checks];
}

async function checkServers(
  servers: readonly ModelServer[],
  models: ModelUrls,
  timeoutMs: number,
): Promise<DoctorCheck[]> {
  const ways = new Ways(models.proxies, { allowH2: false });
  const looks = { ways, proxies: models.proxies, tls: models.loadTls() };
  // All batches together have one time.
  const shareMs = timeoutMs / Math.ceil(servers.length / PARALLEL);
  const checks: DoctorCheck[] = [];
  try {
    for (let at = 0; at < servers.length; at += PARALLEL) {
      const some = servers.slice(at, at + PARALLEL);
      checks.push(...(await Promise.all(some.map((one) => checkServer(one, looks, shareMs)))));
    }
    return checks;
  } finally {
    await ways.stop();
  }
}

/** That is how it is for a moment after the last proxy has stopped. */
function withoutProxy(open: number): DoctorCheck {
  return {
    name: "proxies",
    status: "warn",
    detail: `none runs, and ${open} turns are open: workers acknowledge them once their leases and waits are over`,
  };
}

/** A model's server. */
interface ModelServer {
  readonly url: URL;
  /** Whose calls go there. */
  readonly users: Set<string>;
}

/** Each server once: those of the settings, and those of publishers. */
function listServers({ models, publishers }: ModelCheckDeps): ModelServer[] {
  const found = new Map<string, ModelServer>();
  for (const publisher of publishers.current) {
    for (const href of [openaiModels(publisher, models), anthropicModels(publisher, models)]) {
      const server = found.get(href) ?? { url: new URL(href), users: new Set() };
      server.users.add(publisher.id);
      found.set(href, server);
    }
  }
  return [...found.values()];
}

const withoutSlash = (url: string) => url.replace(/\/+$/, "");
const openaiModels = ({ openaiBaseUrl }: Publisher, { openai }: ModelUrls) =>
  `${withoutSlash(openaiBaseUrl ?? openai)}/models`;
const anthropicModels = ({ anthropicBaseUrl }: Publisher, { anthropic }: ModelUrls) =>
  `${withoutSlash(anthropicBaseUrl ?? anthropic)}/v1/models`;

/** What the looks at all servers share. */
interface Looks {
  readonly ways: Ways;
  readonly proxies: Proxies;
  readonly tls: TlsResult;
}

/** Asks for the list of models without a key. Any answer of HTTP shows that the server can be reached. */
async function checkServer(
  { url, users }: ModelServer,
  { ways, proxies, tls }: Looks,
  timeoutMs: number,
): Promise<DoctorCheck> {
  const name = `model:${url.host}`;
  const proxy = proxyFor(proxies, url);
  const through = proxy === undefined ? "" : ` through the proxy ${new URL(proxy).origin}`;
  const where = `${url.origin}${url.pathname}${through} for ${describeUsers(users)}`;
  if (tls.kind === "faulty" && url.protocol === "https:") {
    const faults = tls.faults.map(({ path, message }) => `${path}: ${message}`).join("; ");
    const detail = `${where}: not asked, because this gateway lacks the certificates that proxies use: ${faults}`;
    return { name, status: "warn", detail };
  }
  const way = ways.find(url, tls.kind === "ok" ? tls.tls : undefined);
  try {
    const { statusCode } = await way.dispatcher.request({
      ...way.target,
      method: "GET",
      signal: AbortSignal.timeout(timeoutMs),
    });
    const meaning = WITHOUT_KEY.has(statusCode) ? ", as expected without a key" : "";
    return { name, status: "ok", detail: `${where}: answers (${statusCode}${meaning})` };
  } catch (error) {
    const why = error instanceof Error ? (causeOf(error) ?? "failed") : "failed";
    // It is this gateway that asks. A proxy elsewhere may have another way.
    const detail = `${where}: no answer for this gateway (${why}): check the base URL, the network, certificates and whether a proxy is needed`;
    return { name, status: "warn", detail };
  }
}

/** The statuses of a server that asks for a key. */
const WITHOUT_KEY: ReadonlySet<number> = new Set([401, 403]);

const USERS_NAMED = 5;

function describeUsers(users: ReadonlySet<string>): string {
  const named = [...users].slice(0, USERS_NAMED).join(", ");
  return users.size > USERS_NAMED ? `${named} and ${users.size - USERS_NAMED} more` : named;
}
