/** Guards the way that a publisher's key is replaced: what was sold under the old key is acknowledged under the new one. */

import { ACKNOWLEDGE_PATH, INJECTION_PATH } from "@adrelay/contract";
import { startTestRedis } from "@adrelay/dev-servers";
import { startApp } from "@adrelay/testkit";
import { expect, onTestFinished, test } from "vitest";
import { injectionOf, PROMPTS, post } from "./ad-server.ts";

const [OLD, NEW] = ["key-until-today-0", "key-from-today-on"];

test("ads sold under an old key are acknowledged under the new one, also once the old one is revoked", async () => {
  const redis = await startTestRedis();
  onTestFinished(() => redis.dispose());
  /** Runs `use` on an ad server with these keys and the data of the one before. */
  const withKeys = async <T>(env: Record<string, string>, use: (url: string) => Promise<T>): Promise<T> => {
    const app = await startApp("ad-server", { AD_SERVER_PORT: "0", REDIS_URL: redis.url, ...env });
    try {
      return await use(`http://127.0.0.1:${String(app.listening["port"])}`);
    } finally {
      await app.stop();
    }
  };
  const sell = async (url: string) => {
    const { body } = await post(`${url}${INJECTION_PATH}`, injectionOf(PROMPTS.ok), {
      "X-Service-API-Key": OLD,
    });
    return String(body["ad_response_id"]);
  };
  const acknowledge = (url: string, id: string, key: string) =>
    post(
      `${url}${ACKNOWLEDGE_PATH}`,
      { ad_response_id: id, llm_response: "Any pair will do." },
      { "X-Service-API-Key": key },
    );

  const ids = await withKeys({ AD_SERVER_API_KEYS: OLD }, async (url) => [await sell(url), await sell(url)]);
  const [first = "", second = ""] = ids;
  await withKeys({ AD_SERVER_API_KEYS: `${OLD},${NEW}` }, async (url) => {
    expect((await acknowledge(url, first, NEW)).body).toMatchObject({ code: "other_publisher" });
  });
  const both = { AD_SERVER_API_KEYS: `${OLD}|${NEW}` };
  const third = await withKeys(both, async (url) => {
    expect((await acknowledge(url, first, NEW)).status).toBe(200);
    return sell(url);
  });
  await withKeys({ ...both, AD_SERVER_REVOKED_KEYS: OLD }, async (url) => {
    expect((await acknowledge(url, second, OLD)).body).toMatchObject({ code: "key_revoked" });
    expect((await acknowledge(url, second, NEW)).status).toBe(200);
    expect((await acknowledge(url, third, NEW)).status).toBe(200);
  });
});
