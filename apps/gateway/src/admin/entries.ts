/** Ad responses as operators see them: one of them, or a page of one state. */
import {
  type AcknowledgmentDetail,
  type AcknowledgmentView,
  type AdResponseId,
  LISTED_STATES,
} from "@adrelay/contract";
import { DEAD_REASON_TEXTS, DEAD_REASONS } from "@adrelay/core";
import { OVERDUE, sendProblem } from "@adrelay/service-kit";
import {
  ackIdOf,
  acknowledgedOf,
  type LedgerEntry,
  lastCodeOf,
  openTurnOf,
  type Store,
} from "@adrelay/store";
import type { RequestHandler } from "express";
import { z } from "zod";
import { askStore, findingViewOf, isoTime, parseIdInPath, sendUnavailable } from "../store-answers.ts";
import { maySee } from "./access.ts";
import {
  EMPTY_SPAN,
  entryCursor,
  entryCursorSchema,
  FILTER_FIELDS,
  filterOf,
  isSpan,
  limitSchema,
  oneOf,
  parseForm,
} from "./forms.ts";
import type { ChoosePublisher } from "./known-publishers.ts";
import { makeLoadWaits, type Wait, type WaitsDeps } from "./waits.ts";

export interface EntriesDeps<K extends keyof Store["acknowledgments"]> extends WaitsDeps {
  readonly acknowledgments: Pick<Store["acknowledgments"], K>;
}

type PageQuestion = Parameters<Store["acknowledgments"]["page"]>[0];

/** Query of a page of acknowledgments. */
export const acknowledgmentQuerySchema = z
  .strictObject({
    ...FILTER_FIELDS,
    unknown: z.literal("true", { error: "must be true; without it, known ids match as well" }).optional(),
    state: oneOf("list", LISTED_STATES).default("dead"),
    limit: limitSchema,
    cursor: entryCursorSchema.optional(),
  })
  .refine(isSpan, EMPTY_SPAN)
  .refine(({ state, reason }) => reason === undefined || state === "dead", {
    path: ["reason"],
    error: "only dead letters have a reason",
  })
  .refine(({ state, code }) => code === undefined || state === "dead", {
    path: ["code"],
    error: "only dead letters have the provider's code",
  })
  .refine(({ state, unknown }) => unknown === undefined || state !== "awaiting", {
    path: ["unknown"],
    error: "ad responses that await their acknowledgment were injected through the relay",
  });

/** GET /admin/v1/acknowledgments: one page of a state, newest first. */
export function makeListHandler(deps: EntriesDeps<"page">, choosePublisher: ChoosePublisher): RequestHandler {
  const loadWaits = makeLoadWaits(deps);
  const loadPage = async (question: PageQuestion) => {
    const page = await deps.acknowledgments.page(question);
    return { ...page, waitOf: await loadWaits(page.entries) };
  };
  return async (request, response) => {
    const query = parseForm(acknowledgmentQuerySchema, request.query, response);
    const chosen = query && (await choosePublisher(query.publisher, response));
    if (query === undefined || chosen === undefined) {
      return;
    }
    const { state, limit, cursor } = query;
    const question = { ...filterOf({ ...query, publisher: chosen.publisher }), state, limit, after: cursor };
    const page = await askStore(loadPage(question));
    if (page === OVERDUE) {
      sendUnavailable(response);
      return;
    }
    response.json({
      acknowledgments: page.entries.map((entry) => entryView(entry, page.waitOf(entry))),
      next_cursor: page.next === undefined ? null : entryCursor(page.next),
    });
  };
}

/** GET /admin/v1/acknowledgments/{ad_response_id} */
export function makeShowHandler(deps: EntriesDeps<"find">): RequestHandler {
  const loadWaits = makeLoadWaits(deps);
  const loadEntry = async (id: AdResponseId) => {
    const entry = await deps.acknowledgments.find(id);
    return entry && { entry, wait: (await loadWaits([entry]))(entry) };
  };
  return async (request, response) => {
    const id = parseIdInPath(request, response);
    if (id === undefined) {
      return;
    }
    const found = await askStore(loadEntry(id));
    if (found === OVERDUE) {
      sendUnavailable(response);
    } else if (found === undefined || !maySee(response, found.entry.publisher)) {
      sendProblem(response, "unknown_ad_response");
    } else {
      response.json(entryViewWithAttempts(found.entry, found.wait));
    }
  };
}

/** One ad response, without users' texts. Missing values are null. */
function entryView(entry: LedgerEntry, wait: Wait): AcknowledgmentView {
  const acknowledged = acknowledgedOf(entry);
  const reason = deathOf(entry)?.reason ?? null;
  return {
    ad_response_id: entry.id,
    ad_ack_id: acknowledged === undefined ? null : ackIdOf(entry.id),
    publisher: entry.publisher,
    state: entry.state,
    status: entry.state === "delivered" ? (entry.verdict ?? null) : null,
    reason,
    reason_text: reasonText(reason),
    last_code: lastCodeOf(entry) ?? null,
    provider_error: providerErrorOf(entry) ?? null,
    size_bytes: acknowledged?.sizeBytes ?? null,
    recorded_at: isoTime(entry.injection?.recordedAtMs),
    deadline_at: isoTime(entry.injection?.deadlineAtMs),
    accepted_at: isoTime(acknowledged?.acceptedAtMs),
    queued_at: isoTime(acknowledged?.queuedAtMs),
    next_attempt_at: isoTime(entry.state === "queued" ? entry.nextAttemptAtMs : undefined),
    ended_at: isoTime("endedAtMs" in entry ? entry.endedAtMs : undefined),
    late: acknowledged?.isLate ?? false,
    ...wait,
    attempts: acknowledged?.attempts ?? 0,
    failed_attempts: acknowledged?.failedAttempts ?? 0,
    provider_ack_id: entry.state === "delivered" ? (entry.providerAckId ?? null) : null,
    turn: openTurnOf(entry) ?? null,
    finding: findingViewOf(acknowledged?.finding),
  };
}

function deathOf(entry: LedgerEntry) {
  return "death" in entry ? entry.death : undefined;
}

/** The provider's own code for why it isn't delivered. */
function providerErrorOf(entry: LedgerEntry): string | undefined {
  return entry.state === "queued" ? entry.providerError : deathOf(entry)?.providerError;
}

/** With its latest attempts, oldest first. */
function entryViewWithAttempts(entry: LedgerEntry, wait: Wait): AcknowledgmentDetail {
  const attempts = acknowledgedOf(entry)?.attemptLog ?? [];
  const log = attempts.map(
    ({ atMs, outcome, code, durationMs }): AcknowledgmentDetail["attempt_log"][number] => {
      const attempt = { at: isoTime(atMs), code, duration_ms: durationMs };
      return outcome === "ambiguous"
        ? { ...attempt, outcome: "retry", ambiguous: true }
        : { ...attempt, outcome };
    },
  );
  return { ...entryView(entry, wait), attempt_log: log };
}

/** A reason of a newer version has no text here. */
function reasonText(reason: string | null): string | null {
  const known = DEAD_REASONS.find((candidate) => candidate === reason);
  return known === undefined ? null : DEAD_REASON_TEXTS[known];
}
