/**
 * Headers of every answer, of all listeners. Answers are JSON or text with users' data or live state: no cache may keep
 * one, and no browser may take one for a page or a script.
 */
export const ANSWER_HEADERS = [
  ["Cache-Control", "no-store"],
  ["X-Content-Type-Options", "nosniff"],
] as const;
