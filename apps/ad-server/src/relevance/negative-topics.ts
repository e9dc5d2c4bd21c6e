import { setImmediate as turn } from "node:timers/promises";
import type { Ad } from "../catalog/ad.ts";
import type { PromptModel, TextReading } from "../prompt-model/prompt-model.ts";
import { readTextsOf } from "./ad-reading.ts";
import { likenessOf, type NeedProfile, profileOf } from "./need-profile.ts";

/** How alike a prompt and a negative topic must be, from 0 to 1. It is low, because no ad is the safer mistake. */
const LIKENESS_MIN = 0.2;
/** Least share of a topic's likeliest need. Below it, the topic names nothing that the model knows. */
const CLEAR_SHARE_MIN = 0.06;

/** Topics that are read in one turn of the event loop. */
const TURN_TOPICS = 50;

type Reader = Pick<PromptModel, "read">;

/**
 * Negative topics: an ad isn't shown beside a prompt that is about one of its negative topics. Topics are judged by
 * meaning, as the model reads them: "running shoes" also excludes a prompt that asks for trainers for a marathon.
 */
export class NegativeTopics {
  readonly #profilesOf = new Map<string, readonly NeedProfile[]>();

  /** Reads each topic once, in many turns of the event loop. */
  static async build(ads: readonly Ad[], model: Reader): Promise<NegativeTopics> {
    const topics = new NegativeTopics();
    const known = new Map<string, NeedProfile>();
    for (const topic of new Set(ads.flatMap(({ negative_topics = [] }) => negative_topics))) {
      if (known.size % TURN_TOPICS === 0) {
        await turn();
      }
      known.set(topic, profileOfTopic(topic, model));
    }
    for (const { id, negative_topics = [] } of ads) {
      if (negative_topics.length > 0) {
        topics.#profilesOf.set(
          id,
          negative_topics.map((topic) => known.get(topic) ?? []),
        );
      }
    }
    return topics;
  }

  /** Says of each ad whether a prompt is about one of its negative topics. */
  read(reading: Pick<TextReading, "needs">): (ad: Ad) => boolean {
    const prompt = profileOf(reading);
    return ({ id }) => (this.#profilesOf.get(id) ?? []).some((topic) => isAbout(prompt, topic));
  }
}

/** The profile of a topic; empty if it has no known word: whatever the model says of it then is chance. */
function profileOfTopic(topic: string, model: Reader): NeedProfile {
  const reading = model.read(topic);
  return reading.meaning.some((value) => value !== 0) ? profileOf(reading) : [];
}

function isAbout(text: NeedProfile, topic: NeedProfile): boolean {
  return likenessOf(text, topic) >= LIKENESS_MIN;
}

/** What a negative topic does for its ad: `own` excludes those who want the ad, `unclear` excludes hardly anything. */
export type TopicUse = "useful" | "own" | "unclear";

/** Returns a function that says what a negative topic of an ad does. */
export function topicJudge(model: Reader): (topic: string, ad: Ad) => TopicUse {
  return (topic, ad) => {
    const profile = profileOfTopic(topic, model);
    if ((profile[0]?.softened ?? 0) < CLEAR_SHARE_MIN) {
      return "unclear";
    }
    return isAbout(profileOf(readTextsOf(ad, model)), profile) ? "own" : "useful";
  };
}
