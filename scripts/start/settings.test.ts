import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { loadConfig, misspeltNames } from "@adrelay/service-kit";
import { afterEach, beforeEach, expect, test } from "vitest";
import { z } from "zod";
import { AD_SERVER_SETTINGS } from "../../apps/ad-server/src/config.ts";
import { DEMO_MODEL_SETTINGS } from "../../apps/demo-model/src/config.ts";
import { GATEWAY_SETTINGS } from "../../apps/gateway/src/config.ts";
import { PROXY_SETTINGS } from "../../apps/proxy/src/config.ts";
import { WORKER_SETTINGS } from "../../apps/worker/src/config.ts";
import { keyHeadersOf, proxySettings } from "./app-settings.ts";
import { loadEnvFile } from "./settings.ts";

const SHAPES = [AD_SERVER_SETTINGS, DEMO_MODEL_SETTINGS, GATEWAY_SETTINGS, PROXY_SETTINGS, WORKER_SETTINGS];

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "adrelay-env-"));
});
afterEach(() => rmSync(folder, { recursive: true }));

function load(text: string, env: NodeJS.ProcessEnv = {}) {
  const file = join(folder, ".env");
  writeFileSync(file, text);
  return { said: loadEnvFile(file, env), env };
}

test("the environment comes before the file, also with an empty value", () => {
  const { env } = load("API_KEYS='a#b'\nADMIN_TOKEN=t\nLOG_LEVEL=info", {
    ADMIN_TOKEN: "",
    LOG_LEVEL: "warn",
  });
  expect(env).toEqual({ API_KEYS: "a#b", ADMIN_TOKEN: "", LOG_LEVEL: "warn" });
});

test("the folder of data in the file is told to have no effect, unless the shell names one", () => {
  const line = ".env: ADRELAY_HOME has no effect here: set it in the shell, because it is read before .env";
  expect(load("ADRELAY_HOME=/data/relay").said).toEqual([line]);
  expect(load("ADRELAY_HOME=/data/relay", { ADRELAY_HOME: "/data/relay" }).said).toEqual([]);
  expect(load("ADRELAY_HOME=").said).toEqual([]);
});

test("without a file nothing changes", () => {
  expect(loadEnvFile(join(folder, "none"), {})).toEqual([]);
});

test("a name that nothing knows is told, with the setting that was meant", () => {
  expect(
    load("ADMIN_TOKN=t\nCOLOUR=blue\nOTEL_SERVICE_NAME=a\nGRAFANA_PORT=1\nhttp_proxy=h", { API_KEY: "k" })
      .said,
  ).toEqual([
    ".env: Adrelay has no setting ADMIN_TOKN: is ADMIN_TOKEN meant?",
    ".env: Adrelay has no setting COLOUR",
    "environment: Adrelay has no setting API_KEY: is API_KEYS meant?",
  ]);
});

test("a variable that the publishers' file names is known", () => {
  const publishers = join(folder, "publishers.yaml");
  const key = "0".repeat(64);
  const provider = "{ url: 'http://ads.example', api_key_env: GLOBE_PROVIDER_KEY }";
  writeFileSync(
    publishers,
    `publishers: [{ id: globe, name: Globe, key_sha256: ['${key}'], provider: ${provider} }]`,
  );
  expect(load(`PUBLISHERS_FILE=${publishers}\nGLOBE_PROVIDER_KEY=k`).said).toEqual([]);
});

test("the proxy takes no publishers' keys from the headers of models' keys", () => {
  const headersFor = (names: string) => proxySettings({ API_KEY_HEADERS: names })["API_KEY_HEADERS"];
  expect(headersFor("X-Service-API-Key, X-Api-Key,Authorization")).toBe("X-Service-API-Key");
  expect(headersFor("X-Own , X-Key")).toBe("X-Own , X-Key");
  // An empty value means the default.
  expect(headersFor("authorization")).toBe("");
  expect(proxySettings({})).toEqual({});
});

test.each([
  [undefined, "X-Service-API-Key", "X-Service-API-Key"],
  ["Authorization", "Authorization", "X-Service-API-Key"],
  ["Authorization, X-Own", "Authorization", "X-Own"],
  [" X-Own,X-Key", "X-Own", "X-Own"],
])("with API_KEY_HEADERS=%s the demos send keys that are taken", (names, gateway, proxy) => {
  expect(keyHeadersOf({ API_KEY_HEADERS: names })).toEqual({ gateway, proxy });
});

test("each time span and each size takes a unit", () => {
  const refused: string[] = [];
  let taken = 0;
  for (const shape of SHAPES) {
    for (const [name, type] of Object.entries(shape)) {
      const { example } = z.globalRegistry.get(type) ?? {};
      const unit = name.endsWith("_MS") ? "ms" : name.endsWith("_BYTES") ? "KB" : undefined;
      if (unit !== undefined && typeof example === "string" && /^\d+$/.test(example)) {
        const value = unit === "ms" ? `${example}ms` : `${Number(example) / 1024}KB`;
        const loaded = loadConfig(z.object({ [name]: type }), { [name]: value });
        refused.push(...(loaded.kind === "ok" ? [] : [name]));
        taken += loaded.kind === "ok" ? 1 : 0;
      }
    }
  }
  expect(refused).toEqual([]);
  expect(taken).toBeGreaterThan(20);
});

test("no app takes another app's setting for a slip", () => {
  const all = SHAPES.flatMap((shape) => Object.keys(shape));
  for (const shape of SHAPES) {
    expect(misspeltNames(all, Object.keys(shape))).toEqual([]);
  }
});

test("the description of a choice names each of its values", () => {
  const choices = SHAPES.flatMap((shape) => Object.entries<z.ZodType>(shape)).flatMap(([name, type]) =>
    type instanceof z.ZodPipe && type.out instanceof z.ZodEnum
      ? [{ name, type, values: type.out.options }]
      : [],
  );
  expect(choices.map(({ name }) => name)).toContain("UNKNOWN_ACK");
  for (const { name, type, values } of choices) {
    const description = type.description ?? "";
    expect(
      values.filter((value) => !description.includes(String(value))),
      name,
    ).toEqual([]);
  }
});
