import type { McpClient } from '@thv/mcp/client/mcp-client'
import type { JsonObject } from '@thv/mcp/json-rpc'
import { describe, expect, it } from 'vitest'
import { boundedTtl, LIST_LIMITS, type ListLimits, listAll } from './list-pages.ts'

/** A server that gives these pages without an end. */
function pages(page: (index: number) => JsonObject) {
  let asked = 0
  const client = { request: async () => page(asked++) } as unknown as McpClient
  const all = (limits?: Partial<ListLimits>) => listAll(client, 'tools/list', new AbortController().signal, { ...LIST_LIMITS, ...limits })
  return { all, asked: () => asked }
}

const endless = (index: number): JsonObject => ({ tools: [{ name: `t${index}` }], nextCursor: `c${index}` })

describe('all pages of a list', () => {
  it('are at most 1,000, of 10,000 items and 16 MiB', () => {
    expect(LIST_LIMITS).toEqual({ maxItems: 10_000, maxBytes: 16 * 1_024 * 1_024, maxPages: 1_000 })
  })

  it('end after so many pages, and are said to be cut', async () => {
    const { all, asked } = pages(endless)
    const { items, isCut } = await all()
    expect([items.length, isCut, asked()]).toEqual([1_000, true, 1_000])
  })

  it('end before the item that is too much, by number and by size', async () => {
    const item = JSON.stringify({ name: 't0' }).length
    expect(await pages(endless).all({ maxItems: 3 })).toMatchObject({
      items: [{ name: 't0' }, { name: 't1' }, { name: 't2' }],
      isCut: true,
    })
    expect(await pages(endless).all({ maxBytes: 2 * item + 1 })).toMatchObject({ items: [{ name: 't0' }, { name: 't1' }], isCut: true })
  })

  it('are all of them where the server comes to an end', async () => {
    const { all } = pages((index) => ({ tools: [{ name: `t${index}` }], ...(index < 2 && { nextCursor: `c${index}` }) }))
    expect(await all()).toEqual({ items: [{ name: 't0' }, { name: 't1' }, { name: 't2' }], isCut: false, ttlMs: undefined })
  })

  it('may be kept as long as the page that may be kept for the shortest time; 0 and nonsense say nothing', async () => {
    const ttls = [0, 9_000, 4_000, 'x', -1, 8_000]
    const { all } = pages((index) => ({ tools: [], ttlMs: ttls[index], ...(index < 5 && { nextCursor: `c${index}` }) }))
    expect((await all()).ttlMs).toBe(4_000)
    expect([10, 4_000, 10_000_000].map(boundedTtl)).toEqual([1_000, 4_000, 300_000])
  })
})
