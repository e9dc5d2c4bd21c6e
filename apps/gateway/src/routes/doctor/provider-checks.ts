import { randomUUID } from "node:crypto";
import { adAckIdSchema, type DoctorCheck } from "@adrelay/contract";
import type { ProviderReply } from "@adrelay/core";
import type { ProviderAccount, ProviderClient, Publisher } from "@adrelay/provider";

export interface ProviderCheckDeps {
  readonly provider: Pick<ProviderClient, "acknowledge">;
  readonly publishers: readonly Publisher[];
}

/** A provider as some publishers use it, with one key. */
interface UsedAccount {
  readonly account: ProviderAccount;
  readonly publisherIds: string[];
}

/**
 * Whether each provider is there and takes our key. What is sent is no acknowledgment: an empty object has
 * neither an id nor a text, and whatever a provider says of it shows that it answers.
 */
export function checkProviders(
  { provider, publishers }: ProviderCheckDeps,
  timeoutMs: number,
): Promise<DoctorCheck[]> {
  const accounts = [...distinctAccounts(publishers).values()];
  return Promise.all(
    accounts.map(async (used) => {
      const requestId = `doctor-${randomUUID()}`;
      const adAckId = adAckIdSchema.parse(randomUUID());
      const { account } = used;
      return describe(
        used,
        await provider.acknowledge({ account, body: "{}", requestId, adAckId, timeoutMs }),
      );
    }),
  );
}

function distinctAccounts(publishers: readonly Publisher[]): Map<string, UsedAccount> {
  const accounts = new Map<string, UsedAccount>();
  for (const { id, account } of publishers) {
    const key = JSON.stringify([account.url, account.apiKeyHeader.toLowerCase(), account.apiKey]);
    const used = accounts.get(key) ?? { account, publisherIds: [] };
    used.publisherIds.push(id);
    accounts.set(key, used);
  }
  return accounts;
}

function describe({ account, publisherIds }: UsedAccount, reply: ProviderReply): DoctorCheck {
  const name = `provider:${publisherIds[0]}`;
  const { origin, pathname } = new URL(account.url);
  const where = `${origin}${pathname.replace(/\/$/, "")} for ${publisherIds.join(", ")}`;
  if (reply.kind === "failed") {
    return { name, status: "fail", detail: `${where}: ${reply.code}` };
  }
  return reply.status === 401 || reply.status === 403
    ? { name, status: "fail", detail: `${where}: key refused (${reply.status})` }
    : { name, status: "ok", detail: `${where}: answers, and takes the key` };
}
