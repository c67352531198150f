import { describe, expect, it } from 'vitest'
import type { ResolvedBackend } from '../discover/resolved-backend.ts'
import { healthSettings } from '../live/live-server.ts'
import { callModern } from '../testing/call-modern.ts'
import { answer, startScripted } from '../testing/scripted-backend.ts'
import { startTestVmcp, type TestVmcp } from '../testing/test-vmcp.ts'

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

describe('a backend that gets another address', () => {
  const POLL = { timeout: 20_000, interval: 20 }

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
