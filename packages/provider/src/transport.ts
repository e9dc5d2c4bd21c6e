/** Makes undici's dispatchers: connections that are kept, TLS, and the way through a proxy. */
import type { LookupFunction, Socket } from "node:net";
import { Agent, buildConnector, type Dispatcher, Pool, ProxyAgent } from "undici";
import { HEAD_BYTES_MAX, mendHeads } from "./answer-heads.ts";
import { causeOf, ProxyError } from "./call-failures.ts";
import type { ProviderTls } from "./tls-files.ts";

const CONNECT_TIMEOUT_MS = 5000;
/**
 * How long each address of a host may take before Node tries the next one. Node's own 250 ms are too short for a distant server, and for a process
 * that stands still meanwhile. Half of the usual limit of an injection: if the first address is dead, the second still has time.
 */
const ADDRESS_TIMEOUT_MS = 1000;
/** How long a proxy may take to open its way to a provider. */
const PROXY_TIMEOUT_MS = 5000;
/** Shorter than servers usually allow, so that no request is sent on a connection that the server is closing. */
const KEEP_ALIVE_MS = 4000;

const POOL_OPTIONS = {
  // No limit here: a call that waited for a connection would be sent after its caller had been answered. The
  // callers limit how many calls run concurrently.
  connections: null,
  keepAliveTimeout: KEEP_ALIVE_MS,
  maxHeaderSize: HEAD_BYTES_MAX,
  // ReplyCollector keeps the time limit of the whole call.
  headersTimeout: 0,
  bodyTimeout: 0,
} as const;

/** How a provider is reached. */
export interface Route {
  /** undefined: Node's own CAs, and no client certificate. */
  readonly tls: ProviderTls | undefined;
  /** URL of the proxy; it may contain a password. */
  readonly proxy: string | undefined;
  /** Through a proxy, a call to an https:// provider is tunnelled; others are made to the proxy itself. */
  readonly isTunnelled: boolean;
  /** HTTP/2, if the server offers it. */
  readonly allowH2: boolean;
  /**
   * Whether a reset is an error in an answer that ends with its connection. undici takes it as the proper end, because some
   * systems report one behind a whole answer.
   */
  readonly reportsResets?: boolean;
  /** Finds the addresses of a host. */
  readonly lookup: LookupFunction;
}

/** Makes the dispatcher for a route. Its owner destroys it. */
export function createDispatcher(route: Route): Dispatcher {
  const { tls, proxy, isTunnelled, allowH2, lookup } = route;
  const ways = { lookup, autoSelectFamilyAttemptTimeout: ADDRESS_TIMEOUT_MS };
  const certificates = { allowH2, ...(tls === undefined ? {} : { secureContext: tls.secureContext }) };
  const poolOptions = { ...POOL_OPTIONS, allowH2 };
  if (proxy === undefined) {
    const connect = buildConnector({ ...certificates, ...ways, timeout: CONNECT_TIMEOUT_MS });
    return new Agent({ ...poolOptions, connect: prepareSockets(connect, route) });
  }
  if (!isTunnelled) {
    const connect = buildConnector({ ...ways, timeout: CONNECT_TIMEOUT_MS, allowH2: false });
    return new Agent({ ...POOL_OPTIONS, connect: prepareSockets(blameProxy(connect), route) });
  }
  return new ProxyAgent({
    uri: proxy,
    requestTls: certificates,
    proxyTls: ways,
    connectTimeout: CONNECT_TIMEOUT_MS,
    // Makes the pools whose connections go through tunnels.
    factory: (origin, options) =>
      new Pool(origin, { ...poolOptions, connect: prepareSockets(connectorOf(options), route) }),
    // Makes the pool that asks the proxy for tunnels.
    clientFactory: (origin, options) =>
      new Pool(origin, {
        headersTimeout: PROXY_TIMEOUT_MS,
        connect: blameProxy(connectorOf(options)),
      }).compose(nameRefusals),
  }).compose(groupRepeated);
}

/** ProxyAgent keeps only the last of a header's lines, unless they are one list. */
const groupRepeated: Dispatcher.DispatcherComposeInterceptor = (dispatch) => (options, handler) => {
  const { headers } = options;
  return dispatch(isFlatList(headers) ? { ...options, headers: groupedHeaders(headers) } : options, handler);
};

function isFlatList(headers: unknown): headers is readonly string[] {
  return Array.isArray(headers) && headers.every((part) => typeof part === "string");
}

function groupedHeaders(namesAndValues: readonly string[]): Record<string, string | string[]> {
  const grouped = new Map<string, { readonly name: string; readonly values: string[] }>();
  for (let at = 0; at < namesAndValues.length; at += 2) {
    const [name = "", value = ""] = namesAndValues.slice(at, at + 2);
    const known = grouped.get(name.toLowerCase()) ?? { name, values: [] };
    known.values.push(value);
    grouped.set(name.toLowerCase(), known);
  }
  return Object.fromEntries(
    [...grouped.values()].map(({ name, values }) => [name, values.length === 1 ? (values[0] ?? "") : values]),
  );
}

/** ProxyAgent passes its own connector on, in options that have no type. */
function connectorOf(options: object): buildConnector.connector {
  const { connect }: { connect?: unknown } = options;
  if (typeof connect !== "function") {
    throw new TypeError("undici's ProxyAgent passes no connector");
  }
  // It has the type that the documents of undici give it.
  return connect as buildConnector.connector;
}

/** Prepares each new connection for undici. */
function prepareSockets(
  connect: buildConnector.connector,
  { reportsResets = false }: Pick<Route, "reportsResets">,
): buildConnector.connector {
  return (options, callback) =>
    // undici's connectors return the socket, by which undici can cancel the connecting.
    connect(options, (...result) => {
      // On an error there is no socket, whatever the type says.
      if (result[0] === null) {
        const [, socket] = result;
        // A provider that refuses our certificate says so, then closes. undici would keep the second error.
        socket.once("error", (error) => socket.destroy(error));
        if (reportsResets) {
          renameResets(socket);
        }
        if (!("alpnProtocol" in socket && socket.alpnProtocol === "h2")) {
          mendHeads(socket);
        }
      }
      callback(...result);
    });
}

/** undici knows a reset by its code. Under another one it is an error like all others. */
function renameResets(socket: Socket): void {
  socket.once("error", (error: NodeJS.ErrnoException) => {
    if (error.code === "ECONNRESET") {
      error.code = "CONNECTION_RESET";
    }
  });
}

/** Says of an error while connecting that the proxy is its reason. */
function blameProxy(connect: buildConnector.connector): buildConnector.connector {
  return (options, callback) =>
    connect(options, (...[error, socket]) => {
      if (error === null) {
        callback(null, socket);
      } else {
        callback(new ProxyError(causeOf(error)), null);
      }
    });
}

/** ProxyAgent shows a refused CONNECT only in an error's text. Here the status is its cause: `http_407`. */
const nameRefusals: Dispatcher.DispatcherComposeInterceptor = (dispatch) => (options, handler) =>
  dispatch(options, {
    onRequestStart: (...started) => handler.onRequestStart?.(...started),
    onResponseStart: (...response) => handler.onResponseStart?.(...response),
    onResponseError: (...failed) => handler.onResponseError?.(...failed),
    onRequestUpgrade: (controller, status, headers, socket) => {
      if (status === 200) {
        handler.onRequestUpgrade?.(controller, status, headers, socket);
      } else {
        socket.on("error", () => {}).destroy();
        handler.onResponseError?.(controller, new ProxyError(`http_${status}`));
      }
    },
  });
