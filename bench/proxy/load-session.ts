import { performance } from 'node:perf_hooks'
import type { LoadReport } from './load-plan.ts'

/** One client of many. */
export interface LoadSession {
  open(): Promise<void>
  /** Rejects unless the right answer came. */
  call(): Promise<void>
  /** With `keep` the session lives on at the server. */
  close(keep: boolean): Promise<void>
}

/** Opens some at a time: hundreds of handshakes at once would measure the kernel's queue of connections. */
export async function openAll(sessions: readonly LoadSession[]): Promise<void> {
  const waiting = [...sessions]
  const open = async () => {
    for (let session = waiting.pop(); session !== undefined; session = waiting.pop()) await session.open()
  }
  await Promise.all(Array.from({ length: 16 }, open))
}

/** No run is longer, whatever number of calls it should have. */
const RUN_LIMIT_MS = 30_000

/** Lets every session call again and again until the time is over, and there are enough calls. */
export async function runAll(
  sessions: readonly LoadSession[],
  { durationMs, minCalls = 0 }: { readonly durationMs: number; readonly minCalls?: number },
): Promise<LoadReport> {
  const latencies: number[] = []
  const startedAt = performance.now()
  const endsAt = startedAt + durationMs
  const work = async (session: LoadSession) => {
    for (let begun = startedAt; begun < endsAt || (latencies.length < minCalls && begun < startedAt + RUN_LIMIT_MS); ) {
      await session.call()
      const now = performance.now()
      latencies.push(now - begun)
      begun = now
    }
  }
  await Promise.all(sessions.map(work))
  const ms = performance.now() - startedAt
  latencies.sort((a, b) => a - b)
  return { calls: latencies.length, ms, p50Ms: quantile(latencies, 0.5), p99Ms: quantile(latencies, 0.99) }
}

function quantile(sorted: readonly number[], share: number): number {
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? Number.NaN
}
