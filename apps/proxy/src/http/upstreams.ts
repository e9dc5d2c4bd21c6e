/** The models' servers: their base URLs by settings and publishers' file, and the connections to them. */
import { type ProviderTls, type Proxies, type Publisher, type Way, Ways } from "@adrelay/provider";
import type { UpstreamName } from "./targets.ts";

/** Base URLs of each kind. */
type BaseUrls = Readonly<Record<UpstreamName, string>>;

export interface UpstreamsOptions {
  readonly baseUrls: BaseUrls;
  readonly proxies: Proxies;
  /** Undefined: Node's own CAs, and no client certificate. */
  readonly tls: ProviderTls | undefined;
}

export class Upstreams {
  readonly #options: UpstreamsOptions;
  // Chunks must pass as they come, and both sides must see the same framing.
  readonly #ways: Ways;
  readonly #known = new WeakMap<Publisher, Map<UpstreamName, Way>>();

  constructor(options: UpstreamsOptions) {
    this.#options = options;
    this.#ways = new Ways(options.proxies, { allowH2: false, reportsResets: true });
  }

  /** The way of a publisher's calls. */
  find(publisher: Publisher, name: UpstreamName): Way {
    let known = this.#known.get(publisher);
    if (known === undefined) {
      known = new Map();
      this.#known.set(publisher, known);
    }
    let way = known.get(name);
    if (way === undefined) {
      const { baseUrls, tls } = this.#options;
      way = this.#ways.find(new URL(ownBaseUrlOf(publisher, name) ?? baseUrls[name]), tls);
      known.set(name, way);
    }
    return way;
  }

  /** Closes all connections. Calls that still run are cut. */
  stop(): Promise<void> {
    return this.#ways.stop();
  }
}

function ownBaseUrlOf(
  { openaiBaseUrl, anthropicBaseUrl }: Publisher,
  name: UpstreamName,
): string | undefined {
  return name === "openai" ? openaiBaseUrl : anthropicBaseUrl;
}
