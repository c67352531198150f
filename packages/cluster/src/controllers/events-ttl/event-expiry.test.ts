import { TestClock } from '@thv/kernel/clock'
import { events, type KubeEvent } from '@thv/kube'
import { describe, expect, it } from 'vitest'
import { startEmbeddedPlane } from '../scenarios/testing/embedded-plane.ts'
import { eventExpiry } from './event-expiry.ts'

const START = Date.parse('2026-01-01T12:00:00Z')
const ago = (minutes: number) => `${new Date(START - minutes * 60_000).toISOString().slice(0, 19)}.000000Z`

function event(name: string, minutes: number, more: Partial<KubeEvent> = {}): KubeEvent {
  const regarding = { apiVersion: 'v1', kind: 'Pod', namespace: 'default', name: 'p' }
  return {
    metadata: { namespace: 'default', name },
    eventTime: ago(minutes),
    type: 'Normal',
    reason: 'Tested',
    action: 'Test',
    note: name,
    regarding,
    reportingController: 'thv.test/events',
    reportingInstance: 'one',
    ...more,
  }
}

describe('old Events', () => {
  it('go an hour after they last happened, however many there are', async () => {
    await using plane = await startEmbeddedPlane([])
    const { client } = plane.env
    const clock = new TestClock(START)
    // Their creation cannot be back-dated, so the clock of the expiry goes ahead of it.
    const ahead = Date.now() - START
    const expiring = { ...plane.env, clock: { ...bind(clock), now: () => clock.now() + ahead } }
    const shift = (object: KubeEvent): KubeEvent => ({
      ...object,
      eventTime: later(object.eventTime, ahead),
      ...(object.series && { series: { ...object.series, lastObservedTime: later(object.series.lastObservedTime, ahead) } }),
    })
    for (let index = 0; index < 120; index++) await client.create(events, shift(event(`old-${index}`, 0)))
    await client.create(events, shift(event('repeated', 0, { series: { count: 3, lastObservedTime: ago(-50) } })))
    const stop = new AbortController()
    const running = eventExpiry(expiring, {}).run(stop.signal)
    const names = async () => (await client.listAll(events)).items.map(({ metadata }) => metadata.name.replace(/\d+/, 'N'))
    await expect.poll(() => clock.pending).toBeGreaterThan(0)
    expect(await names()).toHaveLength(121) // nothing is old yet
    await clock.advance(61 * 60_000)
    await expect
      .poll(
        async () => {
          await clock.advance(1_000)
          return await names()
        },
        { timeout: 60_000 },
      )
      .toEqual(['repeated'])
    stop.abort()
    await running
    expect(plane.errors).toEqual([])
  })
})

function later(time: string | undefined, ms: number): string {
  return `${new Date(Date.parse(time ?? '') + ms).toISOString().slice(0, 19)}.000000Z`
}

function bind(clock: TestClock) {
  return {
    monotonic: () => clock.monotonic(),
    sleep: (ms: number, signal?: AbortSignal) => clock.sleep(ms, signal),
    setTimer: (ms: number, fn: () => void) => clock.setTimer(ms, fn),
  }
}
