import { describe, expect, it } from 'vitest'
import { createFilter, type FilterConfig, filterIdentity } from './filters.ts'

const none: ReadonlySet<string> = new Set()

describe('createFilter', () => {
  it.each<[FilterConfig, string, string[], string]>([
    [{}, 'any/thing', [], 'keep'],
    [{ names: { include: ['io.github.*'] } }, 'io.github.stacklok/fetch', [], 'keep'],
    [{ names: { include: ['slack-*'] } }, 'io.github.slack-mcp/x', [], 'name is not among those included'],
    [{ names: { include: ['slack-*'] } }, 'io.github.stacklok/slack-mcp', [], 'keep'], // by its short name
    [{ names: { include: ['*'], exclude: ['*-deprecated'] } }, 'x/a-deprecated', [], 'name is excluded by "*-deprecated"'],
    [{ names: { exclude: ['*/experimental'] } }, 'x/fetch', [], 'keep'],
    [{ names: { exclude: ['fetch'] } }, 'x/fetch', [], 'name is excluded by "fetch"'],
    [{ tags: { include: ['db'] } }, 'x/y', ['db', 'sql'], 'keep'],
    [{ tags: { include: ['db'] } }, 'x/y', ['database'], 'no tag is among those included'],
    [{ tags: { include: ['db'], exclude: ['beta'] } }, 'x/y', ['db', 'beta'], 'tag "beta" is excluded'],
    [{ names: { include: ['x/*'] }, tags: { include: ['db'] } }, 'x/y', [], 'no tag is among those included'],
    [{ names: { include: [] }, tags: { include: [] } }, 'x/y', [], 'keep'],
  ])('%j on %s %j', (config, name, tags, expected) => {
    const verdict = createFilter(config).decide(name, new Set(tags))
    expect(verdict.keep ? 'keep' : verdict.reason).toBe(expected)
  })

  it('drops every entry, with the reason, while a pattern cannot be read', () => {
    const filter = createFilter({ names: { include: ['*'], exclude: ['[a'] } })
    expect(filter.decide('x/y', none)).toEqual({ keep: false, reason: "the pattern \"[a\" has a '[' without ']'" })
    expect(filter.problems).toHaveLength(1)
  })

  it("takes a document's tags from every publisher's blocks", () => {
    const provided = {
      'io.github.stacklok': { 'ghcr.io/x/y:1': { tags: ['db', 7] } },
      'com.example': { any: { tags: ['sql'] }, flat: 1 },
      tags: ['no'],
      text: 'x',
    }
    const document = { name: 'x/y', _meta: { 'io.modelcontextprotocol.registry/publisher-provided': provided } }
    const keeps = (tag: string) => createFilter({ tags: { include: [tag] } }).decideDocument(document).keep
    expect(['db', 'sql', 'no', '7'].map(keeps)).toEqual([true, true, false, false])
    expect(createFilter({}).decideDocument({}).keep).toBe(false)
  })
})

it('has one identity for one meaning', () => {
  const a = filterIdentity({ names: { include: ['b', 'a', 'a'] } })
  expect(a).toBe(filterIdentity({ names: { include: ['a', 'b'], exclude: [] }, tags: {} }))
  expect(a).not.toBe(filterIdentity({ names: { exclude: ['a', 'b'] } }))
  expect(a).not.toBe(filterIdentity({ tags: { include: ['a', 'b'] } }))
})
