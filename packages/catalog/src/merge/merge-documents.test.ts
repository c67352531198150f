import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { type ConflictStrategy, type Contribution, type MergeRules, mergeDocuments } from './merge-documents.ts'
import { readDocument } from './read-document.ts'
import { writeDocument } from './write-document.ts'

function contribution(name: string, servers: Readonly<Record<string, object>>, priority = 0): Contribution {
  return of(name, JSON.stringify({ servers }), priority)
}

function of(name: string, text: string, priority = 0, format: 'toolhive' | 'upstream' = 'toolhive'): Contribution {
  const read = readDocument(text, format)
  if (!read.ok) throw new Error(read.problem)
  return { name, priority, document: read.document }
}

function merged(contributions: readonly Contribution[], rules: Partial<MergeRules> = {}) {
  const merge = mergeDocuments(contributions, { format: 'toolhive', strategy: 'prefix', ...rules })
  if (merge.kind === 'conflict') return { names: [], dropped: [], text: '', conflict: merge.names }
  return {
    names: merge.document.entries.map(({ name }) => name),
    dropped: merge.dropped,
    text: writeDocument(merge.document),
    conflict: [],
  }
}

const image = (tag = '1') => ({ image: `example.com/server:${tag}` })
const teamA = contribution('team-a-mcp-servers', { 'github-mcp': image('latest'), 'slack-mcp': image() })
const teamB = contribution('team-b-mcp-servers', { 'github-mcp': image('v2'), 'snowflake-mcp': image() })

describe('mergeDocuments', () => {
  it('[003-026] [003-028] [003-056] [003-101] [003-102] [003-103] prefixes every conflicting name and no other', () => {
    const { names, text } = merged([teamA, teamB])
    expect(names).toEqual(['slack-mcp', 'snowflake-mcp', 'team-a-mcp-servers/github-mcp', 'team-b-mcp-servers/github-mcp'])
    expect(JSON.parse(text).servers['team-b-mcp-servers/github-mcp']).toEqual({ image: 'example.com/server:v2' })
  })

  it('[003-027] names the servers of configmap-a and configmap-b as the document prints them', () => {
    const both = ['configmap-a', 'configmap-b'].map((name) => contribution(name, { 'github-mcp': image() }))
    expect(merged(both).names).toEqual(['configmap-a/github-mcp', 'configmap-b/github-mcp'])
  })

  it('prefixes also equal definitions, and all of three', () => {
    expect(merged(['c', 'a', 'b'].map((name) => contribution(name, { x: image() }))).names).toEqual(['a/x', 'b/x', 'c/x'])
  })

  it('counts servers and remote servers, short and long spelling, as one set of names', () => {
    const short = contribution('a', { fetch: image() })
    const long = of('b', '{"remote_servers":{"io.github.stacklok/fetch":{"url":"https://f"}}}')
    expect(merged([short, long]).names).toEqual(['a/fetch', 'io.github.stacklok/b.fetch'])
  })

  it('keeps the namespace of a name that has one, and changes the inner name with it', () => {
    const servers = { any: { extra: [1], name: 'io.example/fetch', image: 'x' } }
    const { names, text } = merged([contribution('a', servers), contribution('b', servers)])
    expect(names).toEqual(['io.example/a.fetch', 'io.example/b.fetch'])
    expect(text).toContain('"io.example/a.fetch":{"extra":[1],"name":"io.example/a.fetch","image":"x"}')
  })

  it('lets a literal name stay and reports the prefixed one, and reports names that are too long', () => {
    const literal = contribution('c', { 'a/x': image('literal') })
    const { names, dropped } = merged([contribution('a', { x: image() }), contribution('b', { x: image() }), literal])
    expect(names).toEqual(['a/x', 'b/x'])
    expect(dropped).toEqual([{ contribution: 'a', entry: 'x', message: 'would become "a/x": another entry has that name' }])
    const long = 'm'.repeat(253)
    expect(merged([contribution(long, { x: image() }), contribution('b', { x: image() })])).toMatchObject({
      names: ['b/x'],
      dropped: [{ contribution: long, entry: 'x', message: expect.stringContaining('200 characters') }],
    })
  })

  it('[003-073] priority keeps the definition of the highest priority, then of the first name', () => {
    const rules = { strategy: 'priority' } as const
    expect(JSON.parse(merged([teamA, teamB], rules).text).servers['github-mcp']).toEqual(image('latest'))
    const preferred = { ...teamB, priority: 5 }
    const { names, text } = merged([teamA, preferred], rules)
    expect(names).toEqual(['github-mcp', 'slack-mcp', 'snowflake-mcp'])
    expect(JSON.parse(text).servers['github-mcp']).toEqual(image('v2'))
  })

  it('[003-072] error refuses the merge and names the servers in conflict', () => {
    expect(merged([teamA, teamB], { strategy: 'error' }).conflict).toEqual(['github-mcp'])
    expect(merged([teamA], { strategy: 'error' }).names).toEqual(['github-mcp', 'slack-mcp'])
  })

  it('[003-032] [003-033] [003-034] [003-035] [003-088] filters after the merge, on prefixed names', () => {
    const filter = { names: { include: ['slack-*', 'snowflake-*'], exclude: ['*-deprecated'] } }
    const old = contribution('c', { 'slack-deprecated': image() })
    expect(merged([teamA, teamB, old], { filter }).names).toEqual(['slack-mcp', 'snowflake-mcp'])
    expect(merged([teamA, teamB], { filter: { names: { include: ['team-a-mcp-servers/*'] } } }).names).toEqual([
      'team-a-mcp-servers/github-mcp',
    ])
    // The filter drops team-b's, and team-a's is prefixed all the same.
    expect(merged([teamA, teamB], { filter: { names: { exclude: ['team-b-mcp-servers/*'] } } }).names).toContain(
      'team-a-mcp-servers/github-mcp',
    )
  })

  it('filters by tags', () => {
    const tagged = contribution('a', { x: { ...image(), tags: ['db'] }, y: image() })
    expect(merged([tagged], { filter: { tags: { include: ['db'] } } }).names).toEqual(['x'])
  })

  it('merges groups by name, with the same prefixes', () => {
    const group = '{"servers":{},"groups":[{"name":"g","servers":{"s":{"image":"x"}}}]}'
    expect(JSON.parse(merged([of('a', group), of('b', group)]).text).groups.map(({ name }: { name: string }) => name)).toEqual([
      'a/g',
      'b/g',
    ])
    expect(JSON.parse(merged([of('a', group)]).text).groups).toEqual([{ name: 'g', servers: { s: { image: 'x' } } }])
  })

  it('renames all versions of an upstream name in conflict', () => {
    const document = (version: string) => ({ name: 'io.example/a', description: 'A', version })
    const a = of('a', JSON.stringify({ data: { servers: [document('1.0.0'), { server: document('2.0.0'), _meta: {} }] } }), 0, 'upstream')
    const b = of('b', JSON.stringify([document('1.0.0')]), 0, 'upstream')
    const { names, text } = merged([a, b], { format: 'upstream' })
    expect(names).toEqual(['io.example/a.a', 'io.example/a.a', 'io.example/b.a'])
    expect(readDocument(text, 'upstream')).toMatchObject({ ok: true, problems: [], document: { entries: { length: 3 } } })
  })

  it('writes an empty registry for no contribution', () => {
    expect(JSON.parse(merged([]).text)).toEqual({ version: '1.0.0', last_updated: '1970-01-01T00:00:00Z', servers: {}, remote_servers: {} })
  })

  it('takes the newest time of the contributions, never the present', () => {
    const at = (name: string, time: string) => of(name, JSON.stringify({ last_updated: time, servers: {} }))
    const { text } = merged([at('a', '2026-01-02T00:00:00Z'), at('b', '2026-01-03T00:00:00Z'), at('c', 'yesterday')])
    expect(JSON.parse(text).last_updated).toBe('2026-01-03T00:00:00Z')
  })

  it('[003-029] gives byte-equal output for equal input in any order, without doubles, whatever the names', () => {
    const name = fc.constantFrom('a', 'b', 'a.b', 'a/b', 'io.example/a', 'io.github.stacklok/a', 'b/a', '__proto__', 'constructor')
    const map = fc.dictionary(name, fc.record({ image: fc.constantFrom('x', 'y'), tags: fc.constant(['t']) }), { maxKeys: 6 })
    const maps = fc.uniqueArray(fc.tuple(fc.constantFrom('a', 'b', 'io.example', 'io.github.stacklok', 'c'), map, fc.integer()), {
      selector: ([key]) => key,
    })
    const strategies = fc.constantFrom<ConflictStrategy>('prefix', 'priority', 'error')
    const shuffled = maps.chain((all) => fc.tuple(fc.constant(all), fc.shuffledSubarray(all, { minLength: all.length })))
    fc.assert(
      fc.property(shuffled, strategies, ([first, second], strategy) => {
        const run = (list: typeof first) =>
          merged(
            list.map(([key, servers, priority]) => contribution(key, servers, priority)),
            { strategy },
          )
        const result = run(first)
        expect(run(second)).toEqual(result)
        expect(new Set(result.names).size).toBe(result.names.length)
        if (result.text !== '') expect(readDocument(result.text, 'toolhive')).toMatchObject({ ok: true, problems: [] })
      }),
    )
  })
})
