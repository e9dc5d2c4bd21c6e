/** The queue of acknowledgments: the only package that knows BullMQ. */
export type { QueueCompletion } from "./completion.ts";
export {
  DeliveryQueue,
  type JobToInsert,
  type PayloadRef,
  type PromoteResult,
  type QueueCounts,
  type QueueJobState,
  type QueueOptions,
  type RequeueResult,
} from "./delivery-queue.ts";
export {
  DeliveryWorker,
  type HandlerOutcome,
  type QueuedPayload,
  type WorkerOptions,
} from "./delivery-worker.ts";
export type { FinishedJob, FinishJob, JobToFinish } from "./finishing-backend.ts";
export { InsertionError, type QueueInsertion } from "./insertion.ts";
