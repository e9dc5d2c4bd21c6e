/** What a Redis that can't be used says or does to a connection of ours that sends nothing. */
import { connect } from "node:net";
import type { RedisOptions } from "ioredis";
import { probeTls, speaksTls } from "./redis-tls-faults.ts";

/** Redis accepts no more connections. The message is Redis' own. */
class ConnectionRefusal extends Error {
  override readonly name = "ConnectionRefusal";
}

const GREETING_TIMEOUT_MS = 300;

/** Why Redis turned a connection away: its own error, or what is known of it otherwise. */
export type Refusal =
  | { readonly kind: "error"; readonly error: Error }
  | { readonly kind: "known"; readonly why: string };

/**
 * Why Redis turns connections away; undefined if that isn't known, as when it accepts them or nothing listens. Without TLS, a
 * Redis that accepts no more connections says so, and one that accepts them is silent.
 */
export async function loadRefusal({ host, port, path, tls }: RedisOptions): Promise<Refusal | undefined> {
  const place = path ? { path } : { host: host ?? "127.0.0.1", port: port ?? 6379 };
  if (tls !== undefined) {
    const why = await probeTls({ ...tls, ...place }, GREETING_TIMEOUT_MS);
    return why === undefined ? undefined : { kind: "known", why };
  }
  const greeting = await loadGreeting(place);
  if (greeting.kind === "silence" && (await speaksTls(place, GREETING_TIMEOUT_MS))) {
    return { kind: "known", why: "speaks TLS there: REDIS_URL must begin with rediss://" };
  }
  return greeting.kind === "error" ? greeting : undefined;
}

type Greeting =
  | { readonly kind: "error"; readonly error: Error }
  | { readonly kind: "silence" }
  | { readonly kind: "away" };

function loadGreeting(place: { readonly path: string } | { readonly host: string; readonly port: number }) {
  return new Promise<Greeting>((resolve) => {
    const socket = connect(place);
    const end = (greeting: Greeting) => {
      socket.destroy();
      resolve(greeting);
    };
    socket.setTimeout(GREETING_TIMEOUT_MS, () => end({ kind: socket.connecting ? "away" : "silence" }));
    socket.on("error", () => end({ kind: "away" })).on("close", () => end({ kind: "away" }));
    socket.once("data", (bytes) => {
      const [, message] = /^-(.*)/.exec(bytes.toString("latin1")) ?? [];
      end(
        message === undefined
          ? { kind: "away" }
          : { kind: "error", error: new ConnectionRefusal(message.trim()) },
      );
    });
  });
}
