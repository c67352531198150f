import { fork } from 'node:child_process'
import { once } from 'node:events'
import { ensureBundle } from '../../scripts/bundle.mjs'
import type { LoadReport, Order, Reply } from './load-plan.ts'

export interface LoadGenerator extends Disposable {
  order(order: Order): Promise<LoadReport | undefined>
}

const ORDER_LIMIT_MS = 60_000

/** The process that makes the load, seen from the one that measures. */
export async function startLoadGenerator(): Promise<LoadGenerator> {
  const child = fork(await ensureBundle('bench/proxy/load.ts'), { stdio: ['ignore', 'inherit', 'inherit', 'ipc'] })
  const ended = once(child, 'exit').then(() => Promise.reject(new Error('the load generator ended')))
  ended.catch(() => {}) // reported with the next order
  return {
    async order(order) {
      const answer = once(child, 'message', { signal: AbortSignal.timeout(ORDER_LIMIT_MS) })
      child.send(order)
      const [reply] = (await Promise.race([answer, ended])) as [Reply]
      if (!reply.ok) throw new Error(`the load generator failed: ${reply.error}`)
      return reply.report
    },
    [Symbol.dispose]: () => void child.kill(),
  }
}
