/** The proxy's HTTP half in this process, between a model's server and callers that the test controls. */
import { once } from "node:events";
import { createServer, type IncomingMessage, type RequestListener, type ServerResponse } from "node:http";
import { connect, type Socket } from "node:net";
import {
  NO_PROXIES,
  openDirectory,
  type ProviderTls,
  type Proxies,
  publisherSources,
} from "@adrelay/provider";
import { PublisherSeries } from "@adrelay/relay-kit";
import { createRegistry, HttpServer, NO_TRACING } from "@adrelay/service-kit";
import { type Logger, pino } from "pino";
import type { Dispatcher } from "undici";
import type { EventReading } from "../src/dialects/dialect.ts";
import type { PrepareCall, StepSink } from "../src/http/call.ts";
import { ProxyRoom } from "../src/http/call-room.ts";
import { OpenCalls } from "../src/http/open-calls.ts";
import { makeProxyHandler } from "../src/http/proxy-handler.ts";
import { Upstreams } from "../src/http/upstreams.ts";
import { ProxyMetrics } from "../src/proxy-metrics.ts";

export const KEY = "publisher-key-0123456789";
export const KEY_HEADERS = { "X-Service-API-Key": KEY, authorization: "Bearer model-key" };

/** No ad, no step. */
const noAd: PrepareCall = ({ body }) =>
  Promise.resolve({
    ad: { state: "skipped", reason: "off" },
    adResponseId: undefined,
    body,
    step: undefined,
  });

/** What a step was told, in order. */
export type Told =
  | { readonly kind: "written"; readonly reading: EventReading }
  | { readonly kind: "saw"; readonly callIds: readonly string[] }
  | { readonly kind: "refused"; readonly status: number }
  | { readonly kind: "ended"; readonly end: string; readonly status: number | undefined };

/** A step that keeps what it is told. */
export class KeptStep implements StepSink {
  readonly readsAnswer = true;
  readonly told: Told[] = [];
  readonly #ended = Promise.withResolvers<void>();

  refused(status: number): void {
    this.told.push({ kind: "refused", status });
  }

  written(reading: EventReading): void {
    this.told.push({ kind: "written", reading });
  }

  sawCalls(callIds: readonly string[]): void {
    this.told.push({ kind: "saw", callIds });
  }

  ended({ kind }: { readonly kind: string }, status: number | undefined): void {
    this.told.push({ kind: "ended", end: kind, status });
    this.#ended.resolve();
  }

  /** Resolves once the step has ended. */
  get end(): Promise<void> {
    return this.#ended.promise;
  }

  get text(): string {
    return this.told.map((one) => (one.kind === "written" ? one.reading.text : "")).join("");
  }

  get ends(): Told[] {
    return this.told.filter(({ kind }) => kind === "ended");
  }
}

/** Each call gets an ad: a space is put before its body, which is then another body of the same meaning. */
export function withSteps(steps: KeptStep[]): PrepareCall {
  return ({ body }) => {
    const step = new KeptStep();
    steps.push(step);
    return Promise.resolve({
      ad: { state: "injected", reason: undefined },
      adResponseId: "11111111-1111-4111-8111-111111111111",
      body: Buffer.concat([Buffer.from(" "), body]),
      step,
    });
  };
}

export interface FixtureOptions {
  readonly prepareCall?: PrepareCall;
  readonly idleTimeoutMs?: number;
  readonly editLimitBytes?: number;
  readonly callsMax?: number;
  readonly bytesMax?: number;
  readonly log?: Logger;
  readonly anthropicUrl?: string;
  readonly proxies?: Proxies;
  readonly tls?: ProviderTls | undefined;
  /** In place of the model's server. */
  readonly dispatcher?: Dispatcher;
}

export interface Fixture {
  readonly url: string;
  readonly port: number;
  readonly openCalls: OpenCalls;
  readonly room: ProxyRoom;
  readonly server: HttpServer;
  /** What the proxy's metrics are now, as Prometheus reads them. */
  metrics(): Promise<string>;
  stop(): Promise<void>;
}

/** Starts the proxy before a model's server. */
export async function startProxy(modelUrl: string, options: FixtureOptions = {}): Promise<Fixture> {
  const { dispatcher } = options;
  const log = options.log ?? pino({ level: "silent" });
  const opened = openDirectory(
    publisherSources(
      {
        PROVIDER_URL: "http://127.0.0.1:9",
        PROVIDER_API_KEY: "provider-key-0123456789",
        PROVIDER_API_KEY_HEADER: "X-Key",
      },
      [KEY],
      {},
    ),
  );
  if (opened.kind === "faulty") {
    throw new TypeError(JSON.stringify(opened.faults));
  }
  const [publisher] = opened.directory.current;
  const openCalls = new OpenCalls(options.idleTimeoutMs ?? 60_000);
  openCalls.start();
  const room = new ProxyRoom(
    { callsMax: options.callsMax ?? 10_000, bytesMax: options.bytesMax ?? 64 * 1024 * 1024 },
    () => {},
  );
  const upstreams = new Upstreams({
    baseUrls: { openai: `${modelUrl}/v1`, anthropic: options.anthropicUrl ?? modelUrl },
    proxies: options.proxies ?? NO_PROXIES,
    tls: options.tls,
  });
  const registry = createRegistry();
  const metrics = new ProxyMetrics(registry, {
    series: new PublisherSeries({ publishers: opened.directory, publishersMax: 10 }),
    countStreams: () => openCalls.streams,
  });
  const handler = makeProxyHandler({
    authenticate: ({ headers }) => (headers["x-service-api-key"] === KEY ? publisher : undefined),
    keyHeaders: ["X-Service-API-Key"],
    prepareCall: options.prepareCall ?? noAd,
    upstreams:
      dispatcher === undefined
        ? upstreams
        : { find: () => ({ dispatcher, target: { origin: modelUrl, path: "", headers: {} } }) },
    openCalls,
    room,
    editLimitBytes: options.editLimitBytes ?? 8 * 1024 * 1024,
    metrics,
    tracing: NO_TRACING,
    log,
  });
  const server = new HttpServer(handler, {
    name: "the proxy",
    host: "127.0.0.1",
    port: 0,
    log,
    answerHeaders: [],
  });
  await server.start();
  return {
    url: `http://127.0.0.1:${server.port}`,
    port: server.port,
    openCalls,
    room,
    server,
    metrics: () => registry.metrics(),
    stop: async () => {
      await server.stop(AbortSignal.abort());
      openCalls.stop();
      await upstreams.stop();
    },
  };
}

export interface Model {
  readonly url: string;
  readonly port: number;
  /** How many connections it has now. */
  readonly sockets: ReadonlySet<Socket>;
  stop(): Promise<void>;
}

/** A model's server that does what the test says. */
export async function startModel(handle: RequestListener): Promise<Model> {
  const server = createServer({ keepAliveTimeout: 60_000 }, handle);
  const sockets = new Set<Socket>();
  server.on("connection", (socket) => {
    sockets.add(socket);
    socket.once("close", () => sockets.delete(socket));
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const address = server.address();
  const port = typeof address === "object" && address !== null ? address.port : 0;
  return {
    url: `http://127.0.0.1:${port}`,
    port,
    sockets,
    stop: async () => {
      for (const socket of sockets) {
        socket.destroy();
      }
      server.close();
      await once(server, "close");
    },
  };
}

/** Reads a request's whole body. */
export async function bodyOf(request: IncomingMessage): Promise<Buffer> {
  const pieces: Buffer[] = [];
  for await (const piece of request) {
    pieces.push(piece);
  }
  return Buffer.concat(pieces);
}

/** Writes, and waits until the operating system has taken it. */
export function write(response: ServerResponse, chunk: Buffer | string): Promise<void> {
  return new Promise((resolve) => {
    response.write(chunk, () => resolve());
  });
}

/** Sends bytes on a connection of its own, and collects what comes back. */
export async function openRaw(port: number): Promise<{ socket: Socket; received: () => string }> {
  const socket = connect(port, "127.0.0.1");
  let text = "";
  socket.on("data", (chunk) => {
    text += chunk.toString("latin1");
  });
  socket.on("error", () => {});
  await once(socket, "connect");
  return { socket, received: () => text };
}

/** A stream of chat completions: one event for each text, then the end and `[DONE]`. */
export function chatStream(texts: readonly string[]): string[] {
  const event = (delta: object, finish: string | null = null) =>
    `data: ${JSON.stringify({ id: "c1", object: "chat.completion.chunk", choices: [{ index: 0, delta, finish_reason: finish }] })}\n\n`;
  return [...texts.map((content) => event({ content })), event({}, "stop"), "data: [DONE]\n\n"];
}

/** A request of each surface. */
export const CHAT = JSON.stringify({
  model: "m",
  stream: true,
  messages: [{ role: "user", content: "hello" }],
});
