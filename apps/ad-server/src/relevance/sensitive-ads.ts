import type { TextReading } from "../prompt-model/prompt-model.ts";

/**
 * Needs whose advertisers would hurt or embarrass beside a prompt that merely shares a word with them: illness,
 * medicine, law, debt, death. Their ads are shown only if the prompt clearly wants just that.
 */
export const SENSITIVE_NEEDS: ReadonlySet<string> = new Set([
  "addiction-help",
  "allergy-medicines",
  "care-homes",
  "cold-and-pain-remedies",
  "debt-advice",
  "divorce-lawyers",
  "dna-tests",
  "employment-lawyers",
  "fertility-clinics",
  "funeral-homes",
  "home-care",
  "humanitarian-charities",
  "illness-charities",
  "immigration-lawyers",
  "life-insurance",
  "online-pharmacies",
  "personal-loans",
  "private-clinics",
  "stop-smoking",
  "telemedicine",
  "therapy",
  "weight-loss-programs",
  "will-writing",
]);
/** An ad that reads like a sensitive topic itself is sensitive, too. */
const TOPIC_MIN = 0.1;

/** Whether an ad is about something that must not stand beside a prompt by mistake. */
export function isSensitiveAd({ needs, topics }: TextReading, names: readonly string[]): boolean {
  const ofTopics = [...topics.values()].reduce((sum, probability) => sum + probability, 0);
  const ofNeeds = names.reduce(
    (sum, name, index) => sum + (SENSITIVE_NEEDS.has(name) ? (needs[index] ?? 0) : 0),
    0,
  );
  return ofTopics + ofNeeds >= TOPIC_MIN;
}
