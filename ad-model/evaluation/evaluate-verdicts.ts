import { readFileSync } from "node:fs";
import { basename } from "node:path";
import { fileURLToPath } from "node:url";
import { AD_LINKS, type Judgment, judgeAnswer } from "@adrelay/verdict";
import { z } from "zod";
import { loadCatalog } from "../../apps/ad-server/src/catalog/load-catalog.ts";
import { describeShare, type Share, shareOf } from "./share.ts";
import type { SummaryRow } from "./summary.ts";

const adServer = (path: string) => fileURLToPath(new URL(`../../apps/ad-server/${path}`, import.meta.url));
const VERDICTS = adServer("testdata/verdicts.jsonl");
const HIDDEN_MENTIONS = adServer("testdata/hidden-mentions.jsonl");
const CATALOG = adServer("catalog/catalog.yaml");

/** An answer with its right verdict. */
const labelledAnswerSchema = z.strictObject({
  id: z.string(),
  /** The id of an ad of the shipped catalogue. */
  ad: z.string(),
  language: z.string(),
  verdict: z.enum(["ok", "no_ad_used"]),
  disclosed: z.boolean().optional(),
  link: z.enum(AD_LINKS).optional(),
  /** Why the answer is hard. */
  hard: z.string().optional(),
  /** What hides the mention or the label, or doesn't. */
  kind: z.string().optional(),
  /** Whether the answer was written before or after the reading of hidden text was built. */
  written: z.enum(["before", "after"]).optional(),
  text: z.string(),
});
type LabelledAnswer = z.infer<typeof labelledAnswerSchema>;

/** The answers of one file, and what the ad server makes of them. */
interface VerdictFigures {
  readonly file: string;
  readonly answers: number;
  /** Of the answers that were judged `ok`, those that are. */
  readonly precision: Share;
  /** Of the answers that are `ok`, those that were judged so. */
  readonly recall: Share;
  /** The answers whose verdict, disclosure or link is wrong. */
  readonly wrong: readonly { readonly id: string; readonly kind: string; readonly judgment: Judgment }[];
}

/** The figures for the table of all figures. They aren't split by language. */
export function verdictRows(figures: readonly VerdictFigures[]): SummaryRow[] {
  return figures.flatMap(({ file, precision, recall }) => [
    { name: `${basename(file)}: answers judged to use the ad that do`, all: precision },
    { name: `${basename(file)}: answers that use the ad judged so`, all: recall },
  ]);
}

/** Judges the labelled answers of the ad server as it does itself, and prints the figures and every wrong answer. */
export function evaluateVerdicts(print: (line: string) => void): readonly VerdictFigures[] {
  const products = loadProducts();
  return [VERDICTS, HIDDEN_MENTIONS].map((file) => {
    const figures = figuresOf(file, products);
    const { answers, precision, recall, wrong } = figures;
    print(`\n== ${file}`);
    print(
      `verdicts of ${answers} answers: precision ${describeShare(precision)}, recall ${describeShare(recall)}`,
    );
    print(`wrong in verdict, disclosure or link: ${wrong.length}`);
    for (const { id, kind, judgment } of wrong) {
      print(`  ${id} (${kind}): ${JSON.stringify(judgment)}`);
    }
    return figures;
  });
}

type Products = ReadonlyMap<string, Parameters<typeof judgeAnswer>[1]>;

function loadProducts(): Products {
  const catalog = loadCatalog(CATALOG);
  return new Map(
    (catalog.kind === "ok" ? catalog.ads : []).map((ad) => [
      ad.id,
      { productName: ad.product_name, advertiser: ad.advertiser, landingUrl: ad.landing_url },
    ]),
  );
}

function figuresOf(file: string, products: Products): VerdictFigures {
  const judged = readFileSync(file, "utf8")
    .trim()
    .split("\n")
    .map((line) => labelledAnswerSchema.parse(JSON.parse(line)))
    .map((answer) => ({ answer, judgment: judgeAnswer(answer.text, productOf(answer, products)) }));
  const isRight = ({ answer, judgment }: (typeof judged)[number]) => answer.verdict === judgment.verdict;
  const judgedOk = judged.filter(({ judgment }) => judgment.verdict === "ok");
  const labelledOk = judged.filter(({ answer }) => answer.verdict === "ok");
  return {
    file,
    answers: judged.length,
    precision: shareOf(judgedOk, isRight),
    recall: shareOf(labelledOk, isRight),
    wrong: judged
      .filter(({ answer, judgment }) => !isAsLabelled(answer, judgment))
      .map(({ answer: { id, kind, hard }, judgment }) => ({ id, kind: kind ?? hard ?? "", judgment })),
  };
}

/** An ad that the catalogue doesn't have is mentioned nowhere, so its answers are found to be wrong. */
function productOf({ ad }: LabelledAnswer, products: Products) {
  return products.get(ad) ?? { productName: "", advertiser: "", landingUrl: "" };
}

function isAsLabelled({ verdict, disclosed, link }: LabelledAnswer, judgment: Judgment): boolean {
  if (judgment.verdict === "no_ad_used") {
    return verdict === "no_ad_used";
  }
  return (
    verdict === "ok" &&
    (disclosed === undefined || disclosed === judgment.disclosed) &&
    (link === undefined || link === judgment.link)
  );
}
