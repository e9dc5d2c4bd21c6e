import { createServer, type IncomingHttpHeaders } from "node:http";

/** A span as the collector received it. */
export interface CollectedSpan {
  readonly service: string;
  readonly name: string;
  /** The number that OTLP uses: 1 internal, 2 server, 3 client, 5 consumer. */
  readonly kind: number;
  readonly traceId: string;
  readonly spanId: string;
  readonly parentSpanId: string;
  readonly links: readonly { readonly traceId: string; readonly spanId: string }[];
  readonly attributes: Readonly<Record<string, unknown>>;
}

/** An OTLP/HTTP collector on a real socket. It receives traces in JSON. */
export interface OtlpCollector {
  readonly url: string;
  readonly spans: CollectedSpan[];
  readonly requests: {
    readonly path: string;
    readonly headers: IncomingHttpHeaders;
    readonly body: string;
  }[];
  close(): Promise<void>;
}

export async function startOtlpCollector(port = 0): Promise<OtlpCollector> {
  const spans: CollectedSpan[] = [];
  const requests: OtlpCollector["requests"] = [];
  const server = createServer(async (request, response) => {
    const chunks: Buffer[] = [];
    for await (const chunk of request) {
      chunks.push(Buffer.from(chunk));
    }
    const body = Buffer.concat(chunks).toString("utf8");
    requests.push({ path: request.url ?? "", headers: request.headers, body });
    spans.push(...spansOf(JSON.parse(body)));
    response.writeHead(200, { "content-type": "application/json" }).end("{}");
  });
  await new Promise<void>((resolve) => server.listen(port, "127.0.0.1", resolve));
  const address = server.address();
  const bound = typeof address === "object" && address !== null ? address.port : port;
  return {
    url: `http://127.0.0.1:${bound}`,
    spans,
    requests,
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}

function spansOf(batch: unknown): CollectedSpan[] {
  return listOf(batch, "resourceSpans").flatMap((one) => {
    const service = String(attributesOf(Object(one).resource)["service.name"]);
    return listOf(one, "scopeSpans")
      .flatMap((scope) => listOf(scope, "spans"))
      .map((span) => toSpan(service, Object(span)));
  });
}

function toSpan(service: string, span: Record<string, unknown>): CollectedSpan {
  const textOf = (name: string) => String(span[name] ?? "");
  return {
    service,
    name: textOf("name"),
    kind: Number(span["kind"]),
    traceId: textOf("traceId"),
    spanId: textOf("spanId"),
    parentSpanId: textOf("parentSpanId"),
    links: listOf(span, "links").map((link) => ({
      traceId: String(Object(link).traceId),
      spanId: String(Object(link).spanId),
    })),
    attributes: attributesOf(span),
  };
}

function attributesOf(owner: unknown): Record<string, unknown> {
  return Object.fromEntries(
    listOf(owner, "attributes").map((attribute) => {
      const { key, value } = Object(attribute);
      return [String(key), Object.values(Object(value))[0]];
    }),
  );
}

function listOf(owner: unknown, name: string): unknown[] {
  const value: unknown = Object(owner)[name];
  return Array.isArray(value) ? value : [];
}
