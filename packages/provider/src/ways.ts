/** The ways to servers: directly or through a proxy, with the certificates of their routes. Servers with the same route share connections. */
import { lookup as lookUp } from "node:dns";
import type { LookupFunction } from "node:net";
import type { Dispatcher } from "undici";
import { type Proxies, proxyFor } from "./proxies.ts";
import { shareLookups } from "./shared-lookups.ts";
import type { ProviderTls } from "./tls-files.ts";
import { createDispatcher, type Route } from "./transport.ts";

/** How a server is called: by which connections, and what is the same in each request. */
export interface Way {
  readonly dispatcher: Dispatcher;
  readonly target: Target;
}

/** What requests to a server have in common. */
interface Target {
  readonly origin: string;
  /** The path of a request is appended to it; it has no slash at its end. */
  readonly path: string;
  readonly headers: Readonly<Record<string, string>>;
  /** Whose certificate is expected, if not that of the Host header. */
  readonly servername?: string;
}

export class Ways {
  readonly #proxies: Proxies;
  readonly #rules: Pick<Route, "allowH2" | "reportsResets" | "lookup">;
  readonly #dispatchers: { readonly route: Route; readonly dispatcher: Dispatcher }[] = [];
  #isStopped = false;

  /** @param rules the same for all servers */
  constructor(
    proxies: Proxies,
    rules: Pick<Route, "allowH2" | "reportsResets">,
    lookup: LookupFunction = lookUp,
  ) {
    this.#proxies = proxies;
    this.#rules = { ...rules, lookup: shareLookups(lookup) };
  }

  /** The way to a server. `tls`: undefined for Node's own CAs, and no client certificate. */
  find(url: URL, tls: ProviderTls | undefined): Way {
    const proxy = proxyFor(this.#proxies, url);
    const isTunnelled = url.protocol === "https:";
    const dispatcher = this.#dispatcherFor({ tls, proxy, isTunnelled, ...this.#rules });
    const target =
      proxy === undefined || isTunnelled ? targetOf(url) : targetThroughProxy(url, new URL(proxy));
    return { dispatcher, target };
  }

  /** Closes all connections. Calls that still run are cut, and later ones fail without being sent. */
  async stop(): Promise<void> {
    this.#isStopped = true;
    await Promise.all(this.#dispatchers.map(({ dispatcher }) => dispatcher.destroy()));
  }

  #dispatcherFor(route: Route): Dispatcher {
    const known = this.#dispatchers.find((dispatcher) => isSameRoute(dispatcher.route, route));
    if (known !== undefined) {
      return known.dispatcher;
    }
    const dispatcher = createDispatcher(route);
    this.#dispatchers.push({ route, dispatcher });
    if (this.#isStopped) {
      void dispatcher.destroy();
    }
    return dispatcher;
  }
}

/** After a certificate was replaced, there is another route. Connections of the old one end once they are idle. */
function isSameRoute(one: Route, other: Route): boolean {
  return (
    one.tls?.id === other.tls?.id &&
    one.tls?.contentDigest === other.tls?.contentDigest &&
    one.proxy === other.proxy &&
    one.isTunnelled === other.isTunnelled
  );
}

function targetOf(url: URL): Target {
  return {
    origin: url.origin,
    path: url.pathname.replace(/\/+$/, ""),
    headers: basicAuth("authorization", url),
  };
}

/** The proxy gets the whole address in place of the path (RFC 9112, section 3.2.2). */
function targetThroughProxy(url: URL, proxy: URL): Target {
  const direct = targetOf(url);
  return {
    origin: proxy.origin,
    path: direct.origin + direct.path,
    headers: { host: url.host, ...basicAuth("proxy-authorization", proxy), ...direct.headers },
    ...(proxy.protocol === "https:" ? { servername: proxy.hostname } : {}),
  };
}

/** A header with the user and the password of a URL; none if the URL has none. */
function basicAuth(header: string, { username, password }: URL): Record<string, string> {
  if (username === "" && password === "") {
    return {};
  }
  const credentials = `${decodeURIComponent(username)}:${decodeURIComponent(password)}`;
  return { [header]: `Basic ${Buffer.from(credentials).toString("base64")}` };
}
