/** A client and a scripted peer in place of its relay, which speaks the same two operations. */
import { type ScriptedProvider, startScriptedProvider, TEST_API_KEY, TEST_INJECTION } from "@adrelay/testkit";
import { onTestFinished } from "vitest";
import { createRelay, type Relay, type RelayEvent, type RelayOptions } from "../src/index.ts";

export const REQUEST = { ...TEST_INJECTION, optional_context: { country: "US", age: 34 } };

export interface Fixture {
  readonly peer: ScriptedProvider;
  readonly relay: Relay;
  readonly events: RelayEvent[];
  /** The events of one kind. */
  eventsOf<Kind extends RelayEvent["kind"]>(kind: Kind): Extract<RelayEvent, { kind: Kind }>[];
  /** The texts that the peer was sent for an ad response. */
  textsOf(adResponseId: string): unknown[];
}

export async function setup(options: Partial<RelayOptions> = {}): Promise<Fixture> {
  const peer = await startScriptedProvider();
  const events: RelayEvent[] = [];
  const relay = createRelay({
    url: peer.url,
    apiKey: TEST_API_KEY,
    timeoutMs: 5000,
    retry: { firstMs: 20, maxMs: 100 },
    onEvent: (event) => events.push(event),
    ...options,
  });
  onTestFinished(async () => {
    await relay.close({ timeoutMs: 100 });
    await peer.close();
  });
  const eventsOf: Fixture["eventsOf"] = (kind) => events.filter((event) => isOf(event, kind));
  return {
    peer,
    relay,
    events,
    eventsOf,
    textsOf: (id) => peer.acknowledgmentsOf(id).map(({ fields }) => fields["llm_response"]),
  };
}

function isOf<Kind extends RelayEvent["kind"]>(
  event: RelayEvent,
  kind: Kind,
): event is Extract<RelayEvent, { kind: Kind }> {
  return event.kind === kind;
}

/** An injection that got an ad. */
export async function injectAd(relay: Relay) {
  const injection = await relay.inject(REQUEST);
  if (injection.kind !== "injected") {
    throw new TypeError(`no ad: ${injection.reason}`);
  }
  return injection;
}

/** A problem as the relay writes it. */
export function problem(status: number, code: string, headers: Record<string, string> = {}) {
  const body = { type: `urn:adrelay:error:${code}`, title: "A title", status, code, request_id: "r-1" };
  return { kind: "answer", status, body, headers } as const;
}
