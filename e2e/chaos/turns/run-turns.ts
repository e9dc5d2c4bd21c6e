/** One run with turns: streams through two proxies and faults, then a wait until no turn is open, then all checks. */
import { acknowledgedOf } from "@adrelay/store";
import { dumpRedis, sumOf } from "@adrelay/testkit";
import { type Check, checkSums } from "../checks/check.ts";
import { CANARY } from "../log-watch.ts";
import { Scraper } from "../scraper.ts";
import { settle } from "../settle.ts";
import { checkTurns } from "./checks.ts";
import { gatherTurns, type TurnsEvidence } from "./evidence.ts";
import { planTurnFaults } from "./faults.ts";
import { lossesOf } from "./losses.ts";
import { hasAd } from "./pieces.ts";
import { playFaults } from "./play-faults.ts";
import { startTurnsStack, type TurnsStack } from "./stack.ts";
import type { CallRecord } from "./stream-call.ts";
import { planStreams } from "./streams.ts";
import { playStreams } from "./traffic.ts";
import { TrafficClock } from "./traffic-clock.ts";

export interface TurnsRun {
  readonly seed: number;
  readonly streams: number;
  /** How long new streams begin. */
  readonly trafficMs: number;
  readonly hasLongFreezes: boolean;
  /** The folder for the apps' log lines. They are not kept if it is undefined. */
  readonly logsDir?: string | undefined;
  readonly say: (line: string) => void;
}

export interface TurnsResult {
  readonly checks: readonly Check[];
  readonly summary: string;
}

/** A lease ends, Redis must have answered for one lease without a break, and a worker must deliver. */
const SETTLE_MS = 120_000;

export async function runTurns(run: TurnsRun): Promise<TurnsResult> {
  const { say } = run;
  const faults = planTurnFaults(run);
  const streams = planStreams(run);
  const stack = await startTurnsStack(run);
  const scraper = new Scraper(stack.opsUrls);
  const clock = new TrafficClock();
  try {
    const [records, spans] = await Promise.all([
      playStreams(stack, streams, clock),
      playFaults(faults, { stack, clock, say }),
    ]);
    say("the faults and the streams are over; waiting until no turn is open");
    const left = await settle(scraper, SETTLE_MS);
    await scraper.stop();
    const evidence = await gatherTurns(stack, records, spans);
    const checks = [
      {
        name: "all work ends after the faults",
        checked: evidence.turns.length,
        broken: left === undefined ? [] : [left],
      },
      ...checkTurns(evidence),
      ...(await checkSystem(stack, scraper)),
    ];
    return { checks, summary: summaryOf(evidence, faults.length, scraper) };
  } finally {
    await scraper.stop();
    await stack.dispose();
  }
}

async function checkSystem(stack: TurnsStack, scraper: Scraper): Promise<readonly Check[]> {
  const { logs, processProblems, apps, redis } = stack;
  const keys = (await dumpRedis(redis.url)).split("\n");
  return [
    await checkTurnSums(scraper),
    { name: "the counters balance in every scrape", checked: scraper.answered, broken: scraper.broken },
    { name: "no process ends on its own or stops late", checked: apps.size, broken: processProblems },
    { name: "no log line reports a bug", checked: logs.lines, broken: logs.bugs },
    { name: "no log line contains a user's text", checked: logs.lines, broken: logs.leaks },
    {
      name: "Redis keeps no text and no turn",
      checked: keys.length,
      broken: keys.filter((line) => line.includes(CANARY) || /:awaiting:(turn|text|prompt):/.test(line)),
    },
  ];
}

async function checkTurnSums(scraper: Scraper): Promise<Check> {
  const samples = (await scraper.scrape("gateway-1")) ?? new Map<string, number>();
  const sum = (name: string) => sumOf(samples, `adrelay_turns_${name}`);
  return checkSums("each turn that was opened has ended once", [
    ["opened and ended", sum("opened_total"), sum("total")],
    ["open", sum("open"), 0],
  ]);
}

function summaryOf(evidence: TurnsEvidence, faults: number, scraper: Scraper): string {
  const { turns, streams } = evidence;
  const calls = streams.flatMap(({ calls: made }) => made);
  const nextSteps = calls.filter(({ answers }) => answers !== undefined);
  const joined = nextSteps.filter(hasAd);
  const known = turns.filter((turn) => turn.calls.length > 0);
  const losses = lossesOf(evidence);
  const accepted = turns.filter(
    ({ entry }) => entry !== undefined && acknowledgedOf(entry) !== undefined,
  ).length;
  return [
    `${faults} faults`,
    `${streams.length} streams with ${calls.length} calls`,
    `${joined.length} of ${nextSteps.length} next steps with their turn's ad, ${joined.filter(isOvertaking).length} of them while the step before ran`,
    `${turns.length} ads sold, ${known.length} told to callers, ${accepted} acknowledged`,
    `of ${losses.length} calls whose proxy died while Redis was there, the oldest lost text was ${Math.max(0, ...losses)} ms old`,
    `${scraper.answered} scrapes`,
  ].join("; ");
}

const isOvertaking = ({ answers, headersAtMs = Infinity }: CallRecord): boolean =>
  answers !== undefined && headersAtMs < answers.endedAtMs;
