/** The models' servers: their base URLs by settings and publishers' file, and the connections to them. */
import { type Proxies, type Publisher, proxyFor } from "@adrelay/provider";
import { Agent, type Dispatcher, ProxyAgent } from "undici";
import type { UpstreamName } from "./targets.ts";

/** A model's server. */
export interface Upstream {
  readonly origin: string;
  /** Before the path of a call; without a slash at its end. */
  readonly basePath: string;
  readonly dispatcher: Dispatcher;
}

/** Base URLs of each kind. */
export type BaseUrls = Readonly<Record<UpstreamName, string>>;

const CONNECT_TIMEOUT_MS = 5000;
/** Shorter than servers usually allow, so that no request is sent on a connection that the server is closing. */
const KEEP_ALIVE_MS = 4000;
const HEAD_BYTES_MAX = 256 * 1024;

const CONNECTION_OPTIONS = {
  // The calls in flight are limited before. A call that waited here would look like a slow model.
  connections: null,
  keepAliveTimeout: KEEP_ALIVE_MS,
  maxHeaderSize: HEAD_BYTES_MAX,
  // A model may think for as long as it likes: see OpenCalls.
  headersTimeout: 0,
  bodyTimeout: 0,
  // Chunks must pass as they come, and both sides must see the same framing.
  allowH2: false,
} as const;

export class Upstreams {
  readonly #baseUrls: BaseUrls;
  readonly #proxies: Proxies;
  /** Undefined in place of the URL: called directly. */
  readonly #dispatchers = new Map<string | undefined, Dispatcher>();
  readonly #known = new WeakMap<Publisher, Map<UpstreamName, Upstream>>();

  constructor(baseUrls: BaseUrls, proxies: Proxies) {
    this.#baseUrls = baseUrls;
    this.#proxies = proxies;
  }

  /** Where a publisher's calls go. */
  find(publisher: Publisher, name: UpstreamName): Upstream {
    let known = this.#known.get(publisher);
    if (known === undefined) {
      known = new Map();
      this.#known.set(publisher, known);
    }
    let upstream = known.get(name);
    if (upstream === undefined) {
      upstream = this.#open(new URL(ownBaseUrlOf(publisher, name) ?? this.#baseUrls[name]));
      known.set(name, upstream);
    }
    return upstream;
  }

  /** Closes all connections. Calls that still run are cut. */
  async stop(): Promise<void> {
    await Promise.all([...this.#dispatchers.values()].map((dispatcher) => dispatcher.destroy()));
  }

  #open(url: URL): Upstream {
    return {
      origin: url.origin,
      basePath: url.pathname.replace(/\/+$/, ""),
      dispatcher: this.#dispatcherFor(proxyFor(this.#proxies, url)),
    };
  }

  #dispatcherFor(proxy: string | undefined): Dispatcher {
    const known = this.#dispatchers.get(proxy);
    if (known !== undefined) {
      return known;
    }
    const dispatcher =
      proxy === undefined
        ? new Agent({ ...CONNECTION_OPTIONS, connect: { timeout: CONNECT_TIMEOUT_MS } })
        : new ProxyAgent({ ...CONNECTION_OPTIONS, uri: proxy, connectTimeout: CONNECT_TIMEOUT_MS });
    this.#dispatchers.set(proxy, dispatcher);
    return dispatcher;
  }
}

function ownBaseUrlOf(
  { openaiBaseUrl, anthropicBaseUrl }: Publisher,
  name: UpstreamName,
): string | undefined {
  return name === "openai" ? openaiBaseUrl : anthropicBaseUrl;
}
