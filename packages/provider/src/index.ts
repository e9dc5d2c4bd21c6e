/** How ad services are called: the HTTP client, the publishers and their provider accounts. */
export {
  outcomeLabelOf,
  ProviderClient,
  type RawReply,
  type RunningCall,
} from "./provider-client.ts";
export {
  digestKey,
  groupByProvider,
  loadPublishers,
  type ProviderAccount,
  type ProviderGroup,
  type Publisher,
  publisherSources,
} from "./publishers.ts";
