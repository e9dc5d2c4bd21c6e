/**
 * Who may use an ops listener: by which name it is called, and with which token. A page in an operator's browser can lead
 * its own host name to a listener of ours (DNS rebinding), so names that aren't in the list are refused.
 */
import { hash, timingSafeEqual } from "node:crypto";
import { isIP } from "node:net";
import type { Express, Request, RequestHandler, Response } from "express";
import { sendProblem } from "./express/json-http.ts";
import type { LoginGuard, OpsEndpoint } from "./login-guard.ts";

/** The settings of an ops listener that say who may use it. */
interface OpsAccessSettings {
  readonly OPS_HOSTS?: readonly string[] | undefined;
  readonly OPS_TRUSTED_PROXIES?: readonly string[] | undefined;
  readonly METRICS_TOKEN?: string | undefined;
}

export interface OpsAccess {
  readonly settings: OpsAccessSettings;
  /** The host that it listens on. It may be called by this name. */
  readonly listenHost: string;
  readonly guard: LoginGuard;
}

/** Refuses requests with a foreign Host, and learns callers' addresses from trusted proxies. */
export function secureOpsApp(app: Express, { settings, listenHost }: OpsAccess): void {
  app.set("trust proxy", [...(settings.OPS_TRUSTED_PROXIES ?? [])]);
  const names = new Set(
    ["localhost", listenHost, ...(settings.OPS_HOSTS ?? [])].map((name) => name.toLowerCase()),
  );
  app.use((request, response, next) => {
    const { host } = request.headers;
    // Only HTTP/1.0 may come without one, and no browser speaks that.
    if (host === undefined || isAllowedHost(host, names)) {
      next();
    } else {
      sendProblem(response, "host_not_allowed", {
        detail: "call it by an IP address, as localhost, or by a name of the setting OPS_HOSTS",
      });
    }
  });
}

/** An IP address can't be rebound: it isn't looked up. */
function isAllowedHost(header: string, names: ReadonlySet<string>): boolean {
  const [, bracketed, plain = ""] = /^(?:\[([^\]]*)\]|([^:]*))(?::\d+)?$/.exec(header) ?? [];
  const name = (bracketed ?? plain).toLowerCase().replace(/\.$/, "");
  return isIP(name) !== 0 || names.has(name);
}

/** Lets only those pass who send METRICS_TOKEN; everybody, if it isn't set. */
export function requireMetricsToken({
  settings: { METRICS_TOKEN: token },
  guard,
}: OpsAccess): RequestHandler {
  if (token === undefined) {
    return (_request, _response, next) => next();
  }
  const known = digestToken(token);
  const find = (given: Buffer) => timingSafeEqual(known, given) || undefined;
  return (request, response, next) => {
    if (logIn({ endpoint: "metrics", guard, find }, request, response) !== undefined) {
      next();
    }
  };
}

export interface Login<Holder> {
  readonly endpoint: OpsEndpoint;
  readonly guard: LoginGuard;
  /** Who has a token with this digest. All tokens must be compared, each in constant time. */
  find(digest: Buffer): Holder | undefined;
}

/** Who sent the request's bearer token; undefined if a refusal was sent. An address with many refusals has to wait. */
export function logIn<Holder>(
  { endpoint, guard, find }: Login<Holder>,
  request: Request,
  response: Response,
): Holder | undefined {
  const address = addressOf(request);
  const token = /^Bearer (.+)$/i.exec(request.headers.authorization ?? "")?.[1];
  const waitSeconds = token === undefined ? 0 : guard.waitSeconds(address);
  if (waitSeconds > 0) {
    // Right tokens wait as well: otherwise this would tell a guesser which token is right.
    guard.count(endpoint, "slowed");
    response.set("Retry-After", String(waitSeconds));
    sendProblem(response, "too_many_logins", {
      detail: `refused tokens came from ${address}; from there, none is looked at for ${waitSeconds} s`,
    });
    return undefined;
  }
  const holder = token === undefined ? undefined : find(digestToken(token));
  if (holder === undefined) {
    if (token === undefined) {
      guard.count(endpoint, "missing");
    } else {
      guard.recordRefusal(endpoint, address);
    }
    response.set("WWW-Authenticate", "Bearer");
    sendProblem(response, "unauthenticated", { detail: "send Authorization: Bearer with a valid token" });
  }
  return holder;
}

/** The address of a request, that of a trusted proxy's caller included. An IPv4 address has no IPv6 form. */
export function addressOf(request: Request): string {
  return (request.ip ?? "unknown").replace(/^::ffff:(?=\d+\.)/i, "");
}

function digestToken(token: string): Buffer {
  return Buffer.from(hash("sha256", token, "hex"), "hex");
}
