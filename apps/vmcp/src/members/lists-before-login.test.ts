import { TestClock } from '@thv/kernel/clock'
import type { JsonObject } from '@thv/mcp/json-rpc'
import { CollectingLog } from '@thv/telemetry/testing/collecting-log'
import { describe, expect, it } from 'vitest'
import type { BackendLists } from '../aggregate/backend-lists.ts'
import { ListsBeforeLogin } from './lists-before-login.ts'
import { noLists } from './load-lists.ts'
import type { Member } from './member.ts'
import { outgoingScope } from './outgoing-scope.ts'

const tool = (name: string, description = ''): JsonObject => ({ name, description })
const lists = (...tools: JsonObject[]): BackendLists => ({ ...noLists('wiki'), tools })
const SCOPE = { caller: undefined, exchange: undefined }

/** A backend that lists these without a login; undefined: it refuses. */
function before(open?: readonly JsonObject[]) {
  const clock = new TestClock()
  const asked: boolean[] = []
  const shared = {
    capabilities: { tools: {} },
    connect: async () => {
      asked.push(outgoingScope.getStore() === undefined)
      if (open === undefined) throw new Error('401')
    },
    request: async () => ({ tools: open }),
  }
  const member = { name: 'wiki', shared, observed: (work: () => Promise<void>) => work(), signal: new AbortController().signal }
  const known = new ListsBeforeLogin({ member: member as unknown as Member, clock, log: new CollectingLog() })
  const names = async () => (await outgoingScope.run(SCOPE, () => known.current())).tools.map(({ name }) => name)
  return { clock, asked, known, names }
}

describe('lists of a backend before the login to its provider', () => {
  it('are what the backend shows without one, asked without anything of a caller and seldom', async () => {
    const { clock, asked, names } = before([tool('open')])
    expect(await Promise.all([names(), names()])).toEqual([['open'], ['open']])
    await names()
    expect(asked).toEqual([true])
    await clock.advance(300_000)
    await names()
    expect(asked).toEqual([true, true])
  })

  it('else are the items that the last two users both see, never those of one', async () => {
    const { known, names } = before()
    expect(await names()).toEqual([])
    known.learn('ada', lists(tool('common'), tool('of ada'), tool('differs', 'for ada')))
    known.learn('ada', lists(tool('common'), tool('of ada'), tool('differs', 'for ada')))
    expect(await names()).toEqual([])
    known.learn('bob', lists(tool('of bob'), tool('differs', 'for bob'), tool('common')))
    expect(await names()).toEqual(['common'])
    const same = lists(tool('new'))
    known.learn('carl', same)
    expect(await names()).toEqual([])
    known.learn('dora', same)
    expect(await names()).toEqual(['new'])
  })
})
