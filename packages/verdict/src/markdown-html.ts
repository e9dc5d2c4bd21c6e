import MarkdownIt from "markdown-it";

/**
 * As chats render it: CommonMark with tables, struck text and raw HTML. Links stay as they are written, since markdown-it
 * makes a wrong ASCII form of a domain in capitals (KÖLN.example). Whoever follows them encodes them.
 */
const MARKDOWN = Object.assign(new MarkdownIt({ html: true }), { normalizeLink: (link: string) => link });
const HTML_DOCUMENT = /^\s*(?:<\?xml[^>]{0,200}>\s*)?<(?:!doctype\s+html|html)\b/i;
const TAG = /<\/?([A-Za-z][^\s<>/]*)([\s/][^<>]*)?>/g;
const FOOTNOTE = /^( {0,3})\[\^([^\]\s]{1,100})\]:/gm;

const HTML_ELEMENTS = new Set(
  (
    "a abbr acronym address area article aside audio b base basefont bdi bdo big blockquote body br button canvas caption " +
    "center cite code col colgroup data datalist dd del details dfn dialog dir div dl dt em embed fieldset figcaption " +
    "figure font footer form frame frameset h1 h2 h3 h4 h5 h6 head header hgroup hr html i iframe img input ins kbd label " +
    "legend li link main map mark marquee menu meta meter nav nobr noembed noframes noscript object ol optgroup option " +
    "output p param picture pre progress q rp rt ruby s samp script search section select slot small source span strike " +
    "strong style sub summary sup table tbody td template textarea tfoot th thead time title tr track tt u ul var video " +
    "wbr svg g path text tspan defs desc metadata rect circle math mi mn mo mrow ms mtext semantics annotation " +
    "annotation-xml foreignobject"
  ).split(" "),
);

/** The HTML that a chat shows for an answer. An answer that is an HTML document is shown as such. */
export function htmlOf(answer: string): string {
  const text = answer.replace(/^\ufeff/, "");
  const html = HTML_DOCUMENT.test(text) ? text : MARKDOWN.render(withFootnotes(withQuotesJoined(text)));
  return html.replace(TAG, (tag, name: string, rest = "") =>
    HTML_ELEMENTS.has(name.toLowerCase()) || rest.includes("=") ? tag : tag.replace("<", "&lt;"),
  );
}

/** A quote that begins in the line after a text goes on with it. */
function withQuotesJoined(text: string): string {
  let isJoinable = false;
  return text
    .split("\n")
    .map((line) => {
      const isQuote = /^ {0,3}>/.test(line);
      const joined = isQuote && isJoinable ? line.replace(">", "") : line;
      isJoinable = !isQuote && line.trim() !== "";
      return joined;
    })
    .join("\n");
}

/**
 * CommonMark takes `[^1]: Text` for the definition of a link. It is a footnote, shown as text if something refers to
 * it, and not at all otherwise.
 */
function withFootnotes(text: string): string {
  const references = new Map<string, number>();
  for (const [, label = ""] of text.matchAll(/\[\^([^\]\s]{1,100})\]/g)) {
    references.set(label, (references.get(label) ?? 0) + 1);
  }
  return text.replace(FOOTNOTE, (_, indent: string, label: string) =>
    (references.get(label) ?? 0) > 1 ? `${indent}[^${label}]\\:` : `${indent}<span hidden>`,
  );
}
