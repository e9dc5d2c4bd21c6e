import { Redis } from "ioredis";

/** How to read a whole key of each type that Redis has. */
const READERS: Readonly<Record<string, (client: Redis, key: string) => Promise<unknown>>> = {
  string: (client, key) => client.get(key),
  hash: (client, key) => client.hgetall(key),
  list: (client, key) => client.lrange(key, 0, -1),
  set: (client, key) => client.smembers(key),
  zset: (client, key) => client.zrange(key, 0, "-1"),
  stream: (client, key) => client.xrange(key, "-", "+"),
};

/** Every key with its whole value, as text: for tests of what must not be there. */
export async function dumpRedis(url: string): Promise<string> {
  const client = new Redis(url);
  try {
    const keys = await client.keys("*");
    const values = await Promise.all(
      keys.map(async (key) => READERS[await client.type(key)]?.(client, key) ?? "unread"),
    );
    return keys.map((key, at) => `${key}=${JSON.stringify(values[at])}`).join("\n");
  } finally {
    client.disconnect();
  }
}
