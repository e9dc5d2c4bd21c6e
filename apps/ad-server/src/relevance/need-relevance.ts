import { setImmediate as turn } from "node:timers/promises";
import type { Ad } from "../catalog/ad.ts";
import { OTHER_NEED } from "../prompt-model/model-weights.ts";
import type { TextReading } from "../prompt-model/prompt-model.ts";
import { dotProduct } from "../prompt-model/word-vectors.ts";
import { type AdReader, type AdReading, readAd, readingKeyOf } from "./ad-reading.ts";
import { type FitSigns, fitProbability } from "./fit-probability.ts";
import { type NeedProfile, profileOf } from "./need-profile.ts";
import type { Relevance, ScoredAd } from "./relevance.ts";

/** Least probability that an ad serves the need. An ad beside the point costs more than no ad. */
const FIT_MIN = 0.58;
/** The same for an ad that is itself about illness, debt or the like. Its need must also be the likeliest of the prompt. */
const SENSITIVE_FIT_MIN = 0.75;
/**
 * A prompt that wants something with a smaller probability gets no ad, however well its topic agrees with one: "who invented
 * the guitar" is all about guitars.
 */
const WISH_MIN = 0.2;
/** The score of two ads of the same fit differs by at most this share, by how close their words are to the prompt's. */
const CLOSENESS_SHARE = 0.3;
/** The likeliest ads are looked at closely, the others are not, so that the work is bounded. Targeting may exclude most. */
const CANDIDATES_MAX = 500;
/** Ads with less than this share of the best one's probability are not looked at either. */
const CANDIDATE_SHARE_MIN = 0.6;
/** Ads that are read in one turn of the event loop, which takes about ten milliseconds. */
const TURN_ADS = 40;
/** Ads that are read before a server starts to listen, which takes a quarter of a second. */
const ADS_AWAITED = 1000;

interface IndexedAd {
  readonly ad: Ad;
  readonly reading: AdReading;
}

/** An ad that may fit a prompt. */
interface JudgedAd {
  readonly ad: Ad;
  readonly ofAd: AdReading;
  readonly signs: FitSigns;
  /** Whether the likeliest need of the ad is that of the prompt. */
  readonly isSameNeed: boolean;
}

/** One ad among those that sell for a need. */
interface Seller {
  /** Place of the ad in the catalogue. */
  readonly place: number;
  readonly probability: number;
}

/**
 * Relevance for any catalogue. The model reads the ads in the same way as the prompts: into hundreds of needs, of which a
 * catalogue's categories know nothing. An ad fits a prompt as far as the two readings agree. Whether that is enough is
 * judged by a probability; for most prompts nothing fits.
 */
export class NeedRelevance implements Relevance {
  readonly #ads: IndexedAd[] = [];
  readonly #readings = new Map<string, AdReading>();
  readonly #sellers = new Map<number, Seller[]>();
  /** The number of the class of all other needs. Two texts of it need not be of the same need. */
  readonly #otherNeed: number;

  private constructor(model: AdReader) {
    this.#otherNeed = model.needs.indexOf(OTHER_NEED);
  }

  /**
   * Reads the ads in many turns of the event loop. At the start, a long catalogue is served before all of it is read:
   * after the first ADS_AWAITED ads, the others follow within seconds. A catalogue that replaces another one is complete.
   *
   * @param before the engine of the catalogue that is replaced: ads with the same texts aren't read again
   */
  static async build(ads: readonly Ad[], model: AdReader, before?: NeedRelevance): Promise<NeedRelevance> {
    const relevance = new NeedRelevance(model);
    const awaited = before === undefined ? ADS_AWAITED : ads.length;
    await relevance.#addAll(ads.slice(0, awaited), model, before);
    void relevance.#addAll(ads.slice(awaited), model);
    return relevance;
  }

  rank(reading: TextReading): readonly ScoredAd[] {
    return this.judge(reading)
      .flatMap(({ ad, signs, isSameNeed, ofAd }) => {
        const fit = fitProbability(signs);
        const isFit = ofAd.isSensitive ? isSameNeed && fit >= SENSITIVE_FIT_MIN : fit >= FIT_MIN;
        const closeness = Math.max(0, dotProduct(ofAd.meaning, reading.meaning));
        return isFit ? [{ ad, score: fit * (1 - CLOSENESS_SHARE * (1 - closeness)) }] : [];
      })
      .sort((a, b) => b.score - a.score);
  }

  /** The ads that may fit, each with the signs of it; none if the prompt hardly wants anything. */
  judge(reading: TextReading): readonly JudgedAd[] {
    const wish = wishOf(reading);
    if (wish < WISH_MIN) {
      return [];
    }
    const profile = profileOf(reading);
    const certainty = profile[0]?.probability ?? 0;
    return this.#candidatesFor(profile).flatMap(({ place, sameNeed }) => {
      const indexed = this.#ads[place];
      if (indexed === undefined) {
        return [];
      }
      const { ad, reading: ofAd } = indexed;
      const signs = { certainty, served: sameNeed / certainty, wish };
      return [{ ad, ofAd, signs, isSameNeed: ofAd.profile[0]?.need === profile[0]?.need }];
    });
  }

  async #addAll(ads: readonly Ad[], model: AdReader, before?: NeedRelevance): Promise<void> {
    for (const [index, ad] of ads.entries()) {
      if (index % TURN_ADS === 0) {
        await turn();
      }
      const key = readingKeyOf(ad);
      this.#add(ad, key, before?.readingOf(key) ?? readAd(ad, model));
    }
  }

  /** What the model says of an ad with this key, if the catalogue has one. */
  readingOf(key: string): AdReading | undefined {
    return this.#readings.get(key);
  }

  #add(ad: Ad, key: string, reading: AdReading): void {
    const place = this.#ads.length;
    this.#ads.push({ ad, reading });
    this.#readings.set(key, reading);
    for (const { need, probability } of reading.profile) {
      if (need === this.#otherNeed) {
        continue;
      }
      const sellers = this.#sellers.get(need) ?? [];
      sellers.push({ place, probability });
      this.#sellers.set(need, sellers);
    }
  }

  /** The ads that are most probably of the same need as a prompt. */
  #candidatesFor(profile: NeedProfile) {
    const sameNeed = new Float32Array(this.#ads.length);
    for (const wanted of profile) {
      for (const { place, probability } of this.#sellers.get(wanted.need) ?? []) {
        sameNeed[place] = (sameNeed[place] ?? 0) + wanted.probability * probability;
      }
    }
    const least = leastCandidate(sameNeed);
    const candidates: { place: number; sameNeed: number }[] = [];
    for (let place = 0; place < sameNeed.length; place += 1) {
      if ((sameNeed[place] ?? 0) >= least) {
        candidates.push({ place, sameNeed: sameNeed[place] ?? 0 });
      }
    }
    return candidates;
  }
}

/** The least probability of a candidate: a share of the best one's, and more if too many reach that. */
function leastCandidate(probabilities: Float32Array): number {
  let best = 0;
  for (const probability of probabilities) {
    best = Math.max(best, probability);
  }
  const near = probabilities
    .filter((probability) => probability > 0 && probability >= best * CANDIDATE_SHARE_MIN)
    .sort();
  return near[Math.max(0, near.length - CANDIDATES_MAX)] ?? Number.POSITIVE_INFINITY;
}

/** The probability that a prompt wants anything that can be sold. Sensitive topics are left out. */
function wishOf({ needs, none }: TextReading): number {
  const wish = needs.reduce((sum, probability) => sum + probability, 0);
  return wish / (wish + none);
}
