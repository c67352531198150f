import { fork } from 'node:child_process'
import { once } from 'node:events'
import { ensureBundle } from '../../scripts/bundle.mjs'
import type { MeasuredProcess } from '../proxy/measured-process.ts'
import type { GetOrder, GetReply, GetReport } from './get-load.ts'

export interface GetLoad extends Disposable {
  /** Asks for a while, and tells what each request cost the process that answered. */
  burst(order: GetOrder, counted: MeasuredProcess): Promise<GetSample>
}

export interface GetSample extends GetReport {
  readonly cpuUs: number
}

const ORDER_LIMIT_MS = 60_000

export async function startGetLoad(): Promise<GetLoad> {
  const child = fork(await ensureBundle('bench/registry/get-load.ts'), { stdio: ['ignore', 'inherit', 'inherit', 'ipc'] })
  const ended = once(child, 'exit').then(() => Promise.reject(new Error('the load generator ended')))
  ended.catch(() => {}) // reported with the next order
  return {
    async burst(order, counted) {
      const before = await counted.usage()
      const answer = once(child, 'message', { signal: AbortSignal.timeout(ORDER_LIMIT_MS) })
      child.send(order)
      const [reply] = (await Promise.race([answer, ended])) as [GetReply]
      if (!reply.ok) throw new Error(`the load generator failed: ${reply.error}`)
      const after = await counted.usage()
      return { ...reply.report, cpuUs: (after.cpuUs - before.cpuUs) / reply.report.requests }
    },
    [Symbol.dispose]: () => void child.kill(),
  }
}
