/** @adrelay/client/ai-sdk: a middleware for the AI SDK's language models. docs/client.md is the guide. */
export { type AdMiddlewareOptions, adMiddleware } from "./middleware.ts";
export type { SkipReason } from "./prompt.ts";
