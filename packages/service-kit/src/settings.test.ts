import { expect, test } from "vitest";
import { z } from "zod";
import { parseDurationMs } from "./durations.ts";
import {
  COMMON_SETTINGS,
  describeFaults,
  durationListType,
  integerType,
  loadConfig,
  optionalSetting,
  PROVIDER_SETTINGS,
  portType,
  renderEnvExample,
  setting,
  textType,
} from "./settings.ts";

const shape = {
  PORT: setting(portType, "8080", "Where it listens."),
  WAITS: setting(durationListType, "5s,2m", "How long it waits."),
  SECRET: optionalSetting(textType, "A secret."),
};
const schema = z.object(shape);

test("a default goes through the same parser as a value that is set", () => {
  expect(loadConfig(schema, { PORT: " " })).toEqual({
    kind: "ok",
    config: { PORT: 8080, WAITS: [5000, 120_000] },
  });
});

test("all faulty settings are named together and no value is shown", () => {
  const result = loadConfig(z.object({ ...shape, N: integerType(1, 5) }), {
    PORT: "sesame",
    WAITS: "sesame",
    N: "9",
  });
  const text = result.kind === "faulty" ? describeFaults(result.faults) : "";
  expect(text.split("\n")).toHaveLength(3);
  expect(text).toMatch(/PORT.*\n.*WAITS.*\n.*N: must be at most 5/);
  expect(text).not.toContain("sesame");
});

test.each([
  ["500ms", 500],
  ["1.5h", 5_400_000],
  ["2.3d", 198_720_000],
  ["30d", 2_592_000_000],
  ["900000", 900_000],
  ["0", 0],
  ["5.5", undefined],
  ["-5s", undefined],
  ["1y", undefined],
  ["", undefined],
])("the time span %j is %j ms", (text, expected) => {
  expect(parseDurationMs(text)).toBe(expected);
});

test("the example file shows each setting once, with its default", () => {
  const text = renderEnvExample(
    [
      { title: "a", shape },
      { title: "b", shape: { PORT: shape.PORT } },
    ],
    (type) => z.globalRegistry.get(type),
  );
  expect(text.match(/^#PORT=8080$/gm)).toHaveLength(1);
  expect(text).toContain("# A secret.\n#SECRET=");
});

const providerSettings = (env: Record<string, string>) => {
  const loaded = loadConfig(z.object(PROVIDER_SETTINGS), env);
  return loaded.kind === "ok"
    ? loaded.config
    : loaded.faults.map(({ path, message }) => `${path} ${message}`);
};

test("the names of proxies are read in both cases, and the lower case comes first", () => {
  expect(
    providerSettings({
      HTTP_PROXY: "http://upper:1",
      http_proxy: "http://lower:1",
      HTTPS_PROXY: "http://upper:2",
      https_proxy: " ",
      no_proxy: "localhost, .internal 10.0.0.0/8,",
    }),
  ).toMatchObject({
    HTTP_PROXY: "http://lower:1",
    HTTPS_PROXY: "http://upper:2",
    NO_PROXY: ["localhost", ".internal", "10.0.0.0/8"],
  });
});

test("a proxy without a scheme is an HTTP proxy", () => {
  expect(providerSettings({ HTTPS_PROXY: "us:pa@proxy.test:3128" })).toMatchObject({
    HTTPS_PROXY: "http://us:pa@proxy.test:3128",
  });
});

test.each([
  [{ HTTP_PROXY: "socks5://sesame:1" }, "HTTP_PROXY"],
  [{ https_proxy: "http://sesame:%zz@proxy" }, "HTTPS_PROXY"],
  [{ HTTPS_PROXY: "http://:" }, "HTTPS_PROXY"],
  [{ PROVIDER_URL: "https://sesame:%e0%a4@ads.example" }, "PROVIDER_URL"],
] as const)("%j is refused by the name %s, without its value", (env, name) => {
  const faults = providerSettings(env);
  expect(faults).toEqual([expect.stringMatching(`^${name} must `)]);
  expect(JSON.stringify(faults)).not.toContain("sesame");
});

test.each([
  ["REDIS_URL", "redis://user:pa/ss@redis.test:6379"],
  ["REDIS_URL", "rediss://user:pa#ss@redis.test:6379"],
  ["REDIS_URL", "redis://:pa?ss@redis.test"],
  ["REDIS_URL", "redis://user:1#ss@redis.test:6379"],
  ["REDIS_URL", "redis://user:1/ss@redis.test:6379"],
  ["REDIS_URL", "redis://user:100%@redis.test:6379"],
  ["PROVIDER_URL", "https://user:pa/ss@ads.test"],
  ["PROVIDER_URL", "https://user:1#ss@ads.test"],
  ["HTTPS_PROXY", "user:pa?ss@proxy.test:3128"],
])("%s=%s asks for percent-encoding", (name, url) => {
  expect(loadConfig(z.object({ ...COMMON_SETTINGS, ...PROVIDER_SETTINGS }), { [name]: url })).toEqual({
    kind: "faulty",
    faults: [{ path: name, message: expect.stringContaining("percent-encoding") }],
  });
});

test.each([
  ["REDIS_URL", "http://user@redis.test", /redis:\/\/ or rediss/],
  ["REDIS_URL", "redis.test:6379", /redis:\/\/ or rediss/],
  ["PROVIDER_URL", "https://ads.test/?a=1", /neither query/],
])("%s=%s has another fault", (name, url, fault) => {
  expect(loadConfig(z.object({ ...COMMON_SETTINGS, ...PROVIDER_SETTINGS }), { [name]: url })).toMatchObject({
    faults: [{ path: name, message: expect.stringMatching(fault) }],
  });
});
