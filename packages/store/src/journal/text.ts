/** The text of a turn, made of what its steps have written. */

/** All that a turn may have written; more is cut. */
export const TURN_TEXT_MAX_BYTES = 1024 * 1024;

/** A step's text as this process has it. It stands for all pieces of the step. */
export interface StepText {
  readonly step: number;
  readonly text: string;
}

export interface TurnText {
  readonly text: string;
  /** A part of the journal couldn't be read, and is left out. */
  readonly isUnreadable: boolean;
}

/** A piece as journal/drop-turn.lua describes it. */
const PIECE = /^(\d{1,9}),(\d{1,15}|\*),(.*)$/s;
const BETWEEN_STEPS = "\n\n";

/** The texts of the steps, in their order. A step that wrote nothing isn't seen. */
export function turnTextOf(stored: readonly string[], own?: StepText): TurnText {
  const texts = new Map<number, string>();
  const whole = new Set<number>(own === undefined ? [] : [own.step]);
  let isUnreadable = false;
  for (const piece of stored) {
    const [, number, sequence, text] = PIECE.exec(piece) ?? [];
    const step = Number(number);
    if (text === undefined) {
      isUnreadable = true;
    } else if (sequence === "*") {
      texts.set(step, text);
      whole.add(step);
    } else if (!whole.has(step)) {
      texts.set(step, (texts.get(step) ?? "") + text);
    }
  }
  if (own !== undefined) {
    texts.set(own.step, own.text);
  }
  const inOrder = [...texts].sort(([one], [other]) => one - other).map(([, text]) => text);
  return { text: cutText(inOrder.filter((text) => text !== "").join(BETWEEN_STEPS)), isUnreadable };
}

/** A text of at most TURN_TEXT_MAX_BYTES in UTF-8, cut between two characters. */
export function cutText(text: string): string {
  const LONGEST_BYTES = 3;
  if (text.length * LONGEST_BYTES <= TURN_TEXT_MAX_BYTES) {
    return text;
  }
  const bytes = Buffer.from(text);
  if (bytes.length <= TURN_TEXT_MAX_BYTES) {
    return text;
  }
  let end = TURN_TEXT_MAX_BYTES;
  while (isContinued(bytes[end])) {
    end -= 1;
  }
  return bytes.toString("utf8", 0, end);
}

/** Whether a byte of UTF-8 belongs to a character that began before it. */
function isContinued(byte: number | undefined): boolean {
  return byte !== undefined && byte >= 0x80 && byte < 0xc0;
}
