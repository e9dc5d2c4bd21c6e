/** What an error of a call means: its kind, by which operators know what to do, and its cause. */
import type { CallFailure } from "@adrelay/core";

/** Why a call failed. */
export interface FailureKind {
  readonly code: CallFailure;
  /** The error's own code, such as ENOTFOUND; undefined if it has none. */
  readonly cause: string | undefined;
}

/** The proxy can't be reached, or refuses to reach the provider. */
export class ProxyError extends Error {
  override readonly name = "ProxyError";
  /** For logs, in the form of an error code. */
  readonly why: string | undefined;

  constructor(why: string | undefined) {
    super("the proxy can't be used");
    this.why = why;
  }
}

/** Classifies an error that undici reported. Errors are told apart by their code, never by their message. */
export function describeFailure(error: Error): FailureKind {
  if (error instanceof ProxyError) {
    return { code: "proxy_failed", cause: error.why };
  }
  const cause = causeOf(error);
  const code = KINDS.find(({ pattern }) => pattern.test(cause ?? ""))?.code ?? "connection_lost";
  return { code, cause };
}

/**
 * The code of an error, or its class. Only a short token is returned: texts can contain addresses, or what a provider sent.
 * Node's codes for OpenSSL's errors may contain a slash.
 */
export function causeOf(error: Error): string | undefined {
  if (error instanceof ProxyError) {
    return error.why ?? error.name;
  }
  const code = "code" in error && typeof error.code === "string" ? error.code : error.name;
  return /^[A-Za-z][A-Za-z0-9_/]{1,63}$/.test(code) ? code.replaceAll("/", "_") : undefined;
}

/** By error codes of Node (its documents on errors, TLS and dns), OpenSSL and undici. The first match counts. */
const KINDS: readonly { readonly pattern: RegExp; readonly code: CallFailure }[] = [
  { code: "dns_failed", pattern: /^(ENOTFOUND|ENODATA|ESERVFAIL|EREFUSED|EAI_\w+)$/ },
  {
    code: "certificate_invalid",
    // Why OpenSSL refuses the provider's certificate, then why the provider refuses ours.
    pattern:
      /CERT|^UNABLE_TO_|^CRL_|^INVALID_(CA|PURPOSE)$|^PATH_LENGTH_EXCEEDED$|^HOSTNAME_MISMATCH$|ALERT_(UNKNOWN_CA|ACCESS_DENIED)$/,
  },
  // Only connections to a proxy have a limit for headers.
  { code: "proxy_failed", pattern: /^UND_ERR_(PRX_\w+|HEADERS_TIMEOUT)$/ },
  { code: "answer_too_large", pattern: /^UND_ERR_HEADERS_OVERFLOW$/ },
  {
    code: "unreachable",
    pattern:
      /^(ECONNREFUSED|EHOSTUNREACH|EHOSTDOWN|ENETUNREACH|ENETDOWN|EADDRNOTAVAIL|ETIMEDOUT|UND_ERR_CONNECT_TIMEOUT)$/,
  },
];
