/** Which proxy leads to a provider: by HTTP_PROXY, HTTPS_PROXY and NO_PROXY, as curl and Go read them. */
import { BlockList, isIP, isIPv6 } from "node:net";

/** The proxies of a process. */
export interface Proxies {
  /** URL of the proxy for http:// providers. */
  readonly http: string | undefined;
  /** URL of the proxy for https:// providers. */
  readonly https: string | undefined;
  /** Hosts that are called directly. */
  readonly exempt: readonly string[];
}

/** No proxy is used. */
export const NO_PROXIES: Proxies = { http: undefined, https: undefined, exempt: [] };

/** The settings that name proxies. */
export interface ProxySettings {
  readonly HTTP_PROXY?: string | undefined;
  readonly HTTPS_PROXY?: string | undefined;
  readonly NO_PROXY?: readonly string[] | undefined;
}

/** The proxies that the settings name. */
export function proxiesOf({ HTTP_PROXY, HTTPS_PROXY, NO_PROXY = [] }: ProxySettings): Proxies {
  return { http: HTTP_PROXY, https: HTTPS_PROXY, exempt: NO_PROXY };
}

/** URL of the proxy for an address; undefined if it is called directly. The URL may contain a password. */
export function proxyFor({ http, https, exempt }: Proxies, address: URL): string | undefined {
  const proxy = address.protocol === "https:" ? https : http;
  return proxy === undefined || exempt.some((entry) => covers(entry.toLowerCase(), address))
    ? undefined
    : proxy;
}

/**
 * Whether an entry of NO_PROXY covers an address. An entry is `*`, or a host name, which covers the names below it too (with
 * or without a dot or `*.` in front), an IP address, or a block of addresses such as 10.0.0.0/8. All but a block may be
 * followed by a port.
 */
function covers(entry: string, address: URL): boolean {
  const { host, port } = splitPort(entry);
  const name = bareHost(address.hostname);
  if (port !== undefined && port !== portOf(address)) {
    return false;
  }
  if (host === "*") {
    return true;
  }
  if (host.includes("/")) {
    return isInBlock(host, name);
  }
  const suffix = bareHost(host).replace(/^\*?\./, "");
  return suffix !== "" && (name === suffix || (isIP(name) === 0 && name.endsWith(`.${suffix}`)));
}

/** An IPv6 address has a port only if it is in brackets. */
function splitPort(entry: string): { readonly host: string; readonly port: string | undefined } {
  const [, host, port] = /^(\[[^\]]+\]|[^:]+):(\d+)$/.exec(entry) ?? [];
  return host === undefined ? { host: entry, port: undefined } : { host, port };
}

/** Without the brackets of an IPv6 address and the dot at the end of a full name. */
function bareHost(host: string): string {
  return host.replace(/^\[(.*)\]$/, "$1").replace(/\.$/, "");
}

function portOf({ port, protocol }: URL): string {
  return port !== "" ? port : protocol === "https:" ? "443" : "80";
}

function isInBlock(block: string, name: string): boolean {
  const [network = "", bits = ""] = block.split("/", 2);
  const family = (ip: string) => (isIPv6(ip) ? "ipv6" : "ipv4");
  const bitsMax = isIPv6(network) ? 128 : 32;
  if (isIP(network) === 0 || isIP(name) === 0 || !/^\d+$/.test(bits) || Number(bits) > bitsMax) {
    return false;
  }
  const list = new BlockList();
  list.addSubnet(network, Number(bits), family(network));
  return list.check(name, family(name));
}
