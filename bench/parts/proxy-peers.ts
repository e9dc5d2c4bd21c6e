/**
 * Compares the model proxy with other gateways for models in what all of them do: passing a stream through. Each has one
 * process, and the same streams at once. What a peer needs to know goes into headers or its configuration.
 */
import { atLeast, type Figure } from "../figures.ts";
import { installPeer, PEERS, type PeerName } from "../peers/install.ts";
import { type Peer, startPeer } from "../peers/start.ts";
import type { BenchChild } from "../processes.ts";
import { type Bench, COLD_WARMUP_MS, inTurns, WARMUP_MS } from "../rounds.ts";
import { type Served, startBareModelProxy, startProxy } from "../sides.ts";
import { modelNameOf, runStreams, type StreamRound, startStreamGenerator } from "../streams/stream-load.ts";
import { EVENTS, type Place, type Side, streamPlan } from "./proxy-loads.ts";

const FORM = { events: EVENTS, pauseMs: 0 };
const STREAMS = 16;
const US_PER_MS = 1000;
const PEER_NAMES = ["portkey", "litellm"] as const satisfies readonly PeerName[];

type Headers = Readonly<Record<string, string>>;

export async function measurePeers(bench: Bench, place: Place): Promise<Figure[]> {
  await using bare = await startBareModelProxy(bench, place);
  await using proxy = await startProxy(bench, place);
  await using generator = await startStreamGenerator(bench.folder);
  const figures: Figure[] = [];
  for (const name of PEER_NAMES) {
    figures.push(...(await measurePeer(bench, place, { name, bare, proxy, generator })));
  }
  return figures;
}

interface PeerSides {
  readonly name: PeerName;
  readonly bare: Served;
  readonly proxy: Served;
  readonly generator: BenchChild;
}

/** No figures if the peer can't be installed, or doesn't pass streams. */
async function measurePeer(bench: Bench, place: Place, sides: PeerSides): Promise<Figure[]> {
  const { title } = PEERS[sides.name];
  const installed = await installPeer(sides.name, bench.say);
  if (installed.kind === "failed") {
    bench.say(`${title} isn't measured, because it can't be installed: ${installed.why}`);
    return [];
  }
  const peerPlace = { folder: installed.folder, modelUrl: place.modelUrl, modelName: modelNameOf(FORM) };
  try {
    await using peer = await startPeer(bench, sides.name, peerPlace);
    return figuresOf(title, await comparePeer(bench, sides, peer));
  } catch (error) {
    bench.say(`${title} isn't measured, because it doesn't start or passes no streams: ${String(error)}`);
    return [];
  }
}

async function comparePeer(
  bench: Bench,
  { bare, proxy, generator }: PeerSides,
  peer: Peer,
): Promise<PeerRounds> {
  const run = (server: Served, side: Side, options: RunOptions = {}) =>
    runSide(bench, { generator, server, side }, options);
  const { headers } = peer;
  await run(peer, "bare", { headers, warmupMs: COLD_WARMUP_MS });
  return inTurns(bench.rounds, {
    bare: () => run(bare, "bare"),
    plain: () => run(proxy, "plain"),
    ad: () => run(proxy, "ad"),
    peer: () => run(peer, "bare", { headers }),
  });
}

interface RunOptions {
  readonly headers?: Headers;
  readonly warmupMs?: number;
}

interface RunSide {
  readonly generator: BenchChild;
  readonly server: Served | Peer;
  readonly side: Side;
}

async function runSide(
  bench: Bench,
  { generator, server, side }: RunSide,
  { headers = {}, warmupMs = WARMUP_MS }: RunOptions,
): Promise<StreamRound> {
  const plan = streamPlan(server, { form: FORM, side, bench });
  const pace = { kind: "closed", streams: STREAMS } as const;
  const all = { ...plan, headers: { ...plan.headers, ...headers }, warmupMs, pace };
  const round = await runStreams(generator, all, { server: server.pid });
  bench.say(
    `proxy, ${STREAMS} streams at once, ${server.name}, ${side}: ${ratePerSecond(round).toFixed(1)} streams/s`,
  );
  return round;
}

type PeerRounds = Readonly<Record<Side | "peer", readonly StreamRound[]>>;

function figuresOf(title: string, { bare, plain, ad, peer }: PeerRounds): Figure[] {
  const figure = (what: string, unit: string, [ours, of]: Ours): Figure => ({
    part: "proxy",
    what,
    unit,
    ours: ours.map(of),
    against: { name: title, values: peer.map(of) },
  });
  const streams = `streams, ${STREAMS} at once`;
  return [
    { ...figure(`${streams}, without ad`, "/s", [plain, ratePerSecond]), promise: atLeast("ratio", 1) },
    figure(`${streams}, with ad`, "/s", [ad, ratePerSecond]),
    figure(`${streams}, the bare model proxy`, "/s", [bare, ratePerSecond]),
    figure(`CPU of an event, ${STREAMS} streams at once, without ad`, "µs", [plain, cpuOfEventUs]),
    figure(`CPU of an event, ${STREAMS} streams at once, with ad`, "µs", [ad, cpuOfEventUs]),
  ];
}

type Ours = readonly [rounds: readonly StreamRound[], of: (round: StreamRound) => number];

function ratePerSecond({ count, durationMs }: StreamRound): number {
  return (count * 1000) / durationMs;
}

function cpuOfEventUs({ cpuMs, count }: StreamRound): number {
  return ((cpuMs["server"] ?? 0) * US_PER_MS) / (count * EVENTS);
}
