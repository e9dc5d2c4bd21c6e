/** @adrelay/client: ads in LLM answers by an Adrelay relay. docs/client.md is the guide. */
export {
  type ClientErrorCode,
  type ProblemCode,
  RelayError,
  RelayProblemError,
} from "./errors.ts";
export type { RelayEvent } from "./events.ts";
export type { Injected, Injection, NotInjected } from "./injection.ts";
export type { RelayOptions, WaitUntil } from "./options.ts";
export { memoryOutbox, type Outbox, type StoredAcknowledgment } from "./outbox.ts";
export type { AcknowledgmentOutcome, NoAdReason } from "./outcomes.ts";
export type { RetryOptions } from "./plan-send.ts";
export {
  type AnswerCall,
  createRelay,
  type FlushOptions,
  type InjectOptions,
  type Relay,
  type TextAnswer,
  type WatchOptions,
  type WithAdOptions,
} from "./relay.ts";
export type { ShownText, TextOf } from "./shown-text.ts";
export type { AnswerStream, ChunkOf, Watched } from "./watch-answer.ts";
export type {
  AcknowledgmentStatus,
  AdContext,
  InjectionRequest,
  RequestContext,
  UserAttributes,
} from "./wire.ts";
