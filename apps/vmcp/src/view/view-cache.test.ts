import { WireClient } from '@thv/gateway/testing/wire-client'
import { TestClock } from '@thv/kernel/clock'
import { ThvError } from '@thv/kernel/errors'
import { CollectingLog } from '@thv/telemetry/testing/collecting-log'
import { describe, expect, it } from 'vitest'
import type { ResolvedBackend } from '../discover/resolved-backend.ts'
import { healthSettings } from '../live/live-server.ts'
import type { Member } from '../members/member.ts'
import { MemberHealth } from '../members/member-health.ts'
import type { MemberRoster } from '../members/member-roster.ts'
import { callModern } from '../testing/call-modern.ts'
import { startGuardedBackend } from '../testing/guarded-backend.ts'
import { documentOf, startLive } from '../testing/live-vmcp.ts'
import { answer, startScripted } from '../testing/scripted-backend.ts'
import { startTestVmcp, type TestVmcp, testConfig } from '../testing/test-vmcp.ts'
import { viewSettings } from './built-view.ts'
import { ViewCache } from './view-cache.ts'

const POLL = { timeout: 20_000, interval: 20 }

describe('the view of all backends', () => {
  it('waits for no backend that has failed: calls and lists take no promise for it', async () => {
    await using one = await startScripted({ era: 'legacy', call: (_, response) => void response.end() })
    // Nothing listens on it.
    await using vmcp = await startTestVmcp({ backends: { one: one.url, dead: 'http://127.0.0.1:9/mcp' } })
    const { view } = vmcp.offer
    expect(view.isMissing).toBe(true)
    const current = view.current()
    expect(current).not.toBeInstanceOf(Promise)
    expect([...(await current).tools.keys()]).toEqual(['work'])
  })
})

describe('lists that never came', () => {
  /** A view of these backends on a clock of its own. Undefined: the backend never answers. */
  function start(backends: Readonly<Record<string, object | undefined>>) {
    const clock = new TestClock()
    const all = Object.entries(backends).map(([name, result]) => {
      const request = () => (result === undefined ? new Promise<never>(() => {}) : Promise.resolve(result))
      const shared = { capabilities: { tools: {} }, connect: async () => {}, request }
      const health = { onChange: () => {} }
      return { name, shared, health, isPerCaller: false, observed: (work: () => Promise<void>) => work() } as unknown as Member
    })
    const roster = { all, isPerCaller: false, onChange: () => {} } as unknown as MemberRoster
    const view = new ViewCache({ roster, settings: viewSettings(testConfig({ backends: {} })), clock, log: new CollectingLog() })
    view.start()
    return { clock, view }
  }

  it('are waited for one second in all, by however many clients for however many backends', async () => {
    const { clock, view } = start({ one: { tools: [{ name: 'work', inputSchema: { type: 'object' } }] }, two: undefined, three: undefined })
    const seen: string[][] = []
    const list = async () => void seen.push([...(await view.current()).tools.keys()])
    void list()
    await clock.advance(600)
    void list()
    await clock.advance(399)
    expect(seen).toEqual([])
    await clock.advance(1)
    expect(seen).toEqual([['work'], ['work']])
    // They hang on, and no call takes a promise for them.
    expect(view.isMissing).toBe(true)
    expect(view.current()).not.toBeInstanceOf(Promise)
    await view.close()
  })

  it('leave clients no time to keep the others', async () => {
    const tools = { tools: [], ttlMs: 60_000 }
    const { clock, view } = start({ one: tools, two: undefined })
    await clock.advance(0)
    expect([view.isMissing, view.freshForMs]).toEqual([true, 0])
    await view.close()
    const { clock: later, view: whole } = start({ one: tools, two: tools })
    await later.advance(0)
    expect(whole.isMissing).toBe(false)
    expect(whole.freshForMs).toBeGreaterThan(50_000)
    await whole.close()
  })

  it('show modern clients ttlMs 0', async () => {
    const call = () => {}
    const listed = Promise.withResolvers<object>()
    await using one = await startScripted({ era: 'modern', call })
    await using two = await startScripted({ era: 'modern', list: () => listed.promise, call })
    await using vmcp = await startTestVmcp({ backends: { one: one.url, two: two.url }, isAttempted: false, firstWaitMs: 1 })
    const list = async () => (await new WireClient(vmcp.url).modern('tools/list')).messages[0].result
    await expect.poll(() => [...vmcp.offer.view.now.tools.keys()], POLL).toEqual(['work'])
    expect(await list()).toMatchObject({ tools: [{ name: 'work' }], ttlMs: 0 })
    listed.resolve({ tools: [{ name: 'other', inputSchema: { type: 'object' } }] })
    await expect.poll(async () => (await list()).ttlMs, POLL).toBeGreaterThan(0)
    expect(vmcp.offer.view.isMissing).toBe(false)
  })
})

describe('a backend that is down at first', () => {
  /** On a clock of its own, after so long that it is asked seldom. */
  async function start() {
    const clock = new TestClock()
    let isDown = true
    let askedAt = 0
    const request = async () => {
      askedAt = clock.monotonic()
      if (isDown) throw new Error('down')
      return { tools: [{ name: 'work', inputSchema: { type: 'object' } }] }
    }
    const shared = { capabilities: { tools: {} }, connect: async () => {}, request }
    const health = new MemberHealth(clock, healthSettings(testConfig({ backends: {} })))
    const one = { name: 'one', shared, health, isPerCaller: false, observed: (work: () => Promise<void>) => work() } as unknown as Member
    const roster = { all: [one], isPerCaller: false, get: (name: string) => (name === 'one' ? one : undefined), onChange: () => {} }
    const settings = viewSettings(testConfig({ backends: {} }))
    const view = new ViewCache({ roster: roster as unknown as MemberRoster, settings, clock, log: new CollectingLog() })
    view.start()
    // With the longest delay before the next attempt, and that has just begun.
    await clock.advance(1_000_000)
    while (clock.monotonic() - askedAt > 1_000) await clock.advance(500)
    isDown = false
    const names = async () => {
      await clock.advance(50)
      return [...view.now.tools.keys()]
    }
    expect(await names()).toEqual([])
    return { view, health, names }
  }

  it('is asked for its lists when its resource becomes ready', async () => {
    const { view, names } = await start()
    view.look('none')
    expect(await names()).toEqual([])
    view.look('one')
    expect(await names()).toEqual(['work'])
    await view.close()
  })

  it('is asked for its lists when it answers something else', async () => {
    const { view, health, names } = await start()
    health.failed(new ThvError('backend_refused', 'no'))
    expect(await names()).toEqual([])
    health.succeeded()
    expect(await names()).toEqual(['work'])
    await view.close()
  })
})

describe('a backend that gets other credentials', () => {
  it('is asked for its lists again, in open sessions too', async () => {
    await using backend = await startGuardedBackend({ toolOf: (value) => value.replace('Bearer ', 'tool_of_') })
    const auth = (token: string) => ({
      source: 'inline',
      backends: { one: { type: 'header_injection', headerInjection: { headerName: 'Authorization', headerValue: `Bearer ${token}` } } },
    })
    const config = { aggregation: { conflictResolution: 'prefixOnConflict' } }
    const one = { name: 'one', url: backend.url }
    await using live = await startLive(documentOf([one], { ...config, outgoingAuth: auth('ada') }))
    const client = new WireClient(live.url)
    await client.initialize()
    const names = async () =>
      (await client.request('tools/list')).messages.at(-1).result.tools.map(({ name }: { name: string }) => name) as string[]
    expect(await names()).toEqual(['tool_of_ada'])
    const [before] = live.offer.members
    live.write(documentOf([one], { ...config, outgoingAuth: auth('bob') }))
    // Far sooner than the half minute for which its lists are kept.
    await expect.poll(names, POLL).toEqual(['tool_of_bob'])
    expect(live.offer.members).toEqual([before])
  })
})

describe('a backend that gets another address', () => {
  function change({ offer }: TestVmcp, changed: Partial<ResolvedBackend>): void {
    const before = offer.roster.get('one')?.backend
    if (before === undefined) throw new Error('there is no such backend')
    offer.roster.apply([{ ...before, ...changed }], healthSettings(offer.config))
  }

  /** Two servers of one backend; the second answers with this list. */
  async function start(list: () => object | Promise<object>) {
    const stack = new AsyncDisposableStack()
    const first = stack.use(await startScripted({ era: 'legacy', call: (call, response) => answer(response, call, 'of the first') }))
    const second = stack.use(
      await startScripted({ era: 'legacy', list, call: (call, response) => answer(response, call, 'of the second') }),
    )
    const vmcp = stack.use(await startTestVmcp({ backends: { one: first.url } }))
    const { view } = vmcp.offer
    return { stack, second, vmcp, view, names: () => [...view.now.tools.keys()] }
  }

  it('keeps its lists until the new one has answered, and calls go to the new one at once', async () => {
    const listed = Promise.withResolvers<object>()
    const { stack, second, vmcp, view, names } = await start(() => listed.promise)
    await using _ = stack
    let changes = 0
    view.onChange(() => void changes++)
    change(vmcp, { url: second.url })
    expect(view.current()).not.toBeInstanceOf(Promise)
    expect([names(), view.freshForMs, changes]).toEqual([['work'], 0, 0])
    expect((await callModern(vmcp.url, 'work')).result?.content).toEqual([{ type: 'text', text: 'of the second' }])
    // Once more, before any list came.
    change(vmcp, { url: `${second.url}?other` })
    expect(names()).toEqual(['work'])
    listed.resolve({ tools: [{ name: 'other', inputSchema: { type: 'object' } }] })
    await expect.poll(names, POLL).toEqual(['other'])
    expect(changes).toBe(1)
  })

  it('loses them when the first attempt at the new one fails', async () => {
    const { stack, second, vmcp, view, names } = await start(() => ({ tools: [] }))
    await using _ = stack
    second.isDown = true
    change(vmcp, { url: second.url })
    expect(names()).toEqual(['work'])
    await view.attempted
    expect(names()).toEqual([])
  })

  it('shows nothing that was seen with other credentials or by the trust in another certificate', async () => {
    for (const changed of [
      { headers: { authorization: 'Bearer other' } },
      { ca: { id: 'other', certificates: [], expired: [] } },
    ] satisfies readonly Partial<ResolvedBackend>[]) {
      const { stack, second, vmcp, names } = await start(() => new Promise(() => {}))
      await using _ = stack
      change(vmcp, { url: second.url, ...changed })
      expect(names()).toEqual([])
    }
  })
})
