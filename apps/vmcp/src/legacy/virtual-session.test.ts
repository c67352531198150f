import type { SessionStreams } from '@thv/gateway/streams/session-streams'
import { TestClock } from '@thv/kernel/clock'
import { CollectingLog } from '@thv/telemetry/testing/collecting-log'
import { describe, expect, it } from 'vitest'
import type { Member } from '../members/member.ts'
import { VirtualSession } from './virtual-session.ts'

describe('a session of a legacy client', () => {
  it('subscribes to a limited number of resources', async () => {
    const outlet = {} as unknown as SessionStreams
    const key = { id: 's', principal: 'ada', party: 'ada' }
    const session = new VirtualSession({ ...key, params: {}, outlet, clock: new TestClock(), log: new CollectingLog() })
    const listening = { close: async () => undefined }
    const member = { name: 'one', open: () => ({ listen: async () => listening }) } as unknown as Member
    for (let i = 0; i < 1_000; i++) await session.subscribe(member, `test://${i}`)
    await expect(session.subscribe(member, 'test://more')).rejects.toThrow('may subscribe to 1000 resources')
    await session.subscribe(member, 'test://7')
    await session.unsubscribe('test://7')
    await session.subscribe(member, 'test://more')
    expect(session.subscriptions.length).toBe(1_000)
  })
})
