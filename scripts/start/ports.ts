/** Where the parts of the local stack listen, and where its clients call them. */
import type { WantedPort } from "./preflight.ts";

/** The listeners of the stack. */
export type Ports = Readonly<
  Record<
    "gateway" | "gatewayOps" | "workerOps" | "proxy" | "proxyOps" | "adServer" | "adServerOps" | "demoModel",
    WantedPort
  >
>;

/** The ports by the settings, or their defaults. */
export function wantedPorts(env: NodeJS.ProcessEnv, gatewayPort: number | undefined): Ports {
  const want = (part: string, prefix: string, fallback: number): WantedPort => ({
    part,
    host: env[`${prefix}_HOST`] || "127.0.0.1",
    port: Number(env[`${prefix}_PORT`] || fallback),
    setting: `${prefix}_PORT`,
  });
  const gateway = want("gateway", "GATEWAY", 8080);
  return {
    gateway: { ...gateway, port: gatewayPort ?? gateway.port, setting: "--port or GATEWAY_PORT" },
    gatewayOps: want("gateway's ops listener", "GATEWAY_OPS", 8081),
    workerOps: want("worker's ops listener", "WORKER_OPS", 8082),
    proxy: want("proxy", "PROXY", 8083),
    proxyOps: want("proxy's ops listener", "PROXY_OPS", 8084),
    adServer: want("ad server", "AD_SERVER", 8090),
    adServerOps: want("ad server's ops listener", "AD_SERVER_OPS", 8091),
    demoModel: want("demo model", "DEMO_MODEL", 8092),
  };
}

/** The ports of the parts that will be started. */
export function usedPorts(
  ports: Ports,
  parts: { hasAdServer: boolean; hasDemoModel: boolean },
): WantedPort[] {
  const { adServer, adServerOps, demoModel, ...always } = ports;
  return [
    ...Object.values(always),
    ...(parts.hasAdServer ? [adServer, adServerOps] : []),
    ...(parts.hasDemoModel ? [demoModel] : []),
  ];
}

/** An address for clients. A listener on all addresses is called on the loopback address. */
export function urlOf({ host, port }: WantedPort): string {
  const called = host === "0.0.0.0" ? "127.0.0.1" : host === "::" ? "::1" : host;
  return `http://${called.includes(":") ? `[${called}]` : called}:${port}`;
}
