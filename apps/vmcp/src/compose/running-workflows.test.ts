import { TestClock } from '@thv/kernel/clock'
import { EventLog } from '@thv/mcp/event-log'
import { createMemorySessionStore } from '@thv/store/memory-session-store'
import type { JsonValue, SessionStore } from '@thv/store/session-store'
import { CollectingLog } from '@thv/telemetry/testing/collecting-log'
import { describe, expect, it, vi } from 'vitest'
import { RunningWorkflows } from './running-workflows.ts'

const SESSION = { id: 'session-1', principal: 'ada', party: 'principal ada' }
const LEASE_MS = 15_000

function events() {
  const log = new EventLog({ version: '2025-11-25' })
  const stream = log.open()
  return { stream, id: log.prime(stream)?.id ?? '' }
}

function replicas() {
  const clock = new TestClock()
  const store = createMemorySessionStore<JsonValue>({ clock })
  const open = (more: Partial<SessionStore<JsonValue>> = {}) =>
    new RunningWorkflows({ store: { ...store, ...more, close: async () => undefined }, clock, log: new CollectingLog(), replica: 'pod-1' })
  /** Its writes do not arrive while `isAway` says so. */
  const openUnsteady = (isAway: () => boolean) =>
    open({ update: (...args) => (isAway() ? Promise.reject(new Error('away')) : store.update(...args)) })
  return { clock, store, open, openUnsteady }
}

async function running(workflows: RunningWorkflows, onLost: () => void = () => undefined, requestId: string | number = 7) {
  const { stream, id } = events()
  const workflow = workflows.open({ session: SESSION, requestId, stream, onLost })
  await workflow?.begin()
  return { workflow, eventId: id }
}

describe('workflows that run', () => {
  it('are left alone while their replica renews its lease, and reported once when it does not any more', async () => {
    const { clock, open, openUnsteady } = replicas()
    let isDead = false
    const here = open()
    const { stream, id: eventId } = events()
    const dying = openUnsteady(() => isDead)
    const workflow = dying.open({ session: SESSION, requestId: 'a', stream, onLost: () => undefined })
    await workflow?.begin()
    await workflow?.step('one')
    await Promise.all([workflow?.step('two'), workflow?.step('three'), workflow?.step('one')])
    await clock.advance(10 * LEASE_MS)
    expect(await here.find(SESSION, eventId)).toBe('running')
    isDead = true
    await clock.advance(LEASE_MS)
    for (const other of [{ principal: 'bob' }, { id: 'session-2' }])
      expect(await here.find({ ...SESSION, ...other }, eventId)).toBeUndefined()
    for (const other of [events().id, '', 'x', `${eventId}.1`, 'a b']) expect(await here.find(SESSION, other)).toBeUndefined()
    const told = await Promise.all([here, here, open()].map((replica) => replica.find(SESSION, eventId)))
    expect(told).toContainEqual({ requestId: 'a', mayHaveRun: 3 })
    expect(told.filter((each) => typeof each === 'object')).toHaveLength(1)
    expect(await here.find(SESSION, eventId)).toBeUndefined()
  })

  it('of clients that are away when they are found are reported later, however many there are', async () => {
    const { clock, open } = replicas()
    const here = open()
    const dying = open({ update: () => Promise.reject(new Error('away')) })
    const left = []
    for (let i = 0; i < 1_001; i++) {
      const session = { ...SESSION, id: `session-${i}`, party: `principal ${i}` }
      const { stream, id: eventId } = events()
      await dying.open({ session, requestId: i, stream, onLost: () => undefined })?.begin()
      left.push({ session, eventId })
    }
    await clock.advance(LEASE_MS)
    for (const { session, eventId } of left) expect(await here.find(session, eventId, () => true)).toBeUndefined()
    // One more than are remembered: only the oldest is lost.
    const told = await Promise.all(left.map(({ session, eventId }) => here.find(session, eventId)))
    expect(told.filter((each) => typeof each === 'object')).toHaveLength(1_000)
    expect(told[0]).toBeUndefined()
  })

  it('leave nothing behind when they end, also when that is before they have begun', async () => {
    const { clock, store, open } = replicas()
    const workflows = open()
    const { workflow, eventId } = await running(workflows)
    expect(await store.size()).toBe(1)
    if (workflow !== undefined) workflows.end(workflow)
    const early = workflows.open({ session: SESSION, requestId: 8, stream: events().stream, onLost: () => undefined })
    const begun = early?.begin()
    if (early !== undefined) workflows.end(early)
    await begun
    await workflows.close()
    expect(await store.size()).toBe(0)
    await clock.advance(LEASE_MS)
    expect(await open().find(SESSION, eventId)).toBeUndefined()
    expect(clock.pending).toBe(0)
  })

  it('are reported at once when their replica stops in good order, and forgotten after ten minutes', async () => {
    const { clock, store, open } = replicas()
    const stopping = open()
    const first = await running(stopping)
    const second = await running(stopping)
    await first.workflow?.step('one')
    await stopping.close()
    expect(await open().find(SESSION, first.eventId)).toEqual({ requestId: 7, mayHaveRun: 1 })
    await clock.advance(600_000)
    expect(await open().find(SESSION, second.eventId)).toBeUndefined()
    expect(await store.size()).toBe(0)
  })

  it('stop before their next step when another replica has reported them as interrupted', async () => {
    const { clock, open, openUnsteady } = replicas()
    let isAway = false
    const onLost = vi.fn()
    const { stream, id } = events()
    const slow = openUnsteady(() => isAway)
    const workflow = slow.open({ session: SESSION, requestId: 7, stream, onLost })
    await workflow?.begin()
    isAway = true
    await clock.advance(LEASE_MS)
    expect(await open().find(SESSION, id)).toEqual({ requestId: 7, mayHaveRun: 0 })
    isAway = false
    await workflow?.step('one')
    expect(onLost).toHaveBeenCalledOnce()
    await slow.close()
    expect(await open().find(SESSION, id)).toBeUndefined()
  })

  it('go on without a store that does not work, and are not noted where the request id is too long', async () => {
    const { store, open } = replicas()
    const down = () => Promise.reject(new Error('away'))
    const broken = open({ create: down, update: down, delete: down })
    const onLost = vi.fn()
    const { workflow } = await running(broken, onLost)
    await workflow?.step('one')
    await broken.close()
    expect((await running(open(), onLost, 'x'.repeat(513))).workflow).toBeUndefined()
    expect(onLost).not.toHaveBeenCalled()
    expect(await store.size()).toBe(0)
    await expect(open({ get: down }).find(SESSION, events().id)).rejects.toThrow('away')
  })

  it('are written again where an answer of the store was lost, and removed later where it does not answer', async () => {
    const { clock, store, open } = replicas()
    let lost = 3
    const losing =
      <A extends unknown[], T>(run: (...args: A) => Promise<T>) =>
      async (...args: A): Promise<T> => {
        const answer = await run(...args)
        if (lost-- > 0) throw new Error('lost')
        return answer
      }
    let isAway = true
    const remove = (...args: Parameters<typeof store.delete>) => (isAway ? Promise.reject(new Error('away')) : store.delete(...args))
    const workflows = open({ create: losing(store.create), update: losing(store.update), delete: remove })
    const { stream, id } = events()
    const workflow = workflows.open({ session: SESSION, requestId: 7, stream, onLost: () => expect.unreachable() })
    await workflow?.begin()
    await workflow?.step('one')
    await workflow?.step('two')
    const { value } = (await store.get({ id: `${SESSION.id}.${stream}`, owner: SESSION.principal })) ?? {}
    expect(value).toMatchObject({ request: 7, steps: 2, replica: 'pod-1' })
    if (workflow !== undefined) workflows.end(workflow)
    await clock.advance(1)
    isAway = false
    await clock.advance(10_000)
    expect(await store.size()).toBe(0)
    expect(await open().find(SESSION, id)).toBeUndefined()
  })

  it.each(['carried out', 'not carried out'])('are reported once, also when the answer to the claim was lost (%s)', async (what) => {
    const { clock, store, open } = replicas()
    const dead = open()
    const { eventId } = await running(dead)
    await dead.close()
    await clock.advance(LEASE_MS)
    let lost = 1
    const here = open({
      update: async (...args) => {
        const isLost = lost-- > 0
        const answer = isLost && what !== 'carried out' ? undefined : await store.update(...args)
        if (isLost || answer === undefined) throw new Error('lost')
        return answer
      },
    })
    await expect(here.find(SESSION, eventId)).rejects.toThrow('lost')
    // A client that has gone meanwhile can come back.
    expect(await here.find(SESSION, eventId, () => true)).toBeUndefined()
    expect(await here.find(SESSION, eventId)).toEqual({ requestId: 7, mayHaveRun: 0 })
    for (const replica of [here, open()]) expect(await replica.find(SESSION, eventId)).toBeUndefined()
  })

  it('that a store has forgotten go on', async () => {
    const { store, open } = replicas()
    const onLost = vi.fn()
    const { stream } = events()
    const workflow = open().open({ session: SESSION, requestId: 7, stream, onLost })
    await workflow?.begin()
    await store.delete({ id: `${SESSION.id}.${stream}`, owner: SESSION.principal })
    await workflow?.step('one')
    await workflow?.step('two')
    expect(onLost).not.toHaveBeenCalled()
    expect(await store.size()).toBe(0)
  })
})
