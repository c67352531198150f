import { describe, expect, it } from 'vitest'
import { startScripted } from '../testing/scripted-backend.ts'
import { startTestVmcp } from '../testing/test-vmcp.ts'

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
