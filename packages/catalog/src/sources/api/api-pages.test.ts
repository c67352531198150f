import { expect, it } from 'vitest'
import type { EntryReading } from '../format/read-entry.ts'
import { documentText } from '../testing/fetch-context.ts'
import { pageSteps } from './api-pages.ts'

it('reads a page in bounded steps, so that a long one does not stop everybody else', () => {
  const servers = Array.from({ length: 3_000 }, (_, i) => `{"server":${documentText(`s${i}`)},"_meta":{"x":"${'y'.repeat(600)}"}}`)
  const body = Buffer.from(`{"servers":[${servers.join()}],"metadata":{"nextCursor":"more"}}`)
  const taken: EntryReading[] = []
  const steps = pageSteps(body, { strict: false, take: (reading) => taken.push(reading) })
  let before = 0
  let step = steps.next()
  for (; !step.done; step = steps.next()) {
    expect(taken.length - before).toBeLessThan(1_000)
    before = taken.length
  }
  expect(step.value).toBe('more')
  expect(taken).toHaveLength(3_000)
  expect(taken[2_999]?.entry?.name).toBe('io.example/s2999')
})
