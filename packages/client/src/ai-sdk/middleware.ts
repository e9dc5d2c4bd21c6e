/** A middleware for the AI SDK: an ad in the user's message, the answer passed through, one acknowledgment a turn. */
import type { LanguageModelMiddleware } from "ai";
import type { Relay } from "../relay.ts";
import { watchReadable } from "../watch-answer.ts";
import type { AdContext, InjectionRequest } from "../wire.ts";
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
import { keyOf, makeStep, makeWaitingTurns, type Step, type Turn } from "./turns.ts";

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

/** A call of the model as it goes out; `step` is there if it has an ad. */
interface Call {
  readonly params: CallParams;
  /** The same without an ad. */
  readonly plain: CallParams;
  readonly step: Step | undefined;
}

type CallModel<Result> = (params: CallParams) => PromiseLike<Result>;

/** A model's server that refuses the prompt with the ad may take the user's own. */
const REFUSED: readonly unknown[] = [400, 413, 422];

/** For `wrapLanguageModel({ model, middleware: adMiddleware({ relay }) })`. Make one for a relay's client, and keep it. */
export function adMiddleware(options: AdMiddlewareOptions): LanguageModelMiddleware {
  const begin = makeBegin(options);
  return {
    specificationVersion: "v4",
    wrapGenerate: async ({ model, params }) => {
      const call = await begin(params);
      return watchWhole(await run(call, (chosen) => model.doGenerate(chosen)), call);
    },
    wrapStream: async ({ model, params }) => {
      const call = await begin(params);
      return watchStream(await run(call, (chosen) => model.doStream(chosen)), call);
    },
  };
}

function watchWhole(result: Generated, { step }: Call): Generated {
  const { content, finishReason, usage } = result;
  for (const part of content) {
    step?.add(part);
  }
  step?.add({ type: "finish", finishReason, usage });
  step?.settle();
  return step ? { ...result, content: content.map(step.mark) } : result;
}

function watchStream(result: Streamed, { step }: Call): Streamed {
  if (step === undefined) {
    return result;
  }
  // The model has answered: from now on only a reader who asks keeps the turn from ending.
  step.add({ type: "ping" });
  const marks = new TransformStream({
    transform: (part, controller) => controller.enqueue(step.mark(part)),
  });
  return { ...result, stream: watchReadable(result.stream.pipeThrough(marks), step) };
}

/** The AI SDK's errors of calls have `statusCode` and `isRetryable`, whichever provider they are of. */
async function run<Result>({ params, plain, step }: Call, callModel: CallModel<Result>): Promise<Result> {
  const callPlain = (error: unknown) => {
    if (step !== undefined && REFUSED.includes(Object(error).statusCode)) {
      return callModel(plain);
    }
    throw error;
  };
  try {
    return await callModel(params).then(undefined, callPlain);
  } catch (error) {
    // The AI SDK repeats such a call, so the same ad is kept for it.
    step?.end(Object(error).isRetryable === true);
    throw error;
  }
}

function makeBegin(options: AdMiddlewareOptions): (params: CallParams) => Promise<Call> {
  const { relay, context, turnWaitMs, waitingMax = 1000, onSkip } = options;
  const waiting = makeWaitingTurns(waitingMax);
  const openTurn = async (request: InjectionRequest, key: string, signal: AbortSignal | undefined) => {
    const injected = await relay.inject(request, { signal });
    if (injected.kind === "none") {
      return undefined;
    }
    const { prompt, adResponseId } = injected;
    const shown = relay.watch(injected, { idleMs: turnWaitMs, signal });
    return { text: request.prompt, prompt, adResponseId, shown, key, hasText: false };
  };
  const findTurn = async (params: CallParams, place: UserText | undefined): Promise<Turn | undefined> => {
    const marked = place && waiting.claim(keyOf(findMark(params, place), place.text));
    if (marked !== undefined) {
      return marked;
    }
    const request = await readRequest(params, place, context);
    if (typeof request === "string") {
      void attempt(() => onSkip?.(request));
      return undefined;
    }
    // A mark has no line break, so this is never the key of one.
    const key = keyOf(`\n${request.request_context.session_id}`, request.prompt);
    return waiting.claim(key) ?? openTurn(request, key, params.abortSignal);
  };
  return async (params) => {
    const { [OWN]: _context, ...providerOptions } = params.providerOptions ?? {};
    // A proxy on the way adds no second ad.
    const plain = { ...params, providerOptions, headers: { ...params.headers, "X-Adrelay-Ad": "off" } };
    const place = findUserText(params);
    const turn = await findTurn(params, place);
    if (turn === undefined || place === undefined) {
      return { params: plain, plain, step: undefined };
    }
    const prompt = place.replace(turn.prompt);
    return { params: { ...plain, prompt }, plain, step: makeStep(turn, waiting, params.abortSignal) };
  };
}

/** What to ask the relay for, or why not to. */
async function readRequest(
  params: CallParams,
  place: UserText | undefined,
  context: AdMiddlewareOptions["context"],
): Promise<InjectionRequest | SkipReason> {
  if (place === undefined) {
    return "no_user_text";
  }
  const skip = decideSkip(params, place);
  if (skip !== undefined) {
    return skip;
  }
  // The relay checks it: what isn't an AdContext is refused there, and there is no ad.
  const own = params.providerOptions?.[OWN] as AdContext | undefined;
  const given = own ?? (await attempt(() => context?.(params)));
  return given?.request_context ? { ...given, prompt: place.text } : "no_context";
}

/** What a function of the program throws never reaches the chat. */
async function attempt<Value>(call: () => Value): Promise<Awaited<Value> | undefined> {
  try {
    return await call();
  } catch {
    return undefined;
  }
}
