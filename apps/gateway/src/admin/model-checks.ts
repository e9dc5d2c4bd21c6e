/** The doctor's checks of the model proxy: which proxies run, how many turns are open, and whether the models' servers answer. */
import type { DoctorCheck } from "@adrelay/contract";
import { causeOf, type Proxies, type Publisher, type PublisherDirectory, proxyFor } from "@adrelay/provider";
import type { Heartbeat, Store } from "@adrelay/store";
import { Agent, type Dispatcher, ProxyAgent, request } from "undici";

/** How the models' servers are reached from here. */
interface ModelUrls {
  readonly openai: string;
  readonly anthropic: string;
  readonly proxies: Proxies;
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
  const checks: DoctorCheck[] = [];
  for (let at = 0; at < servers.length; at += PARALLEL) {
    const some = servers.slice(at, at + PARALLEL);
    // All batches together have one time.
    const shareMs = timeoutMs / Math.ceil(servers.length / PARALLEL);
    checks.push(...(await Promise.all(some.map((one) => checkServer(one, deps.models.proxies, shareMs)))));
  }
  return [{ name, status: "ok", detail: `${proxies} seen within a minute, ${open} turns open` }, ...checks];
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

/** Asks for the list of models without a key. Any answer of HTTP shows that the server can be reached. */
async function checkServer(
  { url, users }: ModelServer,
  proxies: Proxies,
  timeoutMs: number,
): Promise<DoctorCheck> {
  const name = `model:${url.host}`;
  const proxy = proxyFor(proxies, url);
  const way = proxy === undefined ? "" : ` through the proxy ${new URL(proxy).origin}`;
  const where = `${url.origin}${url.pathname}${way} for ${describeUsers(users)}`;
  const dispatcher: Dispatcher = proxy === undefined ? new Agent() : new ProxyAgent(proxy);
  try {
    const answer = await request(url, { dispatcher, signal: AbortSignal.timeout(timeoutMs) });
    return { name, status: "ok", detail: `${where}: answers (${answer.statusCode})` };
  } catch (error) {
    const why = error instanceof Error ? (causeOf(error) ?? "failed") : "failed";
    // It is this gateway that asks. A proxy elsewhere may have another way.
    const detail = `${where}: no answer for this gateway (${why}): check the base URL, the network and whether a proxy is needed`;
    return { name, status: "warn", detail };
  } finally {
    await dispatcher.destroy();
  }
}

const USERS_NAMED = 5;

function describeUsers(users: ReadonlySet<string>): string {
  const named = [...users].slice(0, USERS_NAMED).join(", ");
  return users.size > USERS_NAMED ? `${named} and ${users.size - USERS_NAMED} more` : named;
}
