import type { PromptModel, TextReading } from "../prompt-model/prompt-model.ts";
import { runsOf, sentencesOf, spansOf, turnsOf } from "../prompt-model/prompt-parts.ts";
import { headAndTail } from "../prompt-model/text-words.ts";
import type { NamedTopic, SensitivePhrases } from "./sensitive-phrases.ts";

/**
 * A text gets no ad if the probability that an ad would be wrong is at least this. An ad that isn't shown costs a
 * fraction of a cent, but an ad beside someone's grief costs a publisher its users.
 */
const REJECT_MIN = 0.6;
/** The same, if the text has a phrase that hints at a topic. */
const REJECT_MIN_HINTED = 0.15;
/** The same for a span of ten words of a longer sentence. */
const REJECT_MIN_SPAN = 0.9;
/** The same for a clause or a run of six words, which may be torn out of a harmless sentence. */
const REJECT_MIN_RUN = 0.995;
/** In a prompt of more sentences, spans and runs aren't judged, so that the work is bounded. */
const RUNS_SENTENCES_MAX = 12;
/** Sentences with a hint that are judged on their own. Others of a long prompt are judged together with neighbours. */
const HINTED_MAX = 48;
/** Parts into which all other sentences are put, neighbours together, so that the work is bounded. */
const PARTS_MAX = 48;
/** Characters of all spans together, and of all runs. If they have more, the longer ones are shortened. */
const PIECES_CHARS_MAX = 16_000;
/** Of a longer prompt only the beginning and the end are checked, for the same reason. */
const CHECKED_CHARS_MAX = 100_000;

type Topics = Pick<TextReading, "topics">;

/**
 * Judges whether any ad beside a prompt would be wrong. The worst part decides: the prompt is read as a whole and
 * sentence by sentence, so that a harmless wish beside a cry for help doesn't outweigh it. Of a transcript all turns of
 * the user count, also earlier ones. A strong phrase forbids an ad, whatever the model says; see sensitive-phrases.ts.
 */
export class PromptSafety {
  readonly #model: Pick<PromptModel, "read">;
  readonly #phrases: Pick<SensitivePhrases, "find">;

  constructor(model: Pick<PromptModel, "read">, phrases: Pick<SensitivePhrases, "find">) {
    this.#model = model;
    this.#phrases = phrases;
  }

  /**
   * The topic that forbids an ad; undefined if there is none.
   *
   * @param whole the reading of the whole prompt
   */
  find(prompt: string, whole: Topics): string | undefined {
    const turns = textsOfUser(prompt);
    const sentences = [...new Set(turns.flatMap(sentencesOf))].map((text) => this.#named(text));
    // Turns as well, since a line break may be within a phrase.
    const strong = [...turns.map((turn) => this.#named(turn)), ...sentences].find(
      ({ named }) => named?.isStrong === true,
    );
    if (strong !== undefined) {
      return strong.named?.topic;
    }
    const { hinted = [], plain = [] } = Object.groupBy(sentences, ({ named }) =>
      named === undefined ? "plain" : "hinted",
    );
    return (
      this.#firstTopic(textsOf(hinted.slice(0, HINTED_MAX)), REJECT_MIN_HINTED, prompt, whole) ??
      this.#firstTopic(
        groupsOf(textsOf([...plain, ...hinted.slice(HINTED_MAX)])),
        REJECT_MIN,
        prompt,
        whole,
      ) ??
      this.#firstTopic(piecesIn(sentences, spansOf), REJECT_MIN_SPAN, prompt, whole) ??
      this.#firstTopic(piecesIn(sentences, runsOf), REJECT_MIN_RUN, prompt, whole) ??
      likeliest(whole.topics, REJECT_MIN)
    );
  }

  #named(text: string): NamedText {
    return { text, named: this.#phrases.find(text) };
  }

  /** The likeliest topic of the first text that has any. A prompt of one sentence is read already. */
  #firstTopic(texts: readonly string[], least: number, prompt: string, whole: Topics): string | undefined {
    for (const text of texts) {
      const { topics } = text === prompt ? whole : this.#model.read(text);
      const topic = likeliest(topics, least);
      if (topic !== undefined) {
        return topic;
      }
    }
    return undefined;
  }
}

/** A text with the topic of the phrase in it. */
interface NamedText {
  readonly text: string;
  readonly named: NamedTopic | undefined;
}

const textsOf = (texts: readonly NamedText[]) => texts.map(({ text }) => text);

function piecesIn(sentences: readonly NamedText[], cut: (sentence: string) => string[]): readonly string[] {
  return sentences.length > RUNS_SENTENCES_MAX
    ? []
    : shortened([...new Set(textsOf(sentences).flatMap(cut))], PIECES_CHARS_MAX);
}

/** The texts, which together have at most so many characters. Of those with more than their share both ends are left. */
function shortened(texts: readonly string[], charsMax: number): readonly string[] {
  const chars = texts.reduce((sum, text) => sum + text.length, 0);
  const end = Math.floor(charsMax / texts.length / 2);
  return chars <= charsMax ? texts : texts.map((text) => headAndTail(text, end, end));
}

/** The likeliest topic, if all topics together are at least so likely. */
function likeliest(topics: ReadonlyMap<string, number>, least: number): string | undefined {
  const sum = [...topics.values()].reduce((total, probability) => total + probability, 0);
  if (sum < least) {
    return undefined;
  }
  return [...topics].reduce((best, entry) => (entry[1] > best[1] ? entry : best), ["", 0] as const)[0];
}

function textsOfUser(prompt: string): string[] {
  return turnsOf(prompt, CHECKED_CHARS_MAX / 2)
    .filter(({ isUser }) => isUser)
    .map((turn) => turn.text);
}

/** Puts neighbouring sentences together if there are more than PARTS_MAX. */
function groupsOf(sentences: readonly string[]): readonly string[] {
  const size = Math.ceil(sentences.length / PARTS_MAX);
  return size <= 1
    ? sentences
    : Array.from({ length: Math.ceil(sentences.length / size) }, (_, index) =>
        sentences.slice(index * size, (index + 1) * size).join("\n"),
      );
}
