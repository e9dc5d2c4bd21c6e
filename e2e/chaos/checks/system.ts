/** Processes, logs, scrapes, callers, and what is left in Redis. */
import { setTimeout as wait } from "node:timers/promises";
import { dumpRedis, relayCaller, unknownId } from "@adrelay/testkit";
import type { Evidence } from "../evidence.ts";
import { CANARY } from "../log-watch.ts";
import type { PublisherRecords } from "../publisher-records.ts";
import type { Scraper } from "../scraper.ts";
import type { ChaosStack } from "../stack.ts";
import type { Check } from "./check.ts";

export async function checkSystem(
  stack: ChaosStack,
  { ads }: Evidence,
  { records, scraper }: { readonly records: PublisherRecords; readonly scraper: Scraper },
): Promise<readonly Check[]> {
  const { logs, processProblems, apps } = stack;
  const { injections, acknowledgments } = records.counts;
  return [
    {
      name: "no caller gets an unexpected answer",
      checked: injections + acknowledgments,
      broken: records.unexpected,
    },
    { name: "the counters balance in every scrape", checked: scraper.answered, broken: scraper.broken },
    { name: "no process ends on its own or stops late", checked: apps.size, broken: processProblems },
    { name: "no log line reports a bug", checked: logs.lines, broken: logs.bugs },
    { name: "no log line contains a user's text", checked: logs.lines, broken: logs.leaks },
    await checkGatewaysAccept(stack),
    await checkRedisTexts(stack, ads.filter(({ entry }) => entry?.state === "dead").length),
  ];
}

/** Runs after the counters were read, because it changes them. A process that the checks have kept busy gets a while. */
async function checkGatewaysAccept({ gatewayUrls, publishers }: ChaosStack): Promise<Check> {
  const answers = await Promise.all(
    gatewayUrls.map((url) => acknowledgeInTheEnd(url, publishers.keyOf("acme"))),
  );
  const broken = answers.filter((answer) => !ACCEPTED.test(answer));
  return { name: "each gateway accepts acknowledgments in the end", checked: answers.length, broken };
}

const ACCEPTED = / answers 20[01] /;
const TRIES_MAX = 10;
const TRY_AGAIN_MS = 1000;

/** The last answer of one gateway: the first one that accepts, if any does. */
async function acknowledgeInTheEnd(url: string, key: string): Promise<string> {
  for (let tries = 1; ; tries += 1) {
    const answer = await relayCaller(url, key).acknowledge(unknownId(), "a last text", {
      // This check is about the gateway, so it doesn't wait for the provider.
      headers: { Prefer: "respond-async" },
    });
    const described = `${url} answers ${answer.status} ${answer.text}`;
    if (ACCEPTED.test(described) || tries === TRIES_MAX) {
      return described;
    }
    await wait(TRY_AGAIN_MS);
  }
}

/** The only texts of users that may be left in Redis are those in the jobs of dead letters, one job for each. */
async function checkRedisTexts({ redis }: ChaosStack, dead: number): Promise<Check> {
  const keys = (await dumpRedis(redis.url)).split("\n");
  const withText = keys.filter((line) => line.includes(CANARY));
  const broken =
    withText.length > dead
      ? [`${withText.length} keys contain texts of users, but there are ${dead} dead letters`]
      : [];
  return { name: "Redis keeps only the texts of dead letters", checked: keys.length, broken };
}
