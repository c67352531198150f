import { Client, type Dispatcher } from 'undici'

/* The load generator: a process of its own that takes orders over IPC, and asks for paths one after the other on each connection. */

export interface GetOrder {
  readonly origin: string
  readonly paths: readonly string[]
  readonly connections: number
  readonly durationMs: number
}

export interface GetReport {
  readonly requests: number
  readonly perSecond: number
  readonly p50Ms: number
  readonly p99Ms: number
}

export type GetReply = { readonly ok: true; readonly report: GetReport } | { readonly ok: false; readonly error: string }

process.on('message', (order: GetOrder) => {
  run(order).then(
    (report) => process.send?.({ ok: true, report } satisfies GetReply),
    (error: unknown) => process.send?.({ ok: false, error: String(error) } satisfies GetReply),
  )
})
process.on('disconnect', () => process.exit())

async function run({ origin, paths, connections, durationMs }: GetOrder): Promise<GetReport> {
  const times: number[] = []
  const began = performance.now()
  const endsAt = began + durationMs
  let next = 0
  const work = async (): Promise<void> => {
    const client = new Client(origin, { keepAliveTimeout: 600_000, keepAliveMaxTimeout: 600_000, allowH2: false })
    while (performance.now() < endsAt) {
      const at = performance.now()
      await get(client, paths[next++ % paths.length] ?? '/')
      times.push(performance.now() - at)
    }
    await client.close()
  }
  await Promise.all(Array.from({ length: connections }, work))
  const elapsed = performance.now() - began
  const sorted = times.toSorted((a, b) => a - b)
  const at = (share: number) => sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? Number.NaN
  return { requests: times.length, perSecond: (times.length / elapsed) * 1_000, p50Ms: at(0.5), p99Ms: at(0.99) }
}

function get(client: Client, path: string): Promise<void> {
  const { promise, resolve, reject } = Promise.withResolvers<void>()
  const handler: Dispatcher.DispatchHandler = {
    onRequestStart() {},
    onResponseStart(_controller, status) {
      if (status !== 200) reject(new Error(`${path} was answered with ${status}`))
    },
    onResponseData() {},
    onResponseEnd: () => resolve(),
    onResponseError: (_controller, error) => reject(error),
  }
  client.dispatch({ method: 'GET', path }, handler)
  return promise
}
