import { describe, expect, it } from 'vitest'
import { type PageOptions, type Project, pageOf } from './list-page.ts'
import { listText } from './list-text.ts'

function list(count: number, more: object = {}) {
  const names = Array.from({ length: count }, (_, i) => `tool_${String(i).padStart(5, '0')}`)
  return listText(new Map(names.map((name) => [name, { item: { name, ...more } }])))
}

const withoutOutput: Project = ({ outputSchema: _, ...rest }) => rest
const AS_IT_IS: PageOptions = { project: undefined, isShared: true }
const SHARED: PageOptions = { project: withoutOutput, isShared: true }

describe('pages of a list', () => {
  it('are written once for all who share it', () => {
    const tools = list(2_500, { outputSchema: {} })
    const first = pageOf(tools, undefined, SHARED)
    expect(pageOf(tools, undefined, SHARED)).toBe(first)
    expect(first?.text).not.toContain('outputSchema')
    expect(pageOf(tools, undefined, AS_IT_IS)?.text).toContain('outputSchema')
    expect(pageOf(tools, undefined, { ...SHARED, isShared: false })).not.toBe(first)
  })

  it.each([true, false])('hold every item once, in order (shared: %s)', (isShared) => {
    const tools = list(2_500, { outputSchema: {} })
    for (const project of [withoutOutput, undefined]) {
      const names: string[] = []
      let cursor: string | undefined
      do {
        const page = pageOf(tools, cursor, { project, isShared })
        for (const { name } of JSON.parse(`[${page?.text}]`) as { name: string }[]) names.push(name)
        cursor = page?.nextCursor
      } while (cursor !== undefined)
      expect(names).toEqual(tools.keys)
    }
  })

  it('of a changed list are others, and a cursor of anywhere is followed', () => {
    expect(pageOf(list(1), undefined, AS_IT_IS)?.text).toBe('{"name":"tool_00000"}')
    const two = list(2)
    expect(pageOf(two, undefined, AS_IT_IS)?.text).toBe('{"name":"tool_00000"},{"name":"tool_00001"}')
    expect(pageOf(two, 'bad', AS_IT_IS)).toBeUndefined()
    const after = Buffer.from(JSON.stringify({ after: 'tool_00000' })).toString('base64url')
    expect(pageOf(two, after, AS_IT_IS)).toEqual({ text: '{"name":"tool_00001"}', nextCursor: undefined })
    expect(pageOf(two, after, AS_IT_IS)).not.toBe(pageOf(two, after, AS_IT_IS))
  })
})
