/** How ad services are called: the HTTP client, the publishers and their provider accounts. */
export { listAccounts, type SharedAccount } from "./accounts.ts";
export {
  outcomeLabelOf,
  ProviderClient,
  type RunningCall,
} from "./provider-client.ts";
export { proxiesOf } from "./proxies.ts";
export {
  digestKey,
  keyVariables,
  loadPublishers,
  type Publisher,
  publisherSources,
  UNKNOWN_ACK,
  type UnknownAck,
} from "./publishers.ts";
export {
  byteLimitSchema,
  countLimitSchema,
  limitInBytes,
  type Quotas,
  quotasOf,
} from "./quotas.ts";
export type { RawReply } from "./reply-collector.ts";
