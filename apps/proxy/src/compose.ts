/** Makes every part of the proxy and starts it. */
import { proxiesOf } from "@adrelay/provider";
import {
  type CountOverload,
  createOverloadCounter,
  type IntakeAdapters,
  makeAuthenticate,
  openIntakeStore,
  openRelayBase,
  PublisherSeries,
  type RelayBase,
  startAnswerJudge,
  startIntake,
  startOpsListener,
  startPublicListener,
} from "@adrelay/relay-kit";
import {
  type Environment,
  type HttpServer,
  LoginGuard,
  onAbort,
  type RunnableService,
} from "@adrelay/service-kit";
import { startTurns } from "./compose-turns.ts";
import type { ProxyConfig } from "./config.ts";
import type { PrepareCall } from "./http/call.ts";
import { ProxyRoom } from "./http/call-room.ts";
import { OpenCalls } from "./http/open-calls.ts";
import { makeProxyHandler } from "./http/proxy-handler.ts";
import { Upstreams } from "./http/upstreams.ts";
import { ProxyMetrics } from "./proxy-metrics.ts";

/** During a stop: for the rest of a request, and for the last bytes of an answer to be read. */
const PEER_TIMEOUT_MS = 5000;
/** For the whole of a request. */
const UPLOAD_TIMEOUT_MS = 24 * 3_600_000;
/** The texts of turns that end within this time are searched together, and so their turns are settled together. */
const FINDINGS_COLLECT_MS = 100;

export async function compose(config: ProxyConfig, env: Environment): Promise<RunnableService> {
  const { settings } = config;
  const base = await openRelayBase("proxy", config, env);
  const { log, lifecycle, registry } = base;
  const findAd = await startAnswerJudge(base, { collectMs: FINDINGS_COLLECT_MS });
  const adapters = await openIntakeStore(base, { findAd });
  const parts = { ...adapters, ...(await startIntake(base, adapters)) };
  const opsServer = await startOpsListener(base, parts, {
    host: settings.PROXY_OPS_HOST,
    port: settings.PROXY_OPS_PORT,
    loginGuard: new LoginGuard({ registry, log }),
  });
  const series = new PublisherSeries({
    publishers: config.publishers,
    publishersMax: settings.METRICS_PUBLISHERS_MAX,
  });
  const onOverload = createOverloadCounter(registry);
  const canBook = () => parts.intake.isDurable;
  const prepareCall = await startTurns(base, { ...parts, series, canBook, findAd, onOverload });
  const listener = await startListener(base, { ...parts, series, onOverload, prepareCall });
  return {
    log,
    lifecycle,
    shutdownDelayMs: settings.SHUTDOWN_DELAY_MS,
    shutdownTimeoutMs: settings.SHUTDOWN_TIMEOUT_MS,
    drain: (signal) =>
      drain(listener, AbortSignal.any([signal, AbortSignal.timeout(settings.PROXY_DRAIN_MS)])),
    listening: { port: listener.server.port, ops_port: opsServer.port },
    onHangUp: () => parts.publishersWatch.onHangUp(),
  };
}

type Base = RelayBase<ProxyConfig>;

interface Listener {
  readonly server: HttpServer;
  readonly openCalls: OpenCalls;
}

/** No new calls. The running ones go on until the signal fires; then they are cut. */
async function drain({ server, openCalls }: Listener, signal: AbortSignal): Promise<void> {
  onAbort(signal, () => openCalls.endAll());
  await server.stop(signal);
}

interface ListenerParts extends IntakeAdapters {
  readonly series: PublisherSeries;
  readonly prepareCall: PrepareCall;
  readonly onOverload: CountOverload;
}

async function startListener(base: Base, parts: ListenerParts): Promise<Listener> {
  const { config, log, lifecycle, registry, tracing } = base;
  const { settings, publishers } = config;
  const openCalls = new OpenCalls(settings.PROXY_IDLE_TIMEOUT_MS);
  await lifecycle.start("idle calls", openCalls);
  const baseUrls = { openai: settings.OPENAI_BASE_URL, anthropic: settings.ANTHROPIC_BASE_URL };
  const upstreams = new Upstreams({ baseUrls, proxies: proxiesOf(settings), tls: config.modelTls });
  lifecycle.onStop("models", () => upstreams.stop());
  // Node says that a listener is closed before it says so of the last response, and the end of an encoded answer is read after that.
  lifecycle.onStop("calls", () => openCalls.allFinished());
  const limits = { callsMax: settings.PROXY_CALLS_IN_FLIGHT, bytesMax: settings.PROXY_BYTES_IN_FLIGHT };
  const room = new ProxyRoom(limits, parts.onOverload);
  const handler = makeProxyHandler({
    authenticate: makeAuthenticate({
      publishers,
      headers: settings.API_KEY_HEADERS,
      onKeyUse: ({ key }) => parts.store.keyUses.note(key),
    }),
    keyHeaders: settings.API_KEY_HEADERS,
    prepareCall: parts.prepareCall,
    upstreams,
    openCalls,
    room,
    editLimitBytes: settings.PROXY_EDIT_LIMIT_BYTES,
    metrics: new ProxyMetrics(registry, { series: parts.series, countStreams: () => openCalls.streams }),
    tracing,
    log,
  });
  const server = await startPublicListener(base, handler, {
    host: settings.PROXY_HOST,
    port: settings.PROXY_PORT,
    // Only the model's server says what may be kept of its answers.
    answerHeaders: [],
    limits: {
      keepAliveTimeoutMs: settings.KEEP_ALIVE_TIMEOUT_MS,
      connectionsMax: settings.PROXY_CONNECTIONS,
      // Uploads may take long: a body is given up when no byte of it comes for PROXY_IDLE_TIMEOUT_MS.
      requestTimeoutMs: UPLOAD_TIMEOUT_MS,
      drainTimeoutMs: PEER_TIMEOUT_MS,
    },
    settings: "PROXY",
    calls: room.calls,
    bytes: room.bytes,
    onOverload: parts.onOverload,
  });
  return { server, openCalls };
}
