/**
 * The journal of turns: what stands in Redis between "an ad was put into a prompt" and "an acknowledgment is queued".
 *
 * 1. An ad response with a turn is awaiting until the turn ends, and it is never missed.
 * 2. Each call changes a turn in one script, and may be repeated if its fate is unknown.
 * 3. A turn ends once: by its last step, by a worker when it is due, by its backend's own acknowledgment, or by an erasure. Its text
 *    and prompt leave the journal in the same step.
 */
import { publisherIdSchema } from "@adrelay/contract";
import type { Redis } from "ioredis";
import { z } from "zod";
import type { RoomWatch } from "../intake/room.ts";
import { limitArg } from "../intake/rules.ts";
import { Batcher } from "../redis/batcher.ts";
import { idOf, memberOf, type StoreKeys } from "../redis/keys.ts";
import {
  decodeReply,
  ENDED_STEP_CODES,
  type EndedStepCode,
  HELD_CODES,
  JOINED_CODES,
  OPENED_CODES,
  type RunScript,
  readEach,
  WRITTEN_CODES,
} from "../redis/scripts.ts";
import { cutText } from "./text.ts";
import type { TurnSettler } from "./turn-settler.ts";
import type {
  EndedStep,
  FinalStep,
  HeldKind,
  HeldTurn,
  JoinedTurn,
  JoinQuestion,
  NewTurn,
  OpenedTurn,
  SettledTurn,
  StepWrite,
  Turns,
  WriteAnswer,
} from "./types.ts";

export interface TurnJournalParts {
  readonly redis: Pick<Redis, "exists" | "ping">;
  readonly run: RunScript;
  readonly keys: StoreKeys;
  readonly settler: Pick<TurnSettler, "settle">;
  readonly room: Pick<RoomWatch, "promptBytesMax">;
}

const PROMPT_MAX_BYTES = 1024 * 1024;
const POINTERS_MAX = 256;
/** A pointer is set when a tool call is first seen, and the wait begins at the end of its step. */
const POINTER_EXTRA_MS = 3_600_000;
const STEPS_MAX = 1000;
/** All texts of a call go in one write, so the call is bounded. */
const WRITES_PER_CALL = 200;
const CHARACTERS_PER_CALL = 1_000_000;
/** How often a last step asks again because the other steps ended meanwhile. */
const SETTLINGS_MAX = 3;

export class TurnJournal implements Turns {
  readonly #parts: TurnJournalParts;
  readonly #opener: Batcher<NewTurn, "opened" | "known">;

  constructor(parts: TurnJournalParts) {
    this.#parts = parts;
    const { run, keys } = parts;
    this.#opener = new Batcher(async (turns) => {
      const entryKeys = keys.forEntries(turns.map(({ id }) => memberOf(id)));
      const replies = await run("journal/open", { keys: entryKeys, args: turns.flatMap(openArgsOf) });
      return readEach(replies, (reply) => decodeReply(OPENED_CODES, reply));
    });
  }

  async open(turn: NewTurn): Promise<OpenedTurn> {
    const { id, publisher } = turn;
    const kind = await this.#opener.submit(turn);
    return kind === "known" ? { kind } : { kind, step: { id, publisher, step: 1 } };
  }

  async write(writes: readonly StepWrite[]): Promise<readonly WriteAnswer[]> {
    const answers = await Promise.all(callsOf(writes).map((some) => this.#writeSome(some)));
    return answers.flat();
  }

  async #writeSome(writes: readonly StepWrite[]): Promise<readonly WriteAnswer[]> {
    const args = writes.flatMap(writeArgsOf);
    const { run, keys } = this.#parts;
    const replies = await run("journal/write", { keys: keys.forEntry(""), args });
    return readEach(replies, (reply) => decodeReply(WRITTEN_CODES, reply));
  }

  async hold(turn: HeldTurn): Promise<HeldKind> {
    const {
      step: { id, step },
      number,
      prompt,
      pointers,
      waitMs,
      awaits,
    } = turn;
    const { run, keys, room } = this.#parts;
    const isKept = Buffer.byteLength(prompt) <= PROMPT_MAX_BYTES;
    const kept = isKept ? pointers.slice(0, POINTERS_MAX) : [];
    const reply = await run("journal/hold", {
      keys: [...keys.forEntry(""), ...kept.map((pointer) => keys.turnPointerPrefix + pointer)],
      args: [
        ...[memberOf(id), isKept ? prompt : "", waitMs, waitMs + POINTER_EXTRA_MS, step, number],
        ...[limitArg(room.promptBytesMax), awaits],
      ],
    });
    const kind = decodeReply(HELD_CODES, reply);
    return kind === "held" && !isKept ? "bare" : kind;
  }

  /** Redis reads all sockets that are ready before it answers any command of them. */
  async catchUp(): Promise<void> {
    await this.#parts.redis.ping();
  }

  async join({ pointer, token, isRetry = false }: JoinQuestion): Promise<JoinedTurn> {
    const { redis, run, keys } = this.#parts;
    const pointerKey = keys.turnPointerPrefix + pointer;
    // Nearly every new message is no retry. This tells it for a part of what the script costs.
    if (isRetry && (await redis.exists(pointerKey)) === 0) {
      return { kind: "unknown" };
    }
    const reply = await run("journal/join", {
      keys: [...keys.forEntry(""), pointerKey],
      args: [token, STEPS_MAX, isRetry ? 1 : 0],
    });
    const [code, ...more] = z.array(z.string()).parse(reply);
    const kind = decodeReply(JOINED_CODES, code);
    if (kind !== "joined") {
      return { kind };
    }
    const [member, step, publisher, prompt] = joinedSchema.parse(more);
    return { kind, step: { id: idOf(member), step, publisher }, prompt };
  }

  async endStep(ended: EndedStep): Promise<"waiting" | "ended" | "behind"> {
    const code = await this.#endStep(ended);
    if (code === "behind") {
      return code;
    }
    return code === "ended" || code === "overtaken" ? "ended" : "waiting";
  }

  async settle(final: FinalStep): Promise<SettledTurn> {
    const { step, outcome, finding, requestId, traceparent } = final;
    const { id } = step;
    const own = { ...step, outcome, text: final.text, finding };
    for (let settlings = 1; ; settlings += 1) {
      const settled = await this.#parts.settler.settle({ id, requestId, traceparent, own });
      if (settled !== "open" && settled !== "changed") {
        return settled;
      }
      // Another step runs. The last one of them to end settles the turn, or a worker does.
      const whole = { step, sequence: "*", text: cutText(final.text), waitMs: 0, outcome } as const;
      const left = await this.#endStep(whole);
      const isToBeSettled = left === "waiting" || left === "overtaken";
      if (!isToBeSettled || settlings === SETTLINGS_MAX) {
        return left === "ended" ? left : "open";
      }
    }
  }

  async #endStep({ step, sequence, text, waitMs, outcome }: AnyEndedStep): Promise<EndedStepCode> {
    const { run, keys } = this.#parts;
    const reply = await run("journal/end-step", {
      keys: keys.forEntry(""),
      args: [memberOf(step.id), step.step, sequence, text, waitMs, outcome],
    });
    return decodeReply(ENDED_STEP_CODES, reply);
  }
}

/** `*`: the step is final, and the text is all that it has written. */
type AnyEndedStep = Omit<EndedStep, "sequence"> & { readonly sequence: EndedStep["sequence"] | "*" };

const joinedSchema = z.tuple([z.string(), z.coerce.number(), publisherIdSchema, z.string()]);

function openArgsOf(turn: NewTurn): (string | number)[] {
  const { id, publisher, dialect, token, session = "" } = turn;
  const deadlineMs = turn.kind === "manual" ? turn.deadlineMs : "";
  const ad = turn.kind === "manual" ? undefined : turn.ad;
  const { productName = "", landingUrl = "" } = ad ?? {};
  return [memberOf(id), publisher, dialect, token, session, deadlineMs, productName, landingUrl];
}

function writeArgsOf({ step: { id, step }, sequence, text }: StepWrite): (string | number)[] {
  return [memberOf(id), step, sequence, text === undefined ? 0 : 1, text ?? ""];
}

/** The writes in their order, in calls of bounded size. */
function callsOf(writes: readonly StepWrite[]): StepWrite[][] {
  const calls: StepWrite[][] = [];
  let call: StepWrite[] = [];
  let size = 0;
  for (const write of writes) {
    if (call.length === 0 || call.length === WRITES_PER_CALL || size >= CHARACTERS_PER_CALL) {
      call = [];
      calls.push(call);
      size = 0;
    }
    call.push(write);
    size += write.text?.length ?? 0;
  }
  return calls;
}
