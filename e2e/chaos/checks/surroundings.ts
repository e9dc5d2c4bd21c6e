/** Processes, logs, scrapes, callers, and what is left in Redis. */
import { dumpRedis, relayCaller, unknownId } from "@adrelay/testkit";
import type { Evidence } from "../evidence.ts";
import type { LaneRecords } from "../lane-record.ts";
import { CANARY } from "../log-watch.ts";
import type { Scraper } from "../scraper.ts";
import { CALLER_KEYS, type World } from "../world.ts";
import type { Check } from "./check.ts";

export async function checkSurroundings(
  world: World,
  { ads }: Evidence,
  { records, scraper }: { readonly records: LaneRecords; readonly scraper: Scraper },
): Promise<readonly Check[]> {
  const { logs, deaths, apps } = world;
  const { injections, acknowledgments } = records.counts;
  return [
    {
      name: "no caller gets a surprising answer",
      looked: injections + acknowledgments,
      broken: records.faulty,
    },
    { name: "the books balance at every scrape", looked: scraper.answered, broken: scraper.broken },
    { name: "no process dies by itself or stops badly", looked: apps.size, broken: deaths },
    { name: "no log line tells of a bug", looked: logs.lines, broken: logs.bugs },
    { name: "no log line tells what a user wrote", looked: logs.lines, broken: logs.leaks },
    await checkGatewaysServe(world),
    await checkRedisForgets(world, ads.filter(({ entry }) => entry?.state === "dead").length),
  ];
}

/** A gateway that came through it all takes an acknowledgment; the books were looked at before. */
async function checkGatewaysServe({ gatewayUrls }: World): Promise<Check> {
  const answers = await Promise.all(
    gatewayUrls.map(async (url) => {
      const answer = await relayCaller(url, CALLER_KEYS.acme).acknowledge(unknownId(), "a last text", {
        // What the provider thinks of the id is no matter here.
        headers: { Prefer: "respond-async" },
      });
      return `${url} answers ${answer.status} ${answer.text}`;
    }),
  );
  const broken = answers.filter((answer) => !/ answers 20[01] /.test(answer));
  return { name: "each gateway takes acknowledgments in the end", looked: answers.length, broken };
}

/** Of what users wrote only dead letters' texts may be left, in the job of each. */
async function checkRedisForgets({ redis }: World, dead: number): Promise<Check> {
  const keys = (await dumpRedis(redis.url)).split("\n");
  const holding = keys.filter((line) => line.includes(CANARY));
  const broken =
    holding.length > dead ? [`${holding.length} keys hold texts of users, ${dead} letters are dead`] : [];
  return { name: "Redis keeps texts of dead letters alone", looked: keys.length, broken };
}
