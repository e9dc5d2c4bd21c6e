/** A middleware for the AI SDK: an ad in the user's message, the answer passed through, one acknowledgment a turn. */
import type { LanguageModelMiddleware } from "ai";
import type { Relay } from "../relay.ts";
import { watchReadable } from "../watch-answer.ts";
import type { AdContext } from "../wire.ts";
import {
  type CallParams,
  decideSkip,
  findMark,
  findUserText,
  type Generated,
  OWN,
  type SkipReason,
  type Streamed,
  type UserText,
} from "./prompt.ts";
import { keyOf, makeStep, makeWaitingTurns, type Step, type Turn, type WaitingTurns } from "./turns.ts";

export interface AdMiddlewareOptions {
  readonly relay: Relay;
  /** The context of calls that have none in `providerOptions.adrelay`. Without one there is no ad. */
  readonly context?: (params: CallParams) => AdContext | undefined | PromiseLike<AdContext | undefined>;
  /** How long a turn waits for the results of its tools. Default: the client's `idleStreamMs`. */
  readonly turnWaitMs?: number;
  /** How many turns can wait. Above it, the one that waits longest is acknowledged. Default: 1000. */
  readonly waitingMax?: number;
  /** Called with the reason if no ad is asked for. */
  readonly onSkip?: (reason: SkipReason) => void;
}

/** How an answer is passed through. */
type Watch<Result> = (result: Result, step: Step) => Result;

/** A model's server that refuses the prompt with the ad may take the user's own. */
const REFUSED: readonly unknown[] = [400, 413, 422];

/** For `wrapLanguageModel({ model, middleware: adMiddleware({ relay }) })`. Make one for a relay's client, and keep it. */
export function adMiddleware(options: AdMiddlewareOptions): LanguageModelMiddleware {
  const waiting = makeWaitingTurns(options.waitingMax ?? 1000);
  const findTurn = makeFindTurn(options, waiting);
  const run = async <Result>(
    params: CallParams,
    callModel: (params: CallParams) => PromiseLike<Result>,
    watch: Watch<Result>,
  ) => {
    const { [OWN]: context, ...providerOptions } = params.providerOptions ?? {};
    // A proxy on the way adds no second ad.
    const plain = { ...params, providerOptions, headers: { ...params.headers, "X-Adrelay-Ad": "off" } };
    const place = findUserText(params);
    const turn = await findTurn(params, place, context);
    if (!(turn && place)) {
      return callModel(plain);
    }
    const step = makeStep(turn, waiting, params.abortSignal);
    // The AI SDK's errors of calls have `statusCode` and `isRetryable`, whichever provider they are of.
    const callPlain = (error: unknown) => {
      if (REFUSED.includes(Object(error).statusCode)) {
        return callModel(plain);
      }
      throw error;
    };
    try {
      const prompt = place.replace(turn.injected.prompt);
      return watch(await callModel({ ...plain, prompt }).then(undefined, callPlain), step);
    } catch (error) {
      // The AI SDK repeats such a call, so the same ad is kept for it.
      step.settle(Object(error).isRetryable);
      throw error;
    }
  };
  return {
    specificationVersion: "v4",
    wrapGenerate: ({ model, params }) => run(params, (chosen) => model.doGenerate(chosen), watchWhole),
    wrapStream: ({ model, params }) => run(params, (chosen) => model.doStream(chosen), watchStream),
  };
}

const watchWhole: Watch<Generated> = (result, step) => {
  const { content, finishReason, usage } = result;
  for (const part of [...content, { type: "finish", finishReason, usage } as const]) {
    step.add(part);
  }
  step.settle();
  return { ...result, content: content.map(step.mark) };
};

const watchStream: Watch<Streamed> = (result, step) => {
  // The model has answered: from now on only a reader who asks keeps the turn from ending.
  step.add({ type: "ping" });
  const marks = new TransformStream({
    transform: (part, controller) => controller.enqueue(step.mark(part)),
  });
  return { ...result, stream: watchReadable(result.stream.pipeThrough(marks), step) };
};

type FindTurn = (
  params: CallParams,
  place: UserText | undefined,
  /** The call's own. */
  context: unknown,
) => Promise<Turn | undefined>;

/** Finds the turn that waits for a call, or asks for an ad and begins one. */
function makeFindTurn(options: AdMiddlewareOptions, waiting: WaitingTurns): FindTurn {
  const { relay, context, turnWaitMs, onSkip } = options;
  return async (params, place, own) => {
    const marked = place && waiting.claim(keyOf(findMark(place), place.text));
    if (marked) {
      return marked;
    }
    const skip = decideSkip(params, place);
    // The relay checks it: what isn't an AdContext is refused there, and there is no ad.
    const given = skip
      ? undefined
      : ((own as AdContext | undefined) ?? (await attempt(() => context?.(params))));
    if (!(place && given?.request_context)) {
      void attempt(() => onSkip?.(skip ?? "no_context"));
      return undefined;
    }
    const { text } = place;
    // A mark has no line break, so this is never the key of one.
    const key = keyOf(`\n${given.request_context.session_id}`, text);
    const repeated = waiting.claim(key);
    if (repeated) {
      return repeated;
    }
    const signal = params.abortSignal;
    const injected = await relay.inject({ ...given, prompt: text }, { signal });
    return injected.kind === "none"
      ? undefined
      : { injected, text, shown: relay.watch(injected, { idleMs: turnWaitMs, signal }), key, separator: "" };
  };
}

/** What a function of the program throws never reaches the chat. */
async function attempt<Value>(call: () => Value): Promise<Awaited<Value> | undefined> {
  try {
    return await call();
  } catch {
    return undefined;
  }
}
