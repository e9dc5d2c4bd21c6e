/** How ad services are called: the HTTP client, the publishers and their provider accounts. */
export {
  outcomeLabelOf,
  ProviderClient,
  type RawReply,
  type RunningCall,
} from "./provider-client.ts";
export {
  digestKey,
  listAccounts,
  loadPublishers,
  type ProviderAccount,
  type Publisher,
  publisherSources,
  type SharedAccount,
} from "./publishers.ts";
