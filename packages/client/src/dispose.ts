/// <reference lib="esnext.disposable" preserve="true" />
/**
 * The symbols of `using` and `await using`. A runtime without them gets those that compilers use in their place. The types say
 * that these are the well-known symbols, because a program can't tell the difference.
 */
export const DISPOSE: typeof Symbol.dispose = (Symbol.dispose ??
  Symbol.for("Symbol.dispose")) as typeof Symbol.dispose;
export const ASYNC_DISPOSE: typeof Symbol.asyncDispose = (Symbol.asyncDispose ??
  Symbol.for("Symbol.asyncDispose")) as typeof Symbol.asyncDispose;
