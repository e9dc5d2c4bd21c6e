/** Everything that is on the wire or in the queue: schemas, types, error codes. */
export { duplicateKeys } from "./duplicate-keys.ts";
export { ERROR_CATALOGUE, type ErrorCode, type ErrorEntry, type Retryable } from "./error-codes.ts";
export {
  type AcknowledgmentRequest,
  type AcknowledgmentResponse,
  acknowledgmentRequestSchema,
  acknowledgmentResponseSchema,
  readAcknowledgmentRequest,
  readAcknowledgmentResponse,
  VERDICTS,
  type Verdict,
  verdictSchema,
} from "./http/acknowledgment.ts";
export {
  type AcknowledgmentDetail,
  type AcknowledgmentView,
  ADMIN_PATH,
  type AuditEntryView,
  acknowledgmentDetailSchema,
  acknowledgmentPageSchema,
  acknowledgmentViewSchema,
  attemptViewSchema,
  auditEntrySchema,
  auditPageSchema,
  BOOKED_STATES,
  CHECK_STATUSES,
  type DataLossView,
  DISCARD_REASON_CHARS_MAX,
  type DoctorCheck,
  type DoctorReport,
  dataLossSchema,
  doctorCheckSchema,
  doctorReportSchema,
  dryRunSchema,
  LISTED_STATES,
  movedSchema,
  PAGE_ROWS_MAX,
  type ProcessView,
  type ProviderStanding,
  processSchema,
  providerStandingSchema,
  REPLAY_RATE_DEFAULT,
  REPLAY_RATE_MAX,
  type ReplayView,
  replayListSchema,
  replaySchema,
  type StateCounts,
  type Stats,
  statsSchema,
} from "./http/admin.ts";
export { baseUrlSchema, headerKeySchema, headerNameSchema } from "./http/forms.ts";
export {
  AGE_MAX,
  ASN_MAX,
  type EnhancementResponse,
  filledResponseSchema,
  GENDERS,
  INJECTION_OUTCOMES,
  type InjectionOutcome,
  type InjectionRequest,
  injectionRequestSchema,
  unfilledResponseSchema,
  WRAPPING_TYPES,
} from "./http/injection.ts";
export {
  ACKNOWLEDGE_PATH,
  ACKNOWLEDGMENTS_PATH,
  API_KEY_HEADER,
  IDEMPOTENCY_KEY_HEADER,
  INJECTION_PATH,
  REQUEST_ID_HEADER,
} from "./http/paths.ts";
export { READINESS_PATH, type Readiness, readinessSchema } from "./http/readiness.ts";
export {
  formatTraceparent,
  parseTraceContext,
  TRACEPARENT_HEADER,
  TRACESTATE_HEADER,
  type TraceContext,
  traceHeadersOf,
} from "./http/trace-context.ts";
export {
  type AdAckId,
  type AdResponseId,
  adAckIdSchema,
  adResponseIdSchema,
  isFoldedUuid,
  type PublisherId,
  publisherIdSchema,
  uuidOfHex,
} from "./ids.ts";
export { DELIVERY_JOB_VERSION, type DeliveryJob, readDeliveryJob } from "./payloads/delivery-job.ts";
export { type OutcomeNotice, outcomeNoticeSchema } from "./payloads/outcome-notice.ts";
export {
  type FieldFault,
  faultsOf,
  fieldFaultSchema,
  makeProblem,
  PROBLEM_CONTENT_TYPE,
  type Problem,
  type ProblemDetails,
  problemSchema,
} from "./problem.ts";
