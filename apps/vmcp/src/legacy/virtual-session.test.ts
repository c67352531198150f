import type { SessionStreams } from '@thv/gateway/streams/session-streams'
import { TestClock } from '@thv/kernel/clock'
import type { JsonObject } from '@thv/mcp/json-rpc'
import { CollectingLog } from '@thv/telemetry/testing/collecting-log'
import { describe, expect, it } from 'vitest'
import type { Member } from '../members/member.ts'
import type { SendToClient } from './client-questions.ts'
import { recordBytes, recordOf, VirtualSession } from './virtual-session.ts'

describe('a session of a legacy client', () => {
  function open(params: JsonObject = {}) {
    const delivered: string[] = []
    const outlet = { deliver: (text: string) => delivered.push(text) } as unknown as SessionStreams
    const key = { id: 's', principal: 'ada', party: 'ada' }
    const session = new VirtualSession({ ...key, params, outlet, clock: new TestClock(), log: new CollectingLog() })
    const listening = { close: async () => undefined }
    const member = { name: 'one', open: () => ({ listen: async () => listening }) } as unknown as Member
    return { session, member, delivered }
  }

  /** A way to a client that accepts whatever it is asked. */
  function accepting(session: VirtualSession) {
    const asked: JsonObject[] = []
    const send: SendToClient = (text) => {
      const { id, params } = JSON.parse(text)
      asked.push(params)
      const message = { jsonrpc: '2.0', id, result: { action: 'accept' } } as const
      queueMicrotask(() => session.questions.answered({ kind: 'response', id, method: undefined, message, text: '' }))
      return true
    }
    return { asked, send }
  }

  it('subscribes to a limited number of resources', async () => {
    const { session, member } = open()
    for (let i = 0; i < 1_000; i++) await session.subscribe(member, `test://${i}`)
    await expect(session.subscribe(member, 'test://more')).rejects.toThrow('may subscribe to 1000 resources')
    await session.subscribe(member, 'test://7')
    await session.unsubscribe('test://7')
    await session.subscribe(member, 'test://more')
    expect(session.subscriptions.length).toBe(1_000)
  })

  it('takes 64 KiB in the store at most: what would be more is refused, and nothing that is there is lost', async () => {
    const { session, member } = open({ clientInfo: { name: 'x'.repeat(30_000), version: '1' } })
    session.isInitialized = true
    session.level = 'emergency'
    // Two bytes for each of these characters.
    const uri = (i: number) => `test://${i}/${'é'.repeat(4_000)}`
    for (let i = 0; i < 4; i++) await session.subscribe(member, uri(i))
    await expect(session.subscribe(member, uri(4))).rejects.toMatchObject({
      rpcCode: -32602,
      message: expect.stringContaining('65536 bytes'),
    })
    expect(session.subscriptions).toEqual([0, 1, 2, 3].map(uri))
    const size = Buffer.byteLength(JSON.stringify(recordOf(session)))
    expect(size).toBeGreaterThan(60_000)
    expect(size).toBeLessThanOrEqual(64 << 10)
    expect(recordBytes(session.params, session.subscriptions)).toBeGreaterThanOrEqual(size)
    await session.subscribe(member, uri(0))
    await session.unsubscribe(uri(0))
    await session.subscribe(member, uri(4))
  })

  it('remembers a limited number of links that were opened, the latest ones', async () => {
    const { session, delivered } = open({ protocolVersion: '2025-11-25', capabilities: { elicitation: { url: {} } } })
    const { asked, send } = accepting(session)
    const { elicitation } = session.handlers(send)
    const { signal } = new AbortController()
    for (let i = 0; i < 102; i++) await elicitation?.({ mode: 'url', url: 'https://example.com/', message: 'open it' }, { signal })
    session.linksDone(send)
    expect(delivered.map((text) => JSON.parse(text).params.elicitationId)).toEqual(asked.slice(2).map(({ elicitationId }) => elicitationId))
  })
  it.each([
    ['forms', { form: {} }, true],
    ['forms and links', { form: {}, url: {} }, true],
    ['no mode, which means forms', {}, true],
    ['links only', { url: {} }, false],
  ])('is asked with a form only where it declared them: %s', async (_, elicitation, isAsked) => {
    const { session } = open({ protocolVersion: '2025-11-25', capabilities: { elicitation } })
    const { asked, send } = accepting(session)
    const form = { message: 'who?', requestedSchema: { type: 'object', properties: {} } }
    const answer = session.handlers(send).elicitation?.(form, { signal: new AbortController().signal })
    if (isAsked) expect(await answer).toEqual({ action: 'accept' })
    else await expect(answer).rejects.toMatchObject({ rpcCode: -32602, message: expect.stringContaining('links only') })
    expect(asked).toEqual(isAsked ? [form] : [])
  })
})
