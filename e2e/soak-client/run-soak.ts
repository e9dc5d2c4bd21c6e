/**
 * A chat backend with a file outbox, under kills and an outage of the relay: each ad that it got is acknowledged at the service once.
 *
 * The backend's own output says which ads it got and what its consumers were given. A killed backend may leave ads whose answers
 * hadn't ended or weren't stored yet: those are acknowledged with an empty text.
 */
import { type ChildProcess, spawn } from "node:child_process";
import { readdirSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { startTestRedis } from "@adrelay/dev-servers";
import {
  eventually,
  makeRandom,
  pause,
  type Random,
  type RelayStack,
  type ScriptedProvider,
  startRelayStack,
  startScriptedProvider,
  TEST_API_KEY,
} from "@adrelay/testkit";

export interface SoakOptions {
  /** The run goes on until the backends got so many ads. */
  readonly ads: number;
  /** How long the relay's gateway is down, once. */
  readonly downMs: number;
  /** How often the backend is killed while the relay is up. While it is down, it is killed once more. */
  readonly kills: number;
  readonly seed: string;
  /** An empty directory, for the outbox. */
  readonly folder: string;
  readonly say: (line: string) => void;
}

export interface SoakResult {
  readonly ads: number;
  readonly kills: number;
  /** Ads that the service didn't see acknowledged. */
  readonly lost: readonly string[];
  /** Ads that it saw acknowledged more than once. */
  readonly doubled: readonly string[];
  /** Ads with another text than their consumers were given. */
  readonly changed: readonly string[];
  /** Ads of killed backends that were acknowledged with an empty text, although a consumer was given some. */
  readonly emptied: number;
  /** Ads that the service sold, but that died with a killed backend before it could know them. */
  readonly unseen: number;
  /** What the backends reported as lost or refused, or left at the end. */
  readonly faults: readonly string[];
  /** The outbox' files that are left. */
  readonly files: readonly string[];
  /** The most memory that a backend took. */
  readonly rssBytesMax: number;
}

const PROGRAM = fileURLToPath(new URL("backend.mjs", import.meta.url));
const PROGRESS_TIMEOUT_MS = 60_000;
const SETTLE_TIMEOUT_MS = 60_000;

interface Line {
  readonly kind: "injected" | "shown" | "fault" | "closed";
  readonly id: string;
  readonly text: string;
  readonly left: number;
  readonly rssBytesMax: number;
}

/** One process of the backend. */
interface Backend {
  readonly child: ChildProcess;
  readonly lines: Line[];
  readonly ended: Promise<void>;
}

export async function runSoak(options: SoakOptions): Promise<SoakResult> {
  const redis = await startTestRedis();
  const provider = await startScriptedProvider();
  const stack = await startRelayStack({ redis, providerUrl: provider.url });
  const soak = new Soak(options, stack, provider);
  try {
    return await soak.run();
  } finally {
    await soak.stop();
    await stack.stop();
    await Promise.all([provider.close(), redis.dispose()]);
  }
}

class Soak {
  readonly #options: SoakOptions;
  readonly #stack: RelayStack;
  readonly #provider: ScriptedProvider;
  readonly #random: Random;
  readonly #backends: Backend[] = [];
  #adCount = 0;

  constructor(options: SoakOptions, stack: RelayStack, provider: ScriptedProvider) {
    this.#options = options;
    this.#stack = stack;
    this.#provider = provider;
    this.#random = makeRandom(options.seed);
  }

  async run(): Promise<SoakResult> {
    const { ads, kills } = this.#options;
    const outageAt = Math.ceil(kills / 2);
    this.#startBackend();
    for (let at = 0; at < kills; at += 1) {
      // At a random point of its share of the run.
      await this.#untilAds((ads * (at + this.#random.next())) / kills);
      await (at === outageAt ? this.#outage() : this.#restartBackend());
    }
    await this.#untilAds(ads);
    const last = this.#backends.at(-1);
    last?.child.stdin?.write("end\n");
    await last?.ended;
    return this.#judge();
  }

  async stop(): Promise<void> {
    for (const { child, ended } of this.#backends) {
      child.kill("SIGKILL");
      await ended;
    }
  }

  /** The backend is killed in the middle of it, so that one also starts while the relay is down. */
  async #outage(): Promise<void> {
    const { downMs, say } = this.#options;
    say(`the relay is down for ${downMs / 1000} s`);
    await this.#stack.crash("gateway");
    await pause(downMs / 2);
    await this.#restartBackend();
    await pause(downMs / 2);
    await this.#stack.start("gateway");
  }

  async #restartBackend(): Promise<void> {
    const running = this.#backends.at(-1);
    running?.child.kill("SIGKILL");
    await running?.ended;
    this.#options.say(`the backend was killed after ${this.#adCount} ads`);
    this.#startBackend();
  }

  #startBackend(): void {
    const seed = String(this.#random.integer(1, 1_000_000));
    const words = [PROGRAM, this.#stack.gatewayUrl, TEST_API_KEY, join(this.#options.folder, "outbox"), seed];
    const child = spawn(process.execPath, words, { stdio: ["pipe", "pipe", "inherit"] });
    const lines: Line[] = [];
    let rest = "";
    child.stdout.setEncoding("utf8").on("data", (text: string) => {
      const parts = (rest + text).split("\n");
      rest = parts.pop() ?? "";
      const added: Line[] = parts.map((part) => JSON.parse(part));
      lines.push(...added);
      this.#adCount += added.filter(({ kind }) => kind === "injected").length;
    });
    const ended = new Promise<void>((resolve) => child.once("close", () => resolve()));
    this.#backends.push({ child, lines, ended });
  }

  #lines(kind: Line["kind"]): readonly Line[] {
    return this.#backends.flatMap(({ lines }) => lines.filter((line) => line.kind === kind));
  }

  #ads(): readonly string[] {
    return this.#lines("injected").map(({ id }) => id);
  }

  /** Fails only if nothing goes on: how fast it goes is the machine's affair. */
  async #untilAds(count: number): Promise<void> {
    while (this.#adCount < count) {
      const before = this.#adCount;
      await eventually(() => {
        if (this.#adCount === before) {
          throw new RangeError(`no more than ${before} of ${count} ads`);
        }
      }, PROGRESS_TIMEOUT_MS);
    }
  }

  async #judge(): Promise<SoakResult> {
    const ads = this.#ads();
    const textsOf = (id: string) =>
      this.#provider.acknowledgmentsOf(id).map(({ fields }) => fields["llm_response"]);
    const lost = () => ads.filter((id) => textsOf(id).length === 0);
    // The worker delivers what the gateway accepted.
    await eventually(() => {
      if (lost().length > 0) {
        throw new RangeError("some aren't delivered yet");
      }
    }, SETTLE_TIMEOUT_MS).catch(() => {});
    const last = this.#backends.at(-1);
    const ofLast = new Set(last?.lines.map(({ id }) => id));
    const shown = this.#lines("shown");
    const isEmptied = ({ id, text }: Line) => !ofLast.has(id) && text !== "" && textsOf(id)[0] === "";
    const closed = this.#lines("closed");
    return {
      ads: ads.length,
      kills: this.#backends.length - 1,
      lost: lost(),
      doubled: ads.filter((id) => textsOf(id).length > 1),
      changed: shown
        .filter((line) => textsOf(line.id)[0] !== line.text && !isEmptied(line))
        .map(({ id }) => id),
      emptied: shown.filter(isEmptied).length,
      unseen: this.#provider.posts.filter(({ operation }) => operation === "start").length - ads.length,
      faults: [
        ...this.#lines("fault").map((line) => JSON.stringify(line)),
        ...closed.filter(({ left }) => left > 0).map(({ left }) => `${left} left`),
      ],
      files: readdirSync(join(this.#options.folder, "outbox")),
      rssBytesMax: Math.max(...closed.map(({ rssBytesMax }) => rssBytesMax)),
    };
  }
}
