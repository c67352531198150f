import type { BackendProblem, BackendStatus } from '@thv/gateway/backend'
import { TestClock } from '@thv/kernel/clock'
import { expect, it } from 'vitest'
import { reportProblems } from './problem-reports.ts'

const CLOSED: BackendProblem = { reason: 'BackendPortClosed', message: 'closed' }
const FOREIGN: BackendProblem = { reason: 'WorkloadForeign', message: 'foreign' }

it('reports the cause that the runtime knows before that of the backend, and that it is over only after a while', async () => {
  const clock = new TestClock()
  const stop = new AbortController()
  const reports: (string | undefined)[] = []
  let status: Pick<BackendStatus, 'ready' | 'problem'> = { ready: false }
  let problem: BackendProblem | undefined
  const done = reportProblems({
    backend: {
      get status() {
        return status as BackendStatus
      },
    },
    runtime: {
      get problem() {
        return problem
      },
      report: (told) => void reports.push(told?.reason),
    },
    clock,
    signal: stop.signal,
  })
  await clock.advance(1_000)
  expect(reports).toEqual([])
  status = { ready: false, problem: CLOSED }
  await clock.advance(1_000)
  problem = FOREIGN
  await clock.advance(1_000)
  status = { ready: true, problem: CLOSED }
  await clock.advance(1_000)
  expect(reports).toEqual(['BackendPortClosed', 'WorkloadForeign', undefined])
  reports.length = 0
  problem = undefined
  status = { ready: false, problem: CLOSED }
  await clock.advance(1_000)
  status = { ready: false }
  for (let look = 0; look < 2; look++) await clock.advance(1_000)
  expect(reports).toEqual(['BackendPortClosed'])
  await clock.advance(1_000)
  expect(reports).toEqual(['BackendPortClosed', undefined])
  stop.abort()
  await done
})
