/** Endings of domains that ads are seen with. A name with another ending needs a scheme or www. to be a link. */
const ENDINGS =
  "com|net|org|io|ai|app|dev|co|info|biz|xyz|shop|store|online|site|top|click|link|club|live|pro|de|fr|es|pt|it|nl|at|ch|uk|ie|in|jp|br|ru|cn|eu|us|ca|au|me|tv|ly|gg|to|cc|zip|mov|example|test|invalid|onion";
const HOST = "[\\p{L}\\p{N}](?:[\\p{L}\\p{N}-]{0,62})(?:\\.[\\p{L}\\p{N}-]{1,63}){0,6}";
const LINK = new RegExp(
  `\\b(?:h(?:tt|xx)ps?|ftp|wss?|data|javascript|mailto|file|tel):(?://)?(?:[^\\s/@]{0,64}@)?(${HOST})?|\\bwww\\.(${HOST})|(?<![\\p{L}\\p{N}.])(${HOST}\\.(?:${ENDINGS}))(?![\\p{L}\\p{N}-]|\\.[\\p{L}\\p{N}])`,
  "giu",
);
const ADDRESS = /(?<![\d.])\d{1,3}(?:\.\d{1,3}){3}(?![\d.])/;
const HIDDEN =
  /\b[\p{L}\p{N}-]{2,63} ?(?:\[\.\]|\(\.\)|\{\.\}|\[dot\]|\(dot\)| dot ) ?(?:com|net|org|io|ru|co)\b/iu;
/** Frameworks that are written as domains are. */
const NAMES = new Set(["asp.net", "ado.net", "vb.net", "socket.io"]);

/** A link to somewhere else than the landing page's domain; undefined if there is none. */
export function foreignLink(text: string, landingHost: string): string | undefined {
  // Browsers take the full stop of East Asia for a dot; between Latin letters it ends no sentence.
  const plain = text.replace(/(?<=[\p{Script=Latin}\d])\u3002(?=[\p{Script=Latin}\d])/gu, ".");
  // Without a sign of one there is no need to look closely.
  if (!/[.:]\S|\bdot\b/i.test(plain)) {
    return undefined;
  }
  if (ADDRESS.test(plain) || (/\bdot\b|[.][\])}]/i.test(plain) && HIDDEN.test(plain))) {
    return "has an address off the landing domain";
  }
  for (const [, withScheme, withWww, bare] of plain.matchAll(LINK)) {
    const host = (withScheme ?? withWww ?? bare ?? "").toLowerCase();
    if (!NAMES.has(host) && !isWithin(host, landingHost)) {
      return "has a link off the landing domain";
    }
  }
  return undefined;
}

function isWithin(host: string, landingHost: string): boolean {
  const domain = landingHost.replace(/^www\./, "");
  return host === domain || host.endsWith(`.${domain}`);
}
