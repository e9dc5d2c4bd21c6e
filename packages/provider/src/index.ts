/** How ad services are called: the HTTP client, the publishers and their provider accounts. */
export {
  type AcknowledgeCall,
  outcomeLabelOf,
  type ProviderCall,
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
  type ProviderSettings,
  type Publisher,
  type PublisherSources,
  type PublishersResult,
  publisherSources,
} from "./publishers.ts";
