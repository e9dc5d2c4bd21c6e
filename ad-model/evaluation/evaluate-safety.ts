import { loadJoinedAds } from "./evaluated-catalogs.ts";
import {
  type Frame,
  loadFrames,
  loadHastySentences,
  loadSensitiveSentences,
  loadThirdSentences,
  type SensitiveSentence,
} from "./evaluated-sets.ts";
import { describeJudgment, excerpt } from "./evaluation-report.ts";
import { type FramedSentence, fillFrame, framedSentences, SURROUNDINGS } from "./framed-sentences.ts";
import { type Evaluation, type JudgePrompt, type Judgment, judgeOfAds } from "./judge-prompts.ts";
import { describeShare, shareOf } from "./share.ts";
import { type SummaryRow, shareRow } from "./summary.ts";

export interface JudgedSentence extends FramedSentence {
  readonly language: string;
  readonly judgment: Judgment;
}

const getsNoAd = ({ judgment }: { readonly judgment: Judgment }) => judgment.outcome !== "fill";
const isStrong = ({ sentence }: JudgedSentence) => sentence.isStrong;

/** Judges sensitive sentences alone and inside of harmless prompts whose wishes get ads. */
export async function evaluateSafety(evaluation: Evaluation): Promise<SummaryRow[]> {
  const { print } = evaluation;
  const judge = await judgeOfAds(loadJoinedAds(), evaluation);
  const frames = loadFrames();
  const empty = frames.map((frame) => ({ ...frame, judgment: judge({ prompt: fillFrame(frame, "") }) }));
  const judgeFramed = (sentences: readonly SensitiveSentence[]) => judgeSentences(sentences, frames, judge);
  const judged = judgeFramed(loadSensitiveSentences());
  print("\n== safety: sensitive sentences alone and in harmless prompts");
  print(
    `without a sentence, ${describeShare(shareOf(empty, (frame) => !getsNoAd(frame)))} frames get an ad; these don't:`,
  );
  for (const { id, text, judgment } of empty.filter(getsNoAd)) {
    print(`  ${id} ${describeJudgment(judgment)}: ${excerpt(text)}`);
  }
  print(describeSafety(judged));
  print("strong sentences that get an ad:");
  for (const line of judged.filter((framed) => isStrong(framed) && !getsNoAd(framed))) {
    print(`  ${describeSentence(line)}`);
  }
  // What is missed of these sets isn't listed, so that nobody writes texts or phrases for it.
  const hasty = judgeFramed(loadHastySentences());
  const third = judgeFramed(loadThirdSentences());
  print(`hasty sentences:\n${describeSafety(hasty)}`);
  print(`sentences of the third set:\n${describeSafety(third)}`);
  const withWish = new Set(empty.filter((frame) => !getsNoAd(frame)).map(({ id }) => id));
  return [
    ...safetyRows("Strong sentences without an ad", judged.filter(isStrong), withWish),
    ...safetyRows(
      "Quiet sentences without an ad",
      judged.filter((framed) => !isStrong(framed)),
      withWish,
    ),
    ...safetyRows("Hasty sentences without an ad", hasty, withWish),
    ...safetyRows("Third set, strong sentences without an ad", third, withWish),
    shareRow("Harmless prompts around them that get an ad", empty, (frame) => !getsNoAd(frame)),
  ];
}

/** Judges each sentence alone and in the frames. */
export function judgeSentences(
  sentences: readonly SensitiveSentence[],
  frames: readonly Frame[],
  judge: JudgePrompt,
): JudgedSentence[] {
  return framedSentences(sentences, frames).map((framed) => ({
    ...framed,
    language: framed.sentence.language,
    judgment: judge({ prompt: framed.prompt }),
  }));
}

/** For each kind of surroundings and each strength, how many sentences were rejected and how many found no ad. */
export function describeSafety(judged: readonly JudgedSentence[]): string {
  const count = (lines: readonly JudgedSentence[], outcome: Judgment["outcome"]) =>
    String(lines.filter(({ judgment }) => judgment.outcome === outcome).length).padStart(8);
  const rows = SURROUNDINGS.flatMap((around) =>
    [true, false].flatMap((strong) => {
      const lines = judged.filter((line) => line.around === around && isStrong(line) === strong);
      if (lines.length === 0) {
        return [];
      }
      const counts = [count(lines, "reject"), count(lines, "no_fill"), count(lines, "fill")].join("");
      const name = `${around}, ${strong ? "strong" : "quiet"}`;
      return `  ${name.padEnd(22)}${counts}   ${describeShare(shareOf(lines, getsNoAd))} without an ad`;
    }),
  );
  return [`  ${"".padEnd(22)}  reject no_fill    fill`, ...rows].join("\n");
}

export function describeSentence({ sentence, around, frame, judgment }: JudgedSentence): string {
  const place = frame === "" ? around : `${around} ${frame}`;
  return `(${sentence.language}, ${sentence.topic}, ${place}) ${describeJudgment(judgment)}: ${excerpt(sentence.text)}`;
}

/** @param withWish the frames that get an ad without a sentence; the others would hide what safety misses */
function safetyRows(
  name: string,
  judged: readonly JudgedSentence[],
  withWish: ReadonlySet<string>,
): SummaryRow[] {
  const isForeign = ({ around }: JudgedSentence) => around === "other language";
  const isAlone = ({ around }: JudgedSentence) => around === "alone";
  const inOwn = judged.filter((line) => !isAlone(line) && !isForeign(line));
  return [
    shareRow(`${name}: alone`, judged.filter(isAlone), getsNoAd),
    shareRow(`${name}: in prompts of their language`, inOwn, getsNoAd),
    shareRow(
      `${name}: in such prompts that otherwise get an ad`,
      inOwn.filter(({ frame }) => withWish.has(frame)),
      getsNoAd,
    ),
    shareRow(`${name}: in prompts of other languages`, judged.filter(isForeign), getsNoAd),
  ];
}
