/**
 * How full Redis is, and how much more intake may put into it (docs/adr/0046).
 *
 * 1. A gateway asks for Redis' memory once a second. A script can't ask it, and a second is long: a caller can send a hundred megabytes
 *    meanwhile. So this says how many bytes all publishers may take together, and the script that accepts an acknowledgment
 *    compares that with the exact sum.
 * 2. Acknowledgments of unknown ids stop first, then those of known ids. What is left is for injections and deliveries.
 * 3. The prompts of open turns aren't acknowledgments yet, so they are in no quota. They have a small share for each publisher.
 * 4. Without a limit of Redis' memory, or without the right to ask, nothing stops.
 */
import type { Redis } from "ioredis";
import type { StoreKeys } from "../redis/keys.ts";
import type { RunScript } from "../redis/scripts.ts";
import { type IntakeRoom, NO_ROOM_LIMIT } from "./rules.ts";

export interface RoomParts {
  readonly redis: Redis;
  readonly run: RunScript;
  readonly keys: StoreKeys;
}

/** How full Redis is. */
export interface RoomView {
  readonly usedBytes: number;
  /** maxmemory, or the machine's memory if that isn't set; 0 if neither is known. */
  readonly limitBytes: number;
  /** What the acknowledgments of all publishers take, as the quotas count. */
  readonly storedBytes: number;
}

/** What intake accepts: acknowledgments of all ids, of known ids only, or none. */
type IntakeLevel = "all" | "known" | "none";

/** The shares of the memory up to which acknowledgments are accepted. */
const UNKNOWN_SHARE = 0.7;
const KNOWN_SHARE = 0.95;
/** The share of the memory that the prompts of one publisher's open turns may take. */
const PROMPTS_SHARE = 0.05;

/** What may be stored in all, for this memory. What isn't stored by acknowledgments is taken as given. */
export function planRoom({ usedBytes, limitBytes, storedBytes }: RoomView): IntakeRoom {
  if (limitBytes === 0) {
    return NO_ROOM_LIMIT;
  }
  const otherBytes = Math.max(usedBytes - storedBytes, 0);
  return {
    unknownBytes: UNKNOWN_SHARE * limitBytes - otherBytes,
    knownBytes: KNOWN_SHARE * limitBytes - otherBytes,
  };
}

export class RoomWatch {
  readonly #parts: RoomParts;
  #memory: RoomView | undefined;
  #room: IntakeRoom = NO_ROOM_LIMIT;

  constructor(parts: RoomParts) {
    this.#parts = parts;
  }

  /** As of the latest answer. */
  get now(): IntakeRoom {
    return this.#room;
  }

  /** As of the latest answer; undefined if there was none, or our user may not ask. */
  get memory(): RoomView | undefined {
    return this.#memory;
  }

  /** Most bytes of the prompts that one publisher's open turns keep. */
  get promptBytesMax(): number {
    const limitBytes = this.#memory?.limitBytes ?? 0;
    return limitBytes === 0 ? Number.POSITIVE_INFINITY : PROMPTS_SHARE * limitBytes;
  }

  /** What intake accepts, as of the latest answer. */
  get accepts(): IntakeLevel {
    const storedBytes = this.#memory?.storedBytes ?? 0;
    if (storedBytes >= this.#room.knownBytes) {
      return "none";
    }
    return storedBytes >= this.#room.unknownBytes ? "known" : "all";
  }

  /** What readiness says of it. */
  warnings(): Record<string, string> {
    const { usedBytes = 0, limitBytes = 1 } = this.#memory ?? {};
    const percent = Math.round((100 * usedBytes) / limitBytes);
    const accepts = this.accepts;
    switch (accepts) {
      case "all":
        return {};
      case "known":
        return { redis_memory: `is used by ${percent} %: acknowledgments of unknown ids get 503` };
      case "none":
        return {
          redis_memory: `is used by ${percent} %: acknowledgments get 503, and what is queued goes out`,
        };
      default:
        return accepts satisfies never;
    }
  }

  /** Asks now. Rejects if Redis doesn't answer. */
  async refresh(): Promise<void> {
    const { redis, run, keys } = this.#parts;
    const [info, stored] = await Promise.all([
      redis.info("memory"),
      run("intake/stored-total", { keys: keys.forEntry(""), args: [] }),
    ]);
    const number = (name: string) => Number(new RegExp(`^${name}:(\\d+)`, "m").exec(info)?.[1] ?? 0);
    const usedBytes = number("used_memory");
    const limitBytes = number("maxmemory") || number("total_system_memory");
    this.#memory = usedBytes > 0 ? { usedBytes, limitBytes, storedBytes: Number(stored) } : undefined;
    this.#room = this.#memory === undefined ? NO_ROOM_LIMIT : planRoom(this.#memory);
  }
}
