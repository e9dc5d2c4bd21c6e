import { type DefaultTreeAdapterTypes, parse } from "parse5";
import { type Appearance, type Attributes, appearanceOf, isSeen, PLAIN } from "./hidden-elements.ts";
import type { LandingPage, LinkTarget } from "./link-targets.ts";
import { closeMark, openMark, withoutMarks } from "./marks.ts";
import { PARAGRAPH_BREAK } from "./readable-text.ts";
import { type StyleSheet, styleSheetOf } from "./style-sheet.ts";
import { isReasoningName } from "./unspoken-tags.ts";

type Element = DefaultTreeAdapterTypes.Element;
type ChildNode = DefaultTreeAdapterTypes.ChildNode;

/** What is still to be done, in the order of the text. */
type Step =
  | { readonly kind: "node"; readonly node: ChildNode; readonly outer: Appearance }
  | { readonly kind: "text"; readonly text: string }
  | { readonly kind: "link_start" }
  | { readonly kind: "link_end"; readonly target: LinkTarget };

/** What the elements of a page are judged by. */
interface Page {
  readonly landingPage: LandingPage;
  readonly styleSheet: StyleSheet;
  /** Address for relative links, if the page sets one. */
  readonly base: string | undefined;
}

/** The first one counts. A browser heeds it wherever it stands. */
const BASE = /<base\b[^<>]{0,500}?\bhref\s*=\s*(?:"([^"<>]*)"|'([^'<>]*)'|([^\s"'<>]+))/i;

function baseOf(html: string): string | undefined {
  return BASE.exec(html)
    ?.slice(1)
    .find((href) => href !== undefined);
}

const BLOCKS = new Set(
  (
    "address article aside blockquote body center dd details dialog dir div dl dt fieldset figcaption figure footer form " +
    "h1 h2 h3 h4 h5 h6 header hgroup hr legend li main menu nav ol option p pre section summary table ul"
  ).split(" "),
);
/** Cells end a phrase, but a table is one paragraph. */
const CELLS = new Set(["td", "th", "tr"]);
const LINE_BREAK = "\n";
/** What a formula leaves blank, such as `\phantom{\text{…}}`. */
const PHANTOM =
  /\\(?:[hv]?phantom|textcolor\{white\}|color\{white\})\s?\{(?:[^{}]|\{(?:[^{}]|\{[^{}]{0,1000}\}){0,1000}\}){0,1000}\}/g;
/** Something that a reader sees and can click, though it is no text. */
const PICTURE = "\u25a0";

/**
 * The text that a reader sees of an HTML page. Links, and parts that are shown only after a click, are enclosed in
 * marks. The walk isn't recursive, since elements may be nested deeply.
 */
export function visibleText(html: string, landingPage: LandingPage): string {
  const page: Page = { landingPage, styleSheet: styleSheetOf(html), base: baseOf(html) };
  const pieces: string[] = [];
  const linkStarts: number[] = [];
  const steps: Step[] = nodeSteps(parse(html).childNodes, PLAIN).reverse();
  for (let step = steps.pop(); step !== undefined; step = steps.pop()) {
    switch (step.kind) {
      case "text":
        // A line break and the end of a source line are one break.
        pieces.push(pieces.at(-1) === LINE_BREAK ? step.text.replace(/^[ \t]*\n/, "") : step.text);
        break;
      case "link_start":
        linkStarts.push(pieces.length);
        break;
      case "link_end":
        endLink(pieces, linkStarts.pop() ?? 0, step.target);
        break;
      case "node":
        for (const next of stepsOf(step.node, step.outer, page).reverse()) {
          steps.push(next);
        }
        break;
      default:
        step satisfies never;
    }
  }
  return pieces.join("");
}

/** A link without anything to click is none. */
function endLink(pieces: string[], from: number, target: LinkTarget): void {
  if (pieces.slice(from).some((piece) => /[^\s\p{Cf}\p{Cc}\ue000-\ue009\u2800\u3164]/u.test(piece))) {
    pieces.splice(from, 0, openMark(target));
    pieces.push(closeMark(target));
  }
}

function nodeSteps(nodes: readonly ChildNode[], outer: Appearance): Step[] {
  return nodes.map((node) => ({ kind: "node", node, outer }));
}

function text(written: string): Step {
  return { kind: "text", text: written };
}

function stepsOf(node: ChildNode, outer: Appearance, { landingPage, styleSheet, base }: Page): Step[] {
  if ("value" in node) {
    return isSeen(outer) ? [text(withoutMarks(node.value).replace(PHANTOM, " "))] : [];
  }
  // Comments and the document's type have no name of a tag. The content of a template is kept apart from its children.
  if (!("tagName" in node)) {
    return [];
  }
  const attributes: Attributes = new Map(node.attrs.map(({ name, value }) => [name, value]));
  const declared = styleSheet.declarationsOf(node.tagName, attributes);
  const appearance = appearanceOf(node.tagName, { attributes, declared }, outer);
  if (appearance.isGone || isCollapsedReasoning(node, attributes)) {
    return [];
  }
  const content = contentOf(node, attributes, appearance);
  const href = node.tagName === "a" ? (attributes.get("href") ?? attributes.get("xlink:href")) : undefined;
  const target = href === undefined ? undefined : landingPage.targetOf(href, base);
  return target === undefined ? content : [{ kind: "link_start" }, ...content, { kind: "link_end", target }];
}

function contentOf(element: Element, attributes: Attributes, appearance: Appearance): Step[] {
  const { tagName, childNodes } = element;
  if (tagName === "br" || tagName === "wbr") {
    return [text(tagName === "br" ? LINE_BREAK : "")];
  }
  if (tagName === "img" || tagName === "input") {
    return isSeen(appearance) ? [text(withoutMarks(replacedText(tagName, attributes)))] : [];
  }
  const inner =
    tagName === "details" && !attributes.has("open")
      ? collapsedSteps(childNodes, appearance)
      : nodeSteps(childNodes, appearance);
  if (BLOCKS.has(tagName)) {
    return [text(PARAGRAPH_BREAK), ...inner, text(PARAGRAPH_BREAK)];
  }
  return CELLS.has(tagName) ? [text(" | "), ...inner, text(" | ")] : inner;
}

/** A browser shows the summary, wherever it stands, and the rest after a click. */
function collapsedSteps(children: readonly ChildNode[], appearance: Appearance): Step[] {
  const summary = children.find((child) => child.nodeName === "summary");
  return [
    ...nodeSteps(summary === undefined ? [] : [summary], appearance),
    text(openMark("collapsed")),
    ...nodeSteps(
      children.filter((child) => child !== summary),
      appearance,
    ),
    text(closeMark("collapsed")),
  ];
}

/** Some chats put a model's reasoning into `<details>`. Reasoning isn't the answer, though a reader can open it. */
function isCollapsedReasoning({ tagName, childNodes }: Element, attributes: Attributes): boolean {
  if (tagName !== "details" || attributes.has("open")) {
    return false;
  }
  const summary = childNodes.find((child) => child.nodeName === "summary");
  const [title] = summary !== undefined && "childNodes" in summary ? summary.childNodes : [];
  return (
    isReasoningName(attributes.get("type") ?? "") ||
    (title !== undefined && "value" in title && REASONING_TITLE.test(title.value))
  );
}

/** "Thought for 5 seconds", but not "Thoughts on cushioning". */
const REASONING_TITLE =
  /^[^\p{L}]*(?:(?:show|view|my|model|ai) )?(?:thinking|thoughts?|reasoning|thought process|chain of thought|thought for .{1,20}|(?:gedanken|denk)\p{L}*|raisonnement|réflexion|razonamiento|pensamiento|raciocínio|思考(?:過程)?|推論|सोच)[^\p{L}]*$/iu;

/** The text of an image is shown only if there is no image. */
function replacedText(tagName: "img" | "input", attributes: Attributes): string {
  if (tagName === "input") {
    return ` ${attributes.get("value") ?? attributes.get("placeholder") ?? ""} `;
  }
  if ((attributes.get("src") ?? attributes.get("srcset") ?? "").trim() === "") {
    return attributes.get("alt") ?? "";
  }
  return ["width", "height"].some((side) => /^[01](?:px)?$/.test(attributes.get(side) ?? "")) ? "" : PICTURE;
}
