import { createServer, type IncomingMessage } from 'node:http'
import type { AddressInfo } from 'node:net'
import { checkLogs, checkMetrics, checkTraces, type ReceivedLog, type ReceivedMetric, type ReceivedSpan } from './otlp-check.ts'

export interface OtlpReceiver extends AsyncDisposable {
  /** Host and port. */
  readonly endpoint: string
  readonly spans: ReceivedSpan[]
  readonly metrics: ReceivedMetric[]
  readonly logs: ReceivedLog[]
  /** Rules of OTLP that were broken. */
  readonly problems: string[]
  /** Headers of the last request. */
  readonly headers: Readonly<Record<string, string | string[] | undefined>>
  requests: number
  /** The status of the answers; 200 stores what came. */
  status: number
}

/** A small collector that accepts nothing but valid OTLP/HTTP with JSON. */
export async function startOtlpReceiver({ host = '127.0.0.1' }: { readonly host?: string } = {}): Promise<OtlpReceiver> {
  const received = { spans: [] as ReceivedSpan[], metrics: [] as ReceivedMetric[], logs: [] as ReceivedLog[], problems: [] as string[] }
  const state = { requests: 0, status: 200, headers: {} as Record<string, string | string[] | undefined> }

  function store(path: string, body: unknown): void {
    if (path === '/v1/traces') received.spans.push(...checkTraces(body))
    else if (path === '/v1/metrics') received.metrics.push(...checkMetrics(body))
    else if (path === '/v1/logs') received.logs.push(...checkLogs(body))
    else throw new TypeError(`unknown path ${path}`)
  }

  const server = createServer(async (request, response) => {
    state.requests++
    state.headers = request.headers
    const text = await bodyOf(request)
    if (state.status !== 200) {
      response.writeHead(state.status).end()
      return
    }
    try {
      if (request.method !== 'POST' || request.headers['content-type'] !== 'application/json') throw new TypeError('not a POST of JSON')
      store(request.url ?? '', JSON.parse(text))
      response.writeHead(200, { 'content-type': 'application/json' }).end('{}')
    } catch (error) {
      received.problems.push(String(error))
      response.writeHead(400).end()
    }
  })
  await new Promise<void>((resolve) => server.listen(0, host, resolve))
  const { port } = server.address() as AddressInfo
  return Object.assign(state, received, {
    endpoint: `${host}:${port}`,
    async [Symbol.asyncDispose]() {
      server.closeAllConnections()
      await new Promise((resolve) => server.close(resolve))
    },
  })
}

async function bodyOf(request: IncomingMessage): Promise<string> {
  const chunks: Buffer[] = []
  for await (const chunk of request) chunks.push(chunk)
  return Buffer.concat(chunks).toString('utf8')
}
