import { fileURLToPath } from "node:url";
import { expect, test } from "vitest";
import { z } from "zod";
import { redisTargetFaults } from "./redis-target.ts";
import { COMMON_SETTINGS, loadConfig } from "./settings.ts";

const pathOf = (name: string) =>
  fileURLToPath(new URL(`../../provider/testdata/tls/${name}`, import.meta.url));
const CERT = pathOf("relay.pem");
const KEY = pathOf("relay-key.pem");
const URL_WITH_TLS = "rediss://redis.test:6380";

/** The faults of these settings, as `name: message`. */
function faultsOf(env: Record<string, string>): string[] {
  const loaded = loadConfig(z.object(COMMON_SETTINGS), env);
  const faults = loaded.kind === "faulty" ? loaded.faults : redisTargetFaults(loaded.config);
  return faults.map(({ path, message }) => `${path}: ${message}`);
}

test.each([
  [
    { REDIS_TLS_CA_FILE: "/no/such.pem" },
    /^REDIS_TLS_CA_FILE: the file that it names can't be read \(ENOENT\)$/,
  ],
  [{ REDIS_TLS_KEY_FILE: "key-by-mistake" }, /^(?!.*key-by-mistake)REDIS_TLS_KEY_FILE: .*ENOENT/],
  [{ REDIS_TLS_CA_FILE: KEY }, /^REDIS_TLS_CA_FILE: .*relay-key\.pem is not in PEM/],
  [{ REDIS_TLS_CERT_FILE: pathOf("make-certificates.sh") }, /^REDIS_TLS_CERT_FILE: .* is not in PEM/],
  [{ REDIS_TLS_CERT_FILE: CERT }, /^REDIS_TLS_KEY_FILE: is not set/],
  [{ REDIS_TLS_KEY_FILE: KEY }, /^REDIS_TLS_CERT_FILE: is not set/],
  [
    { REDIS_TLS_CERT_FILE: CERT, REDIS_TLS_KEY_FILE: pathOf("provider-key.pem") },
    /^REDIS_TLS_KEY_FILE: doesn't belong/,
  ],
  [
    { REDIS_TLS_SERVERNAME: "redis.test", REDIS_URL: "redis://redis.test" },
    /^REDIS_TLS_SERVERNAME: .*rediss/,
  ],
])("%j is named", (env, fault) => {
  const faults = faultsOf({ REDIS_URL: URL_WITH_TLS, ...env });
  expect(faults).toEqual([expect.stringMatching(fault)]);
});

test("an authority, a certificate and its key that fit have no fault", () => {
  const env = { REDIS_TLS_CA_FILE: pathOf("ca.pem"), REDIS_TLS_CERT_FILE: CERT, REDIS_TLS_KEY_FILE: KEY };
  expect(faultsOf({ REDIS_URL: URL_WITH_TLS, ...env })).toEqual([]);
});
