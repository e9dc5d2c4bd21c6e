/** How ad services are called: the HTTP client, the publishers and their provider accounts. */
export { listAccounts, type SharedAccount } from "./accounts.ts";
export { causeOf } from "./call-failures.ts";
export { FileReader, type Finding, isSameFinding, lookAgain, whyUnreadable } from "./file-reader.ts";
export {
  outcomeLabelOf,
  ProviderClient,
  type RunningCall,
} from "./provider-client.ts";
export { NO_PROXIES, type Proxies, proxiesOf, proxyFor } from "./proxies.ts";
export {
  type FoundKey,
  openDirectory,
  type PublisherDirectory,
} from "./publisher-directory.ts";
export {
  digestKey,
  keyVariables,
  type Publisher,
  publisherSources,
} from "./publishers.ts";
export type { PublishersDiff } from "./publishers-diff.ts";
export type { RawReply } from "./reply-collector.ts";
export { prepareBody } from "./request-body.ts";
export { loadTls, type ProviderTls, type TlsResult } from "./tls-files.ts";
export { type Way, Ways } from "./ways.ts";
