import type { FieldFault } from "@adrelay/contract";
import { keywordKeys } from "../relevance/negative-keywords.ts";
import type { TopicUse } from "../relevance/negative-topics.ts";
import type { Ad } from "./ad.ts";

/**
 * Likely mistakes in an ad's negative topics: one that is what the ad sells, so that the ad isn't shown to those who want
 * it; one that names nothing that the model knows; one that says what an earlier one says.
 */
export function negativeTopicWarnings(ad: Ad, judgeTopic: (topic: string, ad: Ad) => TopicUse): FieldFault[] {
  const { negative_topics = [] } = ad;
  const keys = keywordKeys(negative_topics);
  return negative_topics.flatMap((topic, index) => {
    const isRepeated = keys.indexOf(keys[index] ?? "") < index;
    const message = isRepeated ? "says what an earlier negative topic says" : MESSAGES[judgeTopic(topic, ad)];
    return message === undefined ? [] : [{ path: `negative_topics.${index}`, message }];
  });
}

const MESSAGES = {
  useful: undefined,
  own: "is close to what the ad sells: it excludes those who want the ad",
  unclear: "names no product or service that the model knows: it excludes hardly any prompt",
} as const satisfies Record<TopicUse, string | undefined>;
