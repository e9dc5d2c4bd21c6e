/** The doctor's check of the providers: whether each can be reached and accepts our key; if not, what to do. */
import { randomUUID } from "node:crypto";
import { adAckIdSchema, type DoctorCheck } from "@adrelay/contract";
import { type CallFailure, isServiceForm, type ProviderReply } from "@adrelay/core";
import type { ProviderClient, PublisherDirectory, SharedAccount } from "@adrelay/provider";

export interface ProviderCheckDeps {
  readonly provider: Pick<ProviderClient, "acknowledge" | "proxyOf">;
  readonly publishers: PublisherDirectory;
}

/**
 * Whether each provider answers and accepts our key. An empty object is sent, which is no acknowledgment: it has neither an
 * id nor a text. Any answer to it shows that the provider answers.
 */
export function checkProviders(
  { provider, publishers }: ProviderCheckDeps,
  timeoutMs: number,
): Promise<DoctorCheck[]> {
  return Promise.all(
    publishers.accounts.map(async (shared) => {
      const requestId = `doctor-${randomUUID()}`;
      const adAckId = adAckIdSchema.parse(randomUUID());
      const { account } = shared;
      const reply = await provider.acknowledge({ account, body: "{}", requestId, adAckId, timeoutMs });
      return describeProvider(shared, provider.proxyOf(account), reply);
    }),
  );
}

function describeProvider(
  shared: SharedAccount,
  proxy: string | undefined,
  reply: ProviderReply,
): DoctorCheck {
  const name = `provider:${shared.name}`;
  const { origin, pathname, protocol } = new URL(shared.account.url);
  const way = proxy === undefined ? "" : ` through the proxy ${proxy}`;
  const where = `${origin}${pathname.replace(/\/$/, "")}${way} for ${shared.publishers.join(", ")}`;
  if (reply.kind === "failed") {
    const { code, cause } = reply;
    const why = cause === undefined ? code : `${code} (${cause})`;
    const advice = adviceWith(protocol === "https:" ? "HTTPS_PROXY" : "HTTP_PROXY");
    return { name, status: "fail", detail: `${where}: ${why}: ${advice[code]}` };
  }
  return { name, ...describeAnswer(where, reply) };
}

/** Only an answer in the service's own form has met the service, and with it the key. The others may come from the edge. */
function describeAnswer(
  where: string,
  { status, body }: Extract<ProviderReply, { kind: "answered" }>,
): Omit<DoctorCheck, "name"> {
  const isServices = status < 500 && (status < 300 || status >= 400) && isServiceForm(body);
  if (status === 401 || (status === 403 && isServices)) {
    return { status: "fail", detail: `${where}: key refused (${status})` };
  }
  return isServices
    ? { status: "ok", detail: `${where}: answers ${status}, and accepts the key` }
    : { status: "warn", detail: `${where}: answers ${status}, which doesn't show whether the key is right` };
}

/** What to do about each failure. `proxyVariable` is the one that counts for the scheme of the URL. */
function adviceWith(proxyVariable: "HTTP_PROXY" | "HTTPS_PROXY"): Readonly<Record<CallFailure, string>> {
  return {
    timeout: "it gave no answer in time: see whether it is slow, or a firewall drops what we send",
    unreachable: `nothing answers there: check host and port of its URL, and whether it needs a proxy (${proxyVariable})`,
    dns_failed: "its name can't be resolved: check the host of its URL, and this machine's DNS",
    certificate_invalid:
      "one side refuses the other's certificate: check PROVIDER_CA_FILE, PROVIDER_CLIENT_CERT_FILE, the host of its URL and the clocks",
    proxy_failed: `the proxy can't be used: check ${proxyVariable} with its user and password, or name the host in NO_PROXY`,
    connection_lost:
      "the connection ended without an answer: check whether its URL should be https:// or http://, and whether it wants a client certificate",
    answer_too_large:
      "it answers with more than the relay reads: check whether its URL leads to an ad service",
    overloaded: "this process had no room for its answer: see adrelay_overload_refused_total",
  };
}
