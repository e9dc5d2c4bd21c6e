/** The lines of the table that the part `proxy` has. */
import { atMost, type Figure, type Promised } from "../figures.ts";
import type { StreamRound } from "../streams/stream-load.ts";
import {
  EVENTS,
  LARGE_REQUESTS,
  type MemoryRounds,
  type SideRounds,
  type StreamRounds,
  type TimedSide,
} from "./proxy-loads.ts";

const US_PER_MS = 1000;
const BARE = "bare model proxy";
const NAIVE = "naive proxy with ads";
const SIDES = [
  ["plain", "without ad"],
  ["ad", "with ad"],
] as const;

type Of = (round: StreamRound) => number;

export function figuresOfStreams({ loads, adServiceP50Ms }: StreamRounds): Figure[] {
  const { one, many, short } = loads;
  const p50: Of = ({ firstByteP50Ms }) => firstByteP50Ms;
  const p99: Of = ({ firstByteP99Ms }) => firstByteP99Ms;
  return [
    added("added p50 of the first byte, one stream, without ad", one.plain.map(p50), one.bare.map(p50), 0.5),
    added(
      "added p50 of the first byte, one stream, with ad, less the ad service's time",
      one.ad.map((round, at) => p50(round) - (adServiceP50Ms[at] ?? Number.NaN)),
      one.bare.map(p50),
      1.5,
    ),
    compared("p50 of the first byte, 50 new streams a second, without ad", "ms", ours(many, "plain", p50)),
    compared("p99 of the first byte, 50 new streams a second, without ad", "ms", ours(many, "plain", p99), 2),
    compared("p99 of the first byte, 50 new streams a second, with ad", "ms", ours(many, "ad", p99)),
    ...figuresOfCpu(loads),
    ...SIDES.map(([side, name]) =>
      compared(
        `most streams open at once, ${name}`,
        "",
        ours(many, side, ({ openMax }) => openMax),
      ),
    ),
    shareOf("load", "the generator's share of a core", many),
    shareOf("model", "the model's share of a core", many),
    compared("CPU of Redis per stream with ad", "µs", {
      values: short.ad.map((round) => cpuUs(round, "redis")),
    }),
  ];
}

function figuresOfCpu({ many, short }: StreamRounds["loads"]): Figure[] {
  const perEvent = (side: TimedSide) =>
    many[side].map((round, at) => (cpuUs(round) - cpuUs(short[side][at])) / (EVENTS - 1));
  const perStream = (side: TimedSide) => short[side].map((round) => cpuUs(round));
  const aside = (side: TimedSide) => {
    const events = perEvent(side);
    return perStream(side).map((us, at) => (us - (events[at] ?? Number.NaN)) / US_PER_MS);
  };
  return [
    ...SIDES.map(([side, name]) =>
      compared(`CPU of an event, ${name}`, "µs", { values: perEvent(side), against: perEvent("bare") }, 1.5),
    ),
    {
      ...compared(`CPU of an event, with ad, over the ${NAIVE}`, "µs", { values: perEvent("ad") }, 1.25),
      against: { name: NAIVE, values: perEvent("naive") },
    },
    ...SIDES.map(([side, name]) =>
      added(
        `added CPU of a stream beside its events, ${name}`,
        aside(side),
        aside("bare"),
        side === "ad" ? 0.5 : undefined,
      ),
    ),
    added(
      `added CPU of a stream beside its events, with ad, over the ${NAIVE}`,
      aside("ad"),
      aside("naive"),
      0.5,
    ),
    added(`added CPU of a stream beside its events, ${NAIVE}`, aside("naive"), aside("bare")),
  ];
}

export function figuresOfMemory({ open, large }: MemoryRounds): Figure[] {
  const grownMb: Of = ({ grownBytes }) => grownBytes / 1e6;
  return [
    ...SIDES.map(([side, name]) =>
      compared(`growth of RSS at 1000 open streams, ${name}`, "MB", ours(open, side, grownMb), 1.5),
    ),
    {
      ...compared(
        `growth of RSS per request of 20 MB, ${LARGE_REQUESTS} at once`,
        "MB",
        ours(large, "plain", (round) => grownMb(round) / LARGE_REQUESTS),
      ),
      promise: atMost("value", 2),
    },
  ];
}

interface Compared {
  readonly values: readonly number[];
  readonly against?: readonly number[];
}

type Rounds<Name extends string> = Readonly<Record<Name | "bare", readonly StreamRound[]>>;

function ours<Name extends string>(rounds: Rounds<Name>, side: Name, of: Of): Compared {
  return { values: rounds[side].map(of), against: rounds.bare.map(of) };
}

function compared(what: string, unit: string, { values, against }: Compared, ratioMax?: number): Figure {
  return {
    part: "proxy",
    what,
    unit,
    ours: values,
    ...(against === undefined ? {} : { against: { name: BARE, values: against } }),
    ...promised(ratioMax === undefined ? undefined : atMost("ratio", ratioMax)),
  };
}

/** What is promised of the difference has no ratio. */
function added(
  what: string,
  values: readonly number[],
  base: readonly number[],
  addedMaxMs?: number,
): Figure {
  return {
    part: "proxy",
    what,
    unit: "ms",
    ours: values.map((value, at) => value - (base[at] ?? Number.NaN)),
    ...promised(addedMaxMs === undefined ? undefined : atMost("value", addedMaxMs)),
  };
}

function promised(promise: Promised | undefined): { readonly promise?: Promised } {
  return promise === undefined ? {} : { promise };
}

function shareOf(process: string, what: string, { ad, bare }: SideRounds): Figure {
  const share: Of = ({ cpuMs, durationMs }) => (cpuMs[process] ?? 0) / durationMs;
  return compared(what, "", { values: ad.map(share), against: bare.map(share) });
}

function cpuUs(round: StreamRound | undefined, process = "server"): number {
  return round === undefined ? Number.NaN : ((round.cpuMs[process] ?? 0) * US_PER_MS) / round.count;
}
