/** What the ad server's user of Redis may not do. */
import { isForbiddenByRedis } from "@adrelay/core";
import type { MissingRights } from "@adrelay/service-kit";
import type { Redis } from "ioredis";
import { z } from "zod";
import { RIGHTS_KEY } from "./keys.ts";
import { loadScript } from "./redis-store.ts";

const failedSchema = z.array(z.tuple([z.string(), z.string()]));

/** Names the commands that Redis doesn't permit on the ad server's keys. Rejects if Redis gave no answer. */
export async function loadMissingRights(redis: Redis): Promise<MissingRights> {
  const { source, sha } = loadScript("rights");
  const inScripts = await redis
    .eval(source, 1, RIGHTS_KEY)
    .then((reply) => failedSchema.parse(reply).flatMap(forbiddenOf), forbids("eval"));
  const byHash = await redis.evalsha(sha, 1, RIGHTS_KEY).then(() => [], forbids("evalsha"));
  return { needed: [...new Set([...inScripts, ...byHash])].sort(), wanted: [] };
}

/** Names a command of the script if Redis didn't permit it. */
function forbiddenOf([command, message]: readonly [string, string]): string[] {
  return isForbiddenByRedis(new Error(message)) ? [command] : [];
}

function forbids(command: string): (error: unknown) => string[] {
  return (error) => {
    if (!isForbiddenByRedis(error)) {
      throw error;
    }
    return [command];
  };
}
