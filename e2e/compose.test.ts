/** Compares docker-compose.yml with the settings of the apps. It needs no Docker, because it builds nothing. */
import { execFileSync } from "node:child_process";
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { parseEnv } from "node:util";
import { REDIS_IMAGE } from "@adrelay/dev-servers";
import { codeBlocks } from "@adrelay/testkit";
import { describe, expect, test } from "vitest";
import { parse as parseYaml } from "yaml";
import { z } from "zod";
import { AD_SERVER_SETTINGS, loadAdServerConfig } from "../apps/ad-server/src/config.ts";
import { DEMO_MODEL_SETTINGS, loadDemoModelConfig } from "../apps/demo-model/src/config.ts";
import { GATEWAY_SETTINGS, loadGatewayConfig } from "../apps/gateway/src/config.ts";
import { loadProxyConfig, PROXY_SETTINGS } from "../apps/proxy/src/config.ts";
import { loadWorkerConfig, WORKER_SETTINGS } from "../apps/worker/src/config.ts";

const ROOT = new URL("../", import.meta.url);
const read = (path: string) => readFileSync(fileURLToPath(new URL(path, ROOT)), "utf8");

const serviceSchema = z.object({
  image: z.string(),
  command: z.array(z.string()).default([]),
  profiles: z.array(z.string()).default([]),
  volumes: z.array(z.string()).default([]),
  environment: z.record(z.string(), z.union([z.string(), z.number(), z.null()])).default({}),
  ports: z.array(z.string()).default([]),
  user: z.string().optional(),
  restart: z.string(),
  stop_grace_period: z.string(),
  healthcheck: z.object({ test: z.array(z.string()) }),
});
const composeSchema = z.object({ services: z.record(z.string(), serviceSchema) });

const composeText = read("docker-compose.yml");
const { services } = composeSchema.parse(parseYaml(composeText, { merge: true }));

const apps = [
  { name: "ad-server", settings: AD_SERVER_SETTINGS, load: loadAdServerConfig },
  { name: "gateway", settings: GATEWAY_SETTINGS, load: loadGatewayConfig },
  { name: "worker", settings: WORKER_SETTINGS, load: loadWorkerConfig },
  { name: "proxy", settings: PROXY_SETTINGS, load: loadProxyConfig },
] as const;

/** It has no Redis, no ops listener, and no port on this machine. */
const demoModel = { name: "demo-model", settings: DEMO_MODEL_SETTINGS, load: loadDemoModelConfig } as const;

/** These need a mounted file, so an override of docker-compose.yml sets them. */
const FILE_SETTINGS = [
  "PUBLISHERS_FILE",
  "REDIS_TLS_CA_FILE",
  "REDIS_TLS_CERT_FILE",
  "REDIS_TLS_KEY_FILE",
  "PROVIDER_API_KEY_FILE",
  "PROVIDER_CA_FILE",
  "PROVIDER_CLIENT_CERT_FILE",
  "PROVIDER_CLIENT_KEY_FILE",
  "MODEL_CA_FILE",
  "MODEL_CLIENT_CERT_FILE",
  "MODEL_CLIENT_KEY_FILE",
  "CATALOG_FILE",
  "OPERATORS_FILE",
];

/** Keys that compose asks for, because a default would be known to everybody. */
const NEEDED = {
  API_KEYS: "key-of-a-test-caller",
  PROVIDER_API_KEY: "key-of-a-test-relay",
  ADMIN_TOKEN: "token-of-a-test-operator",
} as const;

function serviceOf(name: string) {
  const service = services[name];
  if (service === undefined) {
    throw new TypeError(`docker-compose.yml has no service ${name}`);
  }
  return service;
}

/** A service's environment on a machine where only the needed variables are set. */
function environmentOf(name: string): Record<string, string> {
  const given = Object.entries(serviceOf(name).environment).filter(([, value]) => value !== null);
  return Object.fromEntries(given.map(([variable, value]) => [variable, withDefaults(String(value))]));
}

/** Replaces each `${NAME:-default}` by its default and each `${NAME:?text}` by a value, the inner ones first. */
function withDefaults(text: string): string {
  const next = text
    .replace(/\$\{\w+:-([^${}]*)\}/g, "$1")
    .replace(
      /\$\{(\w+):\?[^${}]*\}/g,
      (_, name: string) => z.record(z.string(), z.string()).parse(NEEDED)[name] ?? "",
    );
  return next === text ? text : withDefaults(next);
}

describe.each([...apps, demoModel])("docker-compose.yml and the $name", ({ name, settings, load }) => {
  test("it names exactly the settings that the app has", () => {
    const known = Object.keys(settings).filter((setting) => !FILE_SETTINGS.includes(setting));
    const named = Object.keys(serviceOf(name).environment).filter((setting) => !setting.startsWith("OTEL_"));
    expect(named.sort()).toEqual(known.sort());
  });

  // The ad server and the demo model send no traces.
  test.runIf(name !== "ad-server" && name !== "demo-model")(
    "it passes on each setting of traces that the guide names, but files",
    () => {
      const [, section = ""] = /^## Traces$(.*?)^## /ms.exec(read("docs/operations.md")) ?? [];
      const inGuide = [...section.matchAll(/`(OTEL_\w+)`/g)].map(([, setting = ""]) => setting);
      const wanted = inGuide.filter((setting) => !/_(CERTIFICATE|CLIENT_KEY)$/.test(setting));
      expect(wanted.length).toBeGreaterThan(10);
      const named = Object.keys(serviceOf(name).environment).filter((setting) => setting.startsWith("OTEL_"));
      expect(named.sort()).toEqual([...new Set(wanted)].sort());
    },
  );

  test("the app accepts its default settings", () => {
    expect(load(environmentOf(name))).toMatchObject({ kind: "ok" });
  });
});

describe.each(apps)("docker-compose.yml and the listeners of the $name", ({ name }) => {
  test("it publishes the app's default ports, only on 127.0.0.1", () => {
    const listened = Object.entries(environmentOf(name)).filter(([variable]) => variable.endsWith("_PORT"));
    const published = serviceOf(name).ports.map(withDefaults);
    expect(published).toEqual(listened.map(([, port]) => `127.0.0.1:${port}:${port}`));
  });

  test("it runs as a plain user, has a readiness check, and is restarted", () => {
    const service = serviceOf(name);
    const { AD_SERVER_OPS_PORT, GATEWAY_OPS_PORT, WORKER_OPS_PORT, PROXY_OPS_PORT } = environmentOf(name);
    const port = AD_SERVER_OPS_PORT ?? GATEWAY_OPS_PORT ?? WORKER_OPS_PORT ?? PROXY_OPS_PORT;
    expect(service.user).toBe("node");
    expect(service.healthcheck.test.join(" ")).toContain(`http://127.0.0.1:${port}/readyz`);
    expect(service).toMatchObject({
      restart: "unless-stopped",
      stop_grace_period: name === "proxy" ? "95s" : "30s",
    });
  });
});

test("the demo model runs beside the others, within their network only", () => {
  const service = serviceOf("demo-model");
  expect(service).toMatchObject({ user: "node", restart: "unless-stopped", ports: [], profiles: [] });
  const { DEMO_MODEL_PORT: port } = environmentOf("demo-model");
  expect(service.healthcheck.test.join(" ")).toContain(`http://127.0.0.1:${port}/readyz`);
});

/** The variables of Prometheus and Grafana. */
const OBSERVE_VARIABLES = ["PROMETHEUS_PORT", "GRAFANA_PORT", "GRAFANA_ADMIN_PASSWORD"];

test("every variable in docker-compose.yml is a setting of an app, or documented", () => {
  const known = new Set([
    ...[...apps, demoModel].flatMap(({ settings }) => Object.keys(settings)),
    ...OBSERVE_VARIABLES,
  ]);
  const readme = read("deploy/README.md");
  expect(OBSERVE_VARIABLES.filter((name) => !readme.includes(`\`${name}\``))).toEqual([]);
  const used = [...composeText.matchAll(/\$\{(\w+)/g)].map(([, name]) => name ?? "");
  expect(used.length).toBeGreaterThan(0);
  expect(used.filter((name) => !known.has(name))).toEqual([]);
});

test("by default the relay has the ad server's key and the services' addresses", () => {
  const adServer = environmentOf("ad-server");
  for (const name of ["gateway", "worker"]) {
    const relay = environmentOf(name);
    expect(adServer["AD_SERVER_API_KEYS"]).toBe(relay["PROVIDER_API_KEY"]);
    expect(relay["PROVIDER_URL"]).toBe(`http://ad-server:${adServer["AD_SERVER_PORT"]}`);
    expect(relay["REDIS_URL"]).toBe("redis://redis:6379");
  }
});

test("its Redis loses no write and evicts nothing, as the apps require", () => {
  const { command, ports } = serviceOf("redis");
  expect(command.join(" ")).toContain(
    "--appendonly yes --appendfsync always --maxmemory 512mb --maxmemory-policy noeviction --save ",
  );
  expect(ports).toEqual([]);
  for (const { name } of apps) {
    expect(environmentOf(name)["REDIS_DURABILITY"]).toBe("strict");
  }
});

test("the image has the packages of every app that compose runs", () => {
  const run = Object.values(services).flatMap(({ command }) =>
    command.flatMap((word) => /^apps\/(.*)\/src\/main\.ts$/.exec(word)?.[1] ?? []),
  );
  const installed = [...read("deploy/Dockerfile").matchAll(/@adrelay\/app-([a-z-]+)\.\.\./g)].map(
    ([, app]) => app,
  );
  expect(run).toHaveLength(5);
  expect(installed.sort()).toEqual(run.sort());
});

test("every image is named by tag and digest, and tests run the Redis of compose", () => {
  const composed = [...composeText.matchAll(/^ +image: (.*)$/gm)].map(([, image = ""]) => image);
  const based = [...read("deploy/Dockerfile").matchAll(/^FROM (\S+:\S+)/gm)].map(([, image = ""]) => image);
  const foreign = [...composed.filter((image) => image !== "adrelay:local"), ...based];
  expect(foreign.map((image) => image.split(":")[0])).toEqual([
    "redis",
    "prom/prometheus",
    "grafana/grafana",
    "node",
  ]);
  expect(foreign.filter((image) => !/^[\w/]+:v?\d[\w.-]*@sha256:[\da-f]{64}$/.test(image))).toEqual([]);
  expect(composed).toContain(REDIS_IMAGE);
});

test("Prometheus and Grafana run only in the profile observe, only on 127.0.0.1", () => {
  const inProfile = Object.entries(services).filter(([, { profiles }]) => profiles.length > 0);
  expect(inProfile.map(([name, { profiles }]) => [name, profiles])).toEqual([
    ["prometheus", ["observe"]],
    ["grafana", ["observe"]],
  ]);
  const published = inProfile.flatMap(([, { ports }]) => ports.map(withDefaults));
  expect(published).toEqual(["127.0.0.1:9090:9090", "127.0.0.1:3000:3000"]);
});

test("Prometheus and Grafana mount existing files, read-only and at configured paths", () => {
  const mounts = ["prometheus", "grafana"].flatMap((name) => serviceOf(name).volumes);
  const ours = mounts.filter((mount) => mount.startsWith("./")).map((mount) => mount.split(":"));
  expect(ours.map(([path = ""]) => path).filter((path) => !existsSync(new URL(path, ROOT)))).toEqual([]);
  expect(ours.every(([, , mode]) => mode === "ro")).toBe(true);
  const provider = read("deploy/grafana/provisioning/dashboards/adrelay.yml");
  expect(provider).toContain(`path: ${ours.find(([path]) => path?.endsWith("/dashboards"))?.[1]} `);
  expect(read("deploy/grafana/provisioning/datasources/prometheus.yml")).toContain("http://prometheus:9090");
  const home = environmentOf("grafana")["GF_DASHBOARDS_DEFAULT_HOME_DASHBOARD_PATH"] ?? "";
  const files = readdirSync(new URL("deploy/grafana/dashboards/", ROOT));
  expect(files).toContain(home.split("/").at(-1));
});

test("compose has no key of its own, and the guide's command makes those that it asks for", () => {
  const asked = [...composeText.matchAll(/\$\{(\w+):\?([^}]*)\}/g)].map(([, name, text]) => [name, text]);
  expect(new Set(asked.map(([name]) => name))).toEqual(new Set(Object.keys(NEEDED)));
  expect(asked.every(([, text]) => text?.includes("deploy/README.md"))).toBe(true);
  expect(composeText.match(/demo-(?!grafana|model\b)\w+/g)).toBeNull();
  const folder = mkdtempSync(join(tmpdir(), "adrelay-compose-"));
  const [command = ""] = codeBlocks("deploy/README.md", "sh");
  execFileSync("/bin/sh", ["-c", command], { cwd: folder });
  const made = parseEnv(readFileSync(join(folder, ".env"), "utf8"));
  rmSync(folder, { recursive: true });
  expect(new Set(Object.keys(made))).toEqual(new Set(Object.keys(NEEDED)));
  const { API_KEYS, PROVIDER_API_KEY, ADMIN_TOKEN } = made;
  expect(loadGatewayConfig({ API_KEYS, PROVIDER_API_KEY, ADMIN_TOKEN })).toMatchObject({ kind: "ok" });
  expect(loadAdServerConfig({ AD_SERVER_API_KEYS: PROVIDER_API_KEY })).toMatchObject({ kind: "ok" });
});

test("each ops listener serves the names that Prometheus calls", () => {
  for (const { name } of apps) {
    expect(environmentOf(name)["OPS_HOSTS"]?.split(",")).toContain(name);
  }
});

test("Prometheus scrapes each app at its ops listener", () => {
  const configSchema = z.object({
    scrape_configs: z.array(
      z.object({
        job_name: z.string(),
        static_configs: z.array(z.object({ targets: z.array(z.string()) })),
      }),
    ),
  });
  const { scrape_configs } = configSchema.parse(parseYaml(read("deploy/prometheus/prometheus.yml")));
  const scraped = scrape_configs.map(({ job_name, static_configs }) => [
    job_name,
    ...static_configs.flatMap(({ targets }) => targets),
  ]);
  const portOf = (name: string, setting: string) => `${name}:${environmentOf(name)[setting]}`;
  expect(scraped).toEqual([
    ["adrelay-gateway", portOf("gateway", "GATEWAY_OPS_PORT")],
    ["adrelay-worker", portOf("worker", "WORKER_OPS_PORT")],
    ["adrelay-proxy", portOf("proxy", "PROXY_OPS_PORT")],
    ["adrelay-ad-server", portOf("ad-server", "AD_SERVER_OPS_PORT")],
  ]);
});

test("the image uses the pnpm version that the workspace names", () => {
  const { packageManager } = z.object({ packageManager: z.string() }).parse(JSON.parse(read("package.json")));
  expect(read("deploy/Dockerfile")).toContain(` ${packageManager}\n`);
});
