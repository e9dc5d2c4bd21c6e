/** The HTTP client of the ad service, and who uses it with which key. */
export {
  type AcknowledgeCall,
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
export { type Trip, TripSwitch } from "./trip-switch.ts";
