/** Where acknowledgments are kept until the relay has them. */

/** An acknowledgment as an outbox keeps it. Its text is what a user read: protect it as you protect your chats. */
export interface StoredAcknowledgment {
  readonly adResponseId: string;
  readonly text: string;
  readonly storedAtMs: number;
  /** The answer hasn't ended, so its text isn't known. If its process is gone, the text that is sent is empty. */
  readonly isOpen?: true;
  /** The headers of its trace; they are sent with every attempt. */
  readonly traceHeaders?: Readonly<Record<string, string>>;
}

/**
 * Keeps acknowledgments beside the process' memory, so that another process can send what this one no longer can.
 * Nothing has to happen exactly once: the relay accepts a repeat with the same text, so an acknowledgment that comes back
 * after it was removed does no harm.
 */
export interface Outbox {
  /** Whether what it has stored outlives this process. */
  readonly isDurable: boolean;
  /**
   * Resolves once it is stored, in place of an open one with its id. If it rejects, the client sends the acknowledgment all the
   * same. An ad is stored as open before its prompt goes to the model, so this delays the answer.
   */
  add(acknowledgment: StoredAcknowledgment): Promise<void>;
  /** Forgets one that the relay has accepted or refused. */
  remove(adResponseId: string): Promise<void>;
  /** Takes over what processes left that are gone. From then on it is this process' own. */
  takeLeftOver(): Promise<readonly StoredAcknowledgment[]>;
  /** Stores what is being added. What is stored may be taken by others from now on. A `remove` may still come. */
  close(): Promise<void>;
}

/** Keeps nothing beside the client's own memory: what isn't sent when the process ends is lost. */
export function memoryOutbox(): Outbox {
  const nothing = async () => {};
  return { isDurable: false, add: nothing, remove: nothing, takeLeftOver: async () => [], close: nothing };
}
