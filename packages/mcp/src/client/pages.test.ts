import { describe, expect, it } from 'vitest'
import type { JsonObject } from '../json-rpc.ts'
import { allPages } from './pages.ts'

const LIMITS = { maxPages: 5, maxItems: 10 }

describe('allPages', () => {
  it('follows cursors, also an empty one, and keeps the other params', async () => {
    const pages = [{ tools: [1, 2], nextCursor: '' }, { tools: [], nextCursor: 'z' }, { tools: [3] }]
    const { items, asked } = await walk(pages, { _meta: { 'com.example/k': 1 } })
    expect(items).toEqual([1, 2, 3])
    expect(asked).toEqual(
      [undefined, '', 'z'].map((cursor) => ({ _meta: { 'com.example/k': 1 }, ...(cursor !== undefined && { cursor }) })),
    )
  })

  it.each([
    [
      'a cursor that comes twice',
      [
        { tools: [], nextCursor: 'a' },
        { tools: [], nextCursor: 'a' },
      ],
      'backend_protocol_error',
    ],
    ['no list', [{ prompts: [] }], 'backend_protocol_error'],
    ['too many pages', Array.from({ length: 9 }, (_, i) => ({ tools: [], nextCursor: `${i}` })), 'mcp_limit'],
    ['too many items', [{ tools: Array(10).fill({}), nextCursor: 'a' }, { tools: [] }], 'mcp_limit'],
  ])('refuses %s', async (_title, pages, code) => {
    await expect(walk(pages)).rejects.toMatchObject({ code })
  })

  it('takes as many as the limits allow', async () => {
    const last = (i: number) => (i < 4 ? { nextCursor: `${i}` } : {})
    const { items } = await walk(Array.from({ length: 5 }, (_, i) => ({ tools: [i, i], ...last(i) })))
    expect(items).toHaveLength(10)
  })
})

async function walk(pages: readonly JsonObject[], params: JsonObject = {}) {
  const asked: JsonObject[] = []
  const request = async (each: JsonObject) => {
    asked.push(each)
    return pages[asked.length - 1] ?? {}
  }
  return { items: await allPages({ method: 'tools/list', params, limits: LIMITS, request }), asked }
}
