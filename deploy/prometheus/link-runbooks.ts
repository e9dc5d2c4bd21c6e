/** Where the shipped rules link to: an address that nobody has (RFC 2606). */
export const SHIPPED_RUNBOOKS = "https://adrelay.example/docs/runbooks/";

/** The rules with links to the runbooks below another address. */
export function linkRunbooks(rules: string, address: string): string {
  const folder = address.endsWith("/") ? address : `${address}/`;
  return rules.replaceAll(`runbook_url: ${SHIPPED_RUNBOOKS}`, () => `runbook_url: ${folder}`);
}
