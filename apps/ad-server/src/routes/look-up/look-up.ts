import { adResponseIdSchema } from "@adrelay/contract";
import { addToRequestLog, sendProblem } from "@adrelay/service-kit";
import type { RequestHandler } from "express";
import type { ApiKeys } from "../../api-keys.ts";
import type { ResponseStore } from "../../store/response-store.ts";
import { admitKey } from "../admission.ts";
import { sendStorageUnavailable } from "../answers.ts";

export interface LookUpDeps {
  readonly keys: ApiKeys;
  readonly store: Pick<ResponseStore, "load">;
}

/** Path of the look-up; what isn't a UUID names no response. */
export const LOOK_UP_PATH = "/acknowledgments/:ad_response_id";

/** GET /acknowledgments/{ad_response_id}: what the books hold of a publisher's own response. */
export function lookUpEndpoint({ keys, store }: LookUpDeps): RequestHandler {
  return async (request, response) => {
    addToRequestLog(response, { operation: "look_up" });
    const publisher = admitKey(keys, request, response);
    if (publisher === undefined) {
      return;
    }
    const id = adResponseIdSchema.safeParse(request.params["ad_response_id"]);
    if (!id.success) {
      sendProblem(response, "unknown_ad_response");
      return;
    }
    const stored = await store.load(id.data);
    if (stored.kind === "unavailable") {
      addToRequestLog(response, { reason: stored.reason });
      sendStorageUnavailable(response);
    } else if (stored.value === undefined) {
      sendProblem(response, "unknown_ad_response");
    } else if (stored.value.publisher !== publisher) {
      sendProblem(response, "other_publisher");
    } else {
      const { acknowledgment, posts, disclosed } = stored.value;
      response.json({
        ad_response_id: id.data,
        acknowledged: acknowledgment !== undefined,
        ad_ack_id: acknowledgment?.adAckId ?? null,
        status: acknowledgment?.verdict ?? null,
        disclosed: disclosed ?? null,
        posts,
      });
    }
  };
}
