import { FRAME_KINDS, type Frame, type SensitiveSentence } from "./evaluated-sets.ts";

/** What is around a sentence: nothing, a frame of its language, or a frame of another language. */
export const SURROUNDINGS = ["alone", ...FRAME_KINDS, "other language"] as const;
type Surroundings = (typeof SURROUNDINGS)[number];

export interface FramedSentence {
  readonly sentence: SensitiveSentence;
  readonly around: Surroundings;
  /** Empty if the sentence is alone. */
  readonly frame: string;
  readonly prompt: string;
}

/** In how many frames of other languages each sentence stands. */
const FOREIGN_FRAMES = 2;

/** Each sentence alone, in all frames of its language, and in two frames of other languages. */
export function framedSentences(
  sentences: readonly SensitiveSentence[],
  frames: readonly Frame[],
): FramedSentence[] {
  return sentences.flatMap((sentence, index) => {
    const foreign = frames.filter(({ language }) => language !== sentence.language);
    return [
      { sentence, around: "alone" as const, frame: "", prompt: sentence.text },
      ...frames
        .filter(({ language }) => language === sentence.language)
        .map((frame) => framed(sentence, frame, frame.kind)),
      ...chooseForeign(foreign, index).map((frame) => framed(sentence, frame, "other language")),
    ];
  });
}

/** Neighbouring sentences get different languages and frames, and the same ones in every run. */
function chooseForeign(foreign: readonly Frame[], index: number): Frame[] {
  return Array.from({ length: FOREIGN_FRAMES }, (_, turn) => {
    // A step that shares no factor with common numbers of frames, so that all frames have their turn.
    const at = ((index * FOREIGN_FRAMES + turn) * 37) % foreign.length;
    return foreign.slice(at, at + 1);
  }).flat();
}

function framed(sentence: SensitiveSentence, frame: Frame, around: Surroundings): FramedSentence {
  return { sentence, around, frame: frame.id, prompt: fillFrame(frame, sentence.text) };
}

/** The frame with a text in its place, quoted as JSON if the frame is JSON. */
export function fillFrame({ text: frame }: Pick<Frame, "text">, text: string): string {
  const isJson = /^\s*[[{]\s*["{]/.test(frame);
  const quoted = isJson ? JSON.stringify(text).slice(1, -1) : text;
  return frame.replace("{S}", () => quoted);
}
