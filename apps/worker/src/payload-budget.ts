/**
 * Bounds the bytes of large bodies that the worker holds for its attempts, over all provider accounts. A small body comes
 * with its job and needs no room here: the number of jobs bounds these.
 *
 * 1. An attempt that finds no room doesn't wait for it, because it would hold one of the worker's jobs. It is parked.
 * 2. A publisher may hold as many bytes as it leaves free (the dynamic thresholds of shared-memory switches). So however
 *    many bytes some publishers hold, there are free ones for another.
 * 3. A publisher that holds none may take all that is free. While nobody holds any, a body of any size is let in: no
 *    acknowledgment is too large to be ever delivered.
 * 4. Small bodies don't wait for large ones of their publisher. Nobody knows how large a parked one is before it is fetched.
 *    So after a refusal a few are released in any case, and one more for each small one that came since. In this way at most
 *    as many large ones as small ones are released in vain, and those few.
 */
import type { PublisherId } from "@adrelay/contract";

/** Gives the bytes back; a second call does nothing. */
export type ReleaseBytes = () => void;

/** A publisher's use of the bytes. */
interface BytesUser {
  heldBytes: number;
  /** The body that found no room last; 0 if one has found room since. */
  refusedBytes: number;
  /** How many small ones came since the last refusal. */
  smallSince: number;
}

/** So many bodies are released in any case: they may be small. */
const RELEASED_MIN = 2;

export interface PayloadBudgetOptions {
  readonly bytesMax: number;
  /** Whether the worker delivers for one publisher only at present. Then nothing is left free for others. */
  isForOne(): boolean;
}

const NOTHING: ReleaseBytes = () => {};

export class PayloadBudget {
  readonly #options: PayloadBudgetOptions;
  readonly #users = new Map<PublisherId, BytesUser>();
  #heldBytes = 0;

  constructor(options: PayloadBudgetOptions) {
    this.#options = options;
  }

  /** How many bytes are held now. */
  get heldBytes(): number {
    return this.#heldBytes;
  }

  /** Takes room for a body; undefined if there is none. */
  take(publisher: PublisherId, bytes: number): ReleaseBytes | undefined {
    const known = this.#users.get(publisher);
    if (bytes === 0) {
      if (known !== undefined) {
        known.smallSince += 1;
      }
      return NOTHING;
    }
    const user = known ?? { heldBytes: 0, refusedBytes: 0, smallSince: 0 };
    this.#users.set(publisher, user);
    if (!this.#hasRoomFor(user, bytes)) {
      user.refusedBytes = bytes;
      user.smallSince = 0;
      return undefined;
    }
    user.refusedBytes = 0;
    this.#hold(user, bytes);
    let isReleased = false;
    return () => {
      if (!isReleased) {
        isReleased = true;
        this.#hold(user, -bytes);
      }
    };
  }

  /**
   * How many more bodies of a publisher may be released now. As many as could be let in if they are as large as the one that
   * found no room last, and some that may be small. Unbounded if none was refused.
   */
  roomOf(publisher: PublisherId): number {
    const user = this.#users.get(publisher);
    if (user === undefined || user.refusedBytes === 0) {
      return Number.POSITIVE_INFINITY;
    }
    const { refusedBytes: bytes } = user;
    // Each body that is let in raises what is held and lowers what is free.
    const fitting = this.#options.isForOne()
      ? this.#freeBytes / bytes
      : ((this.#freeBytes - user.heldBytes) / bytes + 1) / 2;
    return Math.max(Math.floor(fitting), RELEASED_MIN + user.smallSince);
  }

  get #freeBytes(): number {
    return this.#options.bytesMax - this.#heldBytes;
  }

  #hasRoomFor(user: BytesUser, bytes: number): boolean {
    const isFirst = user.heldBytes === 0 || this.#options.isForOne();
    const thresholdBytes = isFirst ? this.#freeBytes : this.#freeBytes - user.heldBytes;
    return bytes <= thresholdBytes || this.#heldBytes === 0;
  }

  #hold(user: BytesUser, bytes: number): void {
    user.heldBytes += bytes;
    this.#heldBytes += bytes;
  }
}
