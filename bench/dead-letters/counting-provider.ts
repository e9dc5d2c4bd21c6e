import { createServer } from "node:http";

/** An ad service that takes every acknowledgment once and answers 409 to its repeats. It counts both. */
export interface CountingProvider {
  readonly url: string;
  /** How many times each idempotency key was posted. */
  readonly posts: ReadonlyMap<string, number>;
  close(): Promise<void>;
}

export async function startCountingProvider(): Promise<CountingProvider> {
  const posts = new Map<string, number>();
  const server = createServer((request, response) => {
    request.resume().once("end", () => {
      const key = String(request.headers["idempotency-key"]);
      const before = posts.get(key) ?? 0;
      posts.set(key, before + 1);
      const answer = { ad_ack_id: key, status: "ok", success: true };
      response.writeHead(before === 0 ? 200 : 409, { "content-type": "application/json" });
      response.end(JSON.stringify(answer));
    });
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const address = server.address();
  const port = typeof address === "object" && address !== null ? address.port : 0;
  return {
    url: `http://127.0.0.1:${port}`,
    posts,
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}
