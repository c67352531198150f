import { afterMessage, changeSession, type HttpSession, newSession } from '@thv/gateway/sessions/session-record'
import { testContext } from '@thv/middleware/testing/test-context'
import { createMemorySessionStore } from '@thv/store/memory-session-store'
import { describe, expect, it } from 'vitest'

const FRESH = newSession('b1', '2025-11-25', '{}')

function after(...messages: object[]): HttpSession {
  return messages.reduce<HttpSession>((session, message) => afterMessage(session, testContext(message).received), FRESH)
}

describe('the stored record of a session', () => {
  it('by the messages that the backend took', () => {
    const session = after(
      { method: 'notifications/initialized' },
      { id: 1, method: 'logging/setLevel', params: { level: 'debug' } },
      { id: 2, method: 'resources/subscribe', params: { uri: 'a:1' } },
      { id: 3, method: 'resources/subscribe', params: { uri: 'a:2' } },
      { id: 4, method: 'resources/subscribe', params: { uri: 'a:1' } },
      { id: 5, method: 'resources/unsubscribe', params: { uri: 'a:2' } },
    )
    expect(session).toEqual({ ...FRESH, initialized: true, level: 'debug', subscriptions: ['a:1'] })
  })

  it('is the same object when nothing has changed', () => {
    expect(after({ id: 1, method: 'tools/list' }, { id: 2, method: 'logging/setLevel', params: { level: 5 } })).toBe(FRESH)
  })

  it('keeps a bounded number of subscriptions and no huge handshake', () => {
    const many = Array.from({ length: 1_005 }, (_, i) => ({ id: i, method: 'resources/subscribe', params: { uri: `a:${i}` } }))
    expect(after(...many).subscriptions).toHaveLength(1_000)
    expect(newSession('b', 'v', 'x'.repeat(100_000)).initialize).toBeUndefined()
  })
})

describe('changeSession', () => {
  it('loses no change of many at once', async () => {
    const store = createMemorySessionStore<HttpSession>()
    const ref = { id: 's', owner: 'o' }
    await store.create({ ...ref, value: FRESH }, 60_000)
    const uris = ['a', 'b', 'c', 'd', 'e']
    await Promise.all(
      uris.map((uri) => changeSession(store, ref, (session) => ({ ...session, subscriptions: [...session.subscriptions, uri] }))),
    )
    expect((await store.get(ref))?.value.subscriptions.toSorted()).toEqual(uris)
    await store.close()
  })

  it('is undefined when the session is gone', async () => {
    const store = createMemorySessionStore<HttpSession>()
    expect(await changeSession(store, { id: 's', owner: 'o' }, (session) => ({ ...session }))).toBeUndefined()
    await store.close()
  })
})
