import { createOutbound } from '@thv/http/outbound/outbound'
import { startBackend } from '@thv/http/testing/backend'
import { describe, expect, it } from 'vitest'
import { testContext } from '../testing/fetch-context.ts'
import { download } from './download.ts'
import type { FetchPlace } from './fetch-address.ts'

const MIB = 1024 * 1024

describe('a download and the place of its attempt', () => {
  it('is away while it waits, and back when there is something to do', async () => {
    const place = watchedPlace()
    expect((await load({ place, bytes: [10] })).length).toBe(10)
    expect(place.events).toEqual(['leave', 'take', 'taken'])
  })

  it('has no more than a few megabytes received before it has its place, and then all of it', async () => {
    const place = watchedPlace()
    const got = load({ place, bytes: Array.from({ length: 64 }, () => MIB) })
    await place.asked
    // Whatever the sockets between them hold, it is far from all.
    await new Promise((resolve) => setTimeout(resolve, 300))
    expect(place.events).toEqual(['leave', 'take'])
    expect(place.sent).toBeLessThan(50 * MIB)
    place.let()
    expect((await got).length).toBe(64 * MIB)
    expect(place.events).toEqual(['leave', 'take', 'taken', 'take', 'taken'])
  })

  it('does not leave again once much was received', async () => {
    const place = watchedPlace()
    place.let()
    const memo = new Map()
    await load({ place, bytes: [5 * MIB], memo })
    place.events.length = 0
    await load({ place, bytes: [10], memo })
    expect(place.events).toEqual([])
  })

  it('is not late because it had to wait for its place', async () => {
    const place = watchedPlace()
    const got = load({ place, bytes: [5 * MIB, 5 * MIB], timeoutMs: 5_000 })
    await place.asked
    await new Promise((resolve) => setTimeout(resolve, 5_500))
    place.let()
    expect((await got).length).toBe(10 * MIB)
  })
})

type WatchedPlace = ReturnType<typeof watchedPlace>

/** Of the first bytes on it takes until `let` to get it back. */
function watchedPlace() {
  const asked = Promise.withResolvers<void>()
  const open = Promise.withResolvers<void>()
  const events: string[] = []
  const place = {
    events,
    sent: 0,
    asked: asked.promise,
    let: open.resolve,
    leave: () => void events.push('leave'),
    async take() {
      events.push('take')
      asked.resolve()
      if (place.sent > MIB) await open.promise
      events.push('taken')
    },
  } satisfies FetchPlace & Record<string, unknown>
  return place
}

async function load(options: { place: WatchedPlace; bytes: readonly number[]; timeoutMs?: number; memo?: Map<string, unknown> }) {
  const { place, bytes, timeoutMs = 30_000, memo = new Map() } = options
  await using backend = await startBackend(async (_request, response) => {
    for (const count of bytes) {
      place.sent += count
      if (!response.write(Buffer.alloc(count))) await new Promise((resolve) => response.once('drain', resolve))
    }
    response.end()
  })
  await using outbound = createOutbound()
  const { body } = await download(outbound, { url: backend.url, maxBytes: 100 * MIB, timeoutMs }, testContext({ place, memo }))
  return body
}
