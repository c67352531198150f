import { headerText } from '@thv/http/header-map'
import type { Hop } from '@thv/middleware/pipeline/request-context'
import { testHop } from '@thv/middleware/testing/test-context'
import { CollectingLog } from '@thv/telemetry/testing/collecting-log'
import { describe, expect, it } from 'vitest'
import { newSession } from '../sessions/session-record.ts'
import { AbandonedSessions } from './abandoned-sessions.ts'
import type { BackendClient, BackendQuestion } from './backend-client.ts'

/** A backend that answers a DELETE on command. */
function slowBackend() {
  const asked: { readonly id: string | undefined; readonly answer: (error?: Error) => void }[] = []
  const backend = {
    ownPath: '/mcp',
    ownHop: async () => testHop(),
    ask(_hop: Hop, { set }: BackendQuestion) {
      const { promise, resolve, reject } = Promise.withResolvers<{ status: number }>()
      asked.push({ id: headerText(set?.['mcp-session-id']), answer: (error) => (error ? reject(error) : resolve({ status: 204 })) })
      return promise
    },
  }
  return { asked, backend: backend as unknown as BackendClient }
}

function start(options: { readonly hasBackend?: boolean } = {}) {
  const closing = new AbortController()
  const { asked, backend } = slowBackend()
  const log = new CollectingLog()
  const current = () => (options.hasBackend === false ? undefined : backend)
  const abandoned = new AbandonedSessions({ backend: current, log, timeoutMs: 1_000, signal: closing.signal })
  const end = (count: number, from = 0) => {
    for (let i = from; i < from + count; i++) abandoned.end(newSession(`s${i}`, '2025-11-25', '{}'))
  }
  return { asked, end, closing }
}

const settled = () => new Promise((resolve) => setImmediate(resolve))

describe('abandoned sessions', () => {
  it('are ended a few at a time, in their order, and a failure ends only itself', async () => {
    const { asked, end } = start()
    end(6)
    await settled()
    expect(asked.map(({ id }) => id)).toEqual(['s0', 's1', 's2', 's3'])
    asked[1]?.answer(new Error('no'))
    asked[0]?.answer()
    await settled()
    expect(asked.map(({ id }) => id)).toEqual(['s0', 's1', 's2', 's3', 's4', 's5'])
    for (const { answer } of asked) answer()
    await settled()
    end(1, 6)
    await settled()
    expect(asked.at(-1)?.id).toBe('s6')
  })

  it('above the bound are left to the backend', async () => {
    const { asked, end } = start()
    end(1_100)
    await settled()
    for (let done = 0; done < asked.length; done++) {
      asked[done]?.answer()
      await settled()
    }
    expect(asked).toHaveLength(1_004)
  })

  it('are forgotten while there is no backend, and when the runner stops', async () => {
    const without = start({ hasBackend: false })
    without.end(3)
    await settled()
    expect(without.asked).toEqual([])
    const { asked, end, closing } = start()
    end(6)
    closing.abort()
    for (const { answer } of asked) answer()
    await settled()
    expect(asked).toHaveLength(4)
  })
})
