import { domainToUnicode } from "node:url";

/** The forms in which people write a domain: in ASCII and, for an international domain, in letters. */
export function formsOfDomain(hostname: string): readonly string[] {
  const letters = domainToUnicode(hostname);
  return letters === "" || letters === hostname ? [hostname] : [hostname, letters];
}

/** A host without `www` before it and a dot after it. */
export function bareHost(hostname: string): string {
  return hostname.replace(/^www\./, "").replace(/\.$/, "");
}

/** Whether a host is a domain or one of its subdomains. */
export function isWithin(host: string, domain: string): boolean {
  return host === domain || host.endsWith(`.${domain}`);
}
