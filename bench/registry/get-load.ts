import { once } from 'node:events'
import { connect, type Socket } from 'node:net'

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
  const { hostname, port, host } = new URL(origin)
  const requests = paths.map((path) => Buffer.from(`GET ${path} HTTP/1.1\r\nHost: ${host}\r\n\r\n`, 'latin1'))
  const times: number[] = []
  const began = performance.now()
  const endsAt = began + durationMs
  let next = 0
  const work = async (): Promise<void> => {
    const socket = connect({ host: hostname, port: Number(port), noDelay: true })
    await once(socket, 'connect')
    await new Promise<void>((resolve, reject) => {
      let at = 0
      const ask = (): void => {
        at = performance.now()
        if (at >= endsAt) resolve()
        else socket.write(requests[next++ % requests.length] ?? '')
      }
      onAnswer(socket, (problem) => {
        if (problem === undefined) {
          times.push(performance.now() - at)
          ask()
        } else reject(new Error(problem))
      })
      socket.on('error', reject)
      ask()
    })
    socket.destroy()
  }
  await Promise.all(Array.from({ length: connections }, work))
  const elapsed = performance.now() - began
  const sorted = times.toSorted((a, b) => a - b)
  const at = (share: number) => sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? Number.NaN
  return { requests: times.length, perSecond: (times.length / elapsed) * 1_000, p50Ms: at(0.5), p99Ms: at(0.99) }
}

const GOOD = Buffer.from('HTTP/1.1 200 ')
const LENGTH = Buffer.from('Content-Length: ')

/** Reads just enough of answers to know where they end: a real client costs more than the server that is measured. */
function onAnswer(socket: Socket, done: (problem?: string) => void): void {
  let left = 0
  socket.on('data', (chunk: Buffer) => {
    if (left === 0) {
      const head = chunk.indexOf('\r\n\r\n')
      const at = chunk.indexOf(LENGTH)
      if (head < 0 || at < 0 || !chunk.subarray(0, GOOD.length).equals(GOOD)) return done(`answered with ${chunk.subarray(0, 60)}`)
      left = head + 4 + Number(chunk.toString('latin1', at + LENGTH.length, chunk.indexOf(13, at)))
    }
    left -= chunk.length
    if (left === 0) done()
  })
}
